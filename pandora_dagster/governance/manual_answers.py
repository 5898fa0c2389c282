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
    """Raises InputError with the reason why the answer does not pass the recipe in production."""
    loaded = next((one for one in map(recipes.load, recipes.names()) if one.name == intervention.recipe), None)
    if loaded is None:
        raise InputError(f"intervention {intervention.id}: recipe {intervention.recipe} is gone: expected one of pandora recipes list")
    case = halted_call_case(intervention, calls, vault)
    sources, intent = (replay_request(case, loaded.path, user=NO_USER).sources, case.intent) if case else ((), "")
    judged = judge_answer(manual_answer(answer), loaded.recipe, sources, intent=intent)
    failed = [verdict for verdict in judged.verdicts if not verdict.passed and (case or verdict.gate != "evidence_required")]
    if reason := "; ".join(f"{verdict.gate}: {verdict.reason}" for verdict in failed):
        raise InputError(f"answer: {reason}", hint=f"pandora interventions show {intervention.id} shows the prompt and its schema")


def halted_call_case(intervention: Intervention, calls: CallHistory, vault: Vault) -> CallCase | None:
    """The inputs of the halted call; None where they are no longer stored."""
    record = call_record_of(intervention, calls)
    try:
        return CallCase.model_validate_json(vault.read(record.request_ref)) if record and record.request_ref else None
    except (DocumentError, ValidationError):
        return None


def call_record_of(intervention: Intervention, calls: CallHistory) -> CallRecord | None:
    """The record of the halted call; None where its turn is gone."""
    if not intervention.turn_id:
        return None
    key = TurnKey(user_id(intervention.user_id), turn_number(intervention.turn_id))
    return next((record for record in calls.recorded(key, intervention.revision) if record.call_id == intervention.call_id), None)


def pending_vault_refs(interventions: Interventions, calls: CallHistory) -> frozenset[str]:
    """Vault references of open interventions: prompt packs, raw answers and inputs of the calls. Raises DocumentError."""
    found: set[str] = set()
    for one in interventions.list(state="open"):
        record = call_record_of(one, calls) if one.call_id else None
        found |= {one.pack_ref, one.answer_ref, record.request_ref if record else ""}
    return frozenset(found - {""})
