"""The recipes that are asked while a tool runs, where code is unsure: by a tool through `ToolRun.ask`, or by the loop around it."""

from pandora_dagster.contracts.model_calls import InputDocument
from pandora_dagster.contracts.ports.tool import Answer, AskRecipe, ToolSpec
from pandora_dagster.errors import ToolLimitError
from pandora_dagster.phases.core.phase_context import PhaseContext, parsed_answer

FACT_CONFLICT = "memory/fact_conflict"
FACT_EXPIRY = "memory/fact_expiry"
MEMORY_QUERY = "memory/memory_query"
FORGET_REQUEST = "memory/forget_request"
DOC_SEARCH_QUERY = "tools/doc_search_query"
ARGUMENT_FILLER = "tools/argument_filler"
LOOP_DETECTOR = "reflection/loop_detector"


def recipe_asker(ctx: PhaseContext, tool: ToolSpec | None = None) -> AskRecipe:
    """What a tool asks recipes with: its calls are calls of the phase, with the user's words. Raises ToolLimitError once the calls
    of a run of `tool` have used the tokens that it declares."""
    calls_before = len(ctx.results)

    async def ask(recipe: str, documents: tuple[InputDocument, ...], answer: type[Answer]) -> Answer:
        used = sum(result.record.used_tokens for result in ctx.results[calls_before:])
        if tool and used >= tool.max_tokens:
            raise ToolLimitError(f"{recipe}: not asked: {used:,} tokens were used: expected at most {tool.max_tokens:,} in one run")
        return parsed_answer(await ctx.ask(recipe, documents), answer)

    return ask
