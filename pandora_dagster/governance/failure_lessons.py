"""What the prompt of a recipe should say so that its failures do not happen again: a model reads the failures, the editor decides
(specification 000, section 5.5)."""

from collections.abc import Sequence

from pandora_dagster.contracts.recipe_governance import FailureLesson, FailureLessons
from pandora_dagster.contracts.recipe_schema import CallInput, LoadedRecipe
from pandora_dagster.errors import InputError
from pandora_dagster.governance.dry_run import DryRunExecutor
from pandora_dagster.governance.recipe_failures import FailureGroup
from pandora_dagster.phases.core.phase_context import json_line

RECIPE = "reflection/failure_lesson"
DOCUMENTS = ("role_prompt", "failures")
_MAX_CAUSES = 5
_MAX_EXAMPLES = 3
_MAX_MESSAGE_CHARACTERS = 300


async def propose_lessons(failed: LoadedRecipe, groups: Sequence[FailureGroup], executor: DryRunExecutor) -> tuple[FailureLesson, ...]:
    """The lessons from the most frequent causes of failure, by a call that is not stored; RECIPE is the version that `executor` runs.

    Raises InputError where the call fails.
    """
    if not groups:
        return ()
    causes = [_cause_line(number, group) for number, group in enumerate(groups[:_MAX_CAUSES], 1)]
    role_prompt = "\n\n".join(text for _, text in failed.prompts)
    texts = dict(zip(DOCUMENTS, (role_prompt, "\n".join(causes)), strict=True))
    case = CallInput.model_validate({"query": failed.recipe.description, "documents": texts})
    answer = await executor.run_case(case)
    if answer.result is None:
        raise InputError(f"{RECIPE}: {answer.failure}", hint="read the failures without --propose")
    lessons = FailureLessons.model_validate(answer.result.parsed).lessons
    return tuple(lesson for lesson in lessons if lesson.cause <= len(causes))


def _cause_line(number: int, group: FailureGroup) -> str:
    messages = [" ".join(example.message.split()) for example in group.examples[:_MAX_EXAMPLES]]
    examples = [message for message in messages if len(message) <= _MAX_MESSAGE_CHARACTERS]
    return json_line({"cause": number, "what": group.cause, "count": group.count, "examples": examples})
