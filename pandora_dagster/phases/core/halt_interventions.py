"""Why a phase stopped, as an intervention for a person (DECISIONS 14). Knows which error means what; decides nothing."""

from contextlib import suppress

from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.model_calls import CallRecord
from pandora_dagster.contracts.turns import Manifest
from pandora_dagster.errors import BadAnswerError, BudgetError, ConfigurationError, DocumentError, PandoraError
from pandora_dagster.phases.core.dependencies import PhaseDependencies

HALTING_ERRORS = (DocumentError, BudgetError, ConfigurationError, BadAnswerError)
"""What stops a phase with an intervention of its own; a call that fails has written one already (HaltError)."""


def intervention_type(error: Exception) -> InterventionType:
    """The intervention type of one of the `HALTING` errors."""
    if isinstance(error, DocumentError):
        return InterventionType.MISSING_DOCUMENT if error.missing else InterventionType.CORRUPT_DOCUMENT
    if isinstance(error, BudgetError):
        return InterventionType.BUDGET_EXCEEDED
    return InterventionType.CONFIG_ERROR if isinstance(error, ConfigurationError) else InterventionType.SCHEMA_VIOLATION


def open_intervention(
    deps: PhaseDependencies,
    phase: str,
    manifest: Manifest,
    kind: InterventionType,
    message: str,
    *,
    hint: str = "",
    call: CallRecord | None = None,
) -> Intervention:
    """Write an intervention about a phase of a turn, and about the call it judges where there is one."""
    site = {"user_id": manifest.user_id, "session_id": manifest.session_id, "turn_id": manifest.turn_id, "phase": phase}
    names = ("recipe", "recipe_version", "call_id", "pack_ref", "answer_ref")
    judged = {name: str(getattr(call, name)) for name in names} if call else {}
    return deps.interventions.open(kind, message, hint=hint, revision=str(manifest.revision), **site, **judged)


def has_passed(manifest: Manifest, intervention: Intervention) -> bool:
    """Whether the turn went on past what halted it: the phase has finished since, and the manifest names the intervention no more."""
    return manifest.finished(intervention.phase) and manifest.intervention != intervention.id


def close_intervention(deps: PhaseDependencies, intervention_id: str | None, manifest: Manifest) -> None:
    """Close the intervention that a turn stood at, once it went on. What fails here costs no turn: `gone_on` tells it at any time."""
    with suppress(PandoraError):
        if intervention_id and (found := deps.interventions.show(intervention_id)).is_open and has_passed(manifest, found):
            deps.interventions.resolve(found.id, "", how="went_on")
