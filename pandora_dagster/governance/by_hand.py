"""Whether an answer given by hand would pass. Knows the gates of its recipe; runs nothing."""

from jsonschema import Draft202012Validator

from pandora_dagster.contracts.recipe_tests import CallCase
from pandora_dagster.contracts.recipes import LoadedRecipe
from pandora_dagster.execution.cases import replay_request
from pandora_dagster.execution.invocation import manual_answer
from pandora_dagster.execution.judging import judge_answer
from pandora_dagster.governance.bench import NOBODY


def manual_answer_faults(answer: str, loaded: LoadedRecipe, case: CallCase | None) -> str:
    """Why an answer does not pass its recipe's gates, "" where it does. `case`: what the call was asked with; None where that is gone."""
    recipe = loaded.recipe
    schema = recipe.output_schema
    validator = None if schema is None else Draft202012Validator(dict(schema))
    request = replay_request(case, loaded.path, user=NOBODY) if case else None
    judged = judge_answer(manual_answer(answer), recipe, validator, request.sources if request else (), intent=request.intent if request else "")
    failed = [verdict for verdict in judged.verdicts if not verdict.passed and (request or verdict.gate != "evidence_required")]
    return "; ".join(f"{verdict.gate}: {verdict.reason}" for verdict in failed)
