"""The recipes that are asked while a tool runs, where code is unsure: by a tool through `ToolRun.ask`, or by the loop around it."""

from pandora_dagster.contracts.model_calls import InputDocument
from pandora_dagster.contracts.ports.tool import Answer, AskRecipe
from pandora_dagster.phases.core.phase_context import PhaseContext, parsed_answer

FACT_CONFLICT = "memory/fact_conflict"
FACT_EXPIRY = "memory/fact_expiry"
MEMORY_QUERY = "memory/memory_query"
FORGET_REQUEST = "memory/forget_request"
DOC_SEARCH_QUERY = "tools/doc_search_query"
ARGUMENT_FILLER = "tools/argument_filler"
LOOP_DETECTOR = "reflection/loop_detector"


def recipe_asker(ctx: PhaseContext) -> AskRecipe:
    """What a tool asks recipes with: its calls are calls of the phase, with the user's words."""

    async def ask(recipe: str, documents: tuple[InputDocument, ...], answer: type[Answer]) -> Answer:
        return parsed_answer(await ctx.ask(recipe, documents), answer)

    return ask
