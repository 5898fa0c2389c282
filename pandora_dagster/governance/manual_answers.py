"""Answers that a user gives in place of a halted call, checked against the inputs of that call."""

from pydantic import ValidationError

from pandora_dagster.contracts.ids import TurnKey, turn_number, user_id
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.model_calls import CallRecord
from pandora_dagster.contracts.ports.recipe_execution import RecipeCatalog
from pandora_dagster.contracts.ports.record_storage import CallHistory, Interventions, Vault
from pandora_dagster.contracts.recipe_schema import CallCase
from pandora_dagster.errors import DocumentError, InputError
from pandora_dagster.execution.call.attempts import manual_answer
from pandora_dagster.execution.call.quality_gates import judge_answer
from pandora_dagster.execution.call.recorded_inputs import replay_request
from pandora_dagster.governance.dry_run import NO_USER


def check_manual_answer(intervention: Intervention, answer: str, recipes: RecipeCatalog, calls: CallHistory, vault: Vault) -> None:
    """Raise InputError where the answer does not pass the gates of the recipe in production.

    Where the inputs of the call are no longer stored, its citations are not checked.
    """
    loaded = next((recipe for recipe in map(recipes.load, recipes.names()) if recipe.name == intervention.recipe), None)
    if loaded is None:
        raise InputError(f"intervention {intervention.id}: recipe {intervention.recipe}: missing: expected one of pandora recipes list")
    case = halted_call_case(intervention, calls, vault)
    sources, intent = (replay_request(case, loaded.path, user=NO_USER).sources, case.intent) if case else ((), "")
    judged = judge_answer(manual_answer(answer), loaded.recipe, sources, intent=intent)
    failed_verdicts = [verdict for verdict in judged.verdicts if not verdict.passed and (case or verdict.gate != "evidence_required")]
    if reason := "; ".join(f"{verdict.gate}: {verdict.reason}" for verdict in failed_verdicts):
        raise InputError(f"answer: {reason}", hint=f"pandora interventions show {intervention.id} shows the prompt and its schema")


def halted_call_case(intervention: Intervention, calls: CallHistory, vault: Vault) -> CallCase | None:
    """The inputs of the halted call; None where they are no longer stored."""
    record = call_record_of(intervention, calls)
    try:
        return CallCase.model_validate_json(vault.read(record.request_ref)) if record and record.request_ref else None
    except (DocumentError, ValidationError):
        return None


def call_record_of(intervention: Intervention, calls: CallHistory) -> CallRecord | None:
    """The record of the halted call; None where there is none."""
    if not intervention.turn_id:
        return None
    key = TurnKey(user_id(intervention.user_id), turn_number(intervention.turn_id))
    return next((record for record in calls.recorded(key, intervention.revision) if record.call_id == intervention.call_id), None)


def pending_vault_refs(interventions: Interventions, calls: CallHistory) -> frozenset[str]:
    """Vault references of open interventions: prompt packs, raw answers and inputs of the calls. Raises DocumentError."""
    refs: set[str] = set()
    for intervention in interventions.list(state="open"):
        record = call_record_of(intervention, calls) if intervention.call_id else None
        refs |= {intervention.pack_ref, intervention.answer_ref, record.request_ref if record else ""}
    return frozenset(refs - {""})
