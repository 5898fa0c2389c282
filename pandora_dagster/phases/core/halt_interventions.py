"""Interventions: why a phase stopped, for the user to resolve (decision 14, docs/decisions/14-the-intervention-record.md)."""

from contextlib import suppress

from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.model_calls import CallRecord
from pandora_dagster.contracts.turns import Manifest
from pandora_dagster.errors import BadAnswerError, BudgetError, ConfigurationError, DocumentError, PandoraError
from pandora_dagster.phases.core.dependencies import PhaseDependencies

HALTING_ERRORS = (DocumentError, BudgetError, ConfigurationError, BadAnswerError)
"""Errors that stop a phase with an intervention of its own. A failed call has stored its intervention already (HaltError)."""

FATAL_INTERVENTIONS = frozenset({InterventionType.RUNTIME_UNREACHABLE, InterventionType.CONFIG_ERROR})
"""Interventions that would stop every other turn or subject of a run too."""


def intervention_type(error: Exception) -> InterventionType:
    """The intervention type of one of the `HALTING_ERRORS`."""
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
    """Store an intervention about a phase of a turn and, where there is one, the call that caused it."""
    site = {"user_id": manifest.user_id, "session_id": manifest.session_id, "turn_id": manifest.turn_id, "phase": phase}
    names = ("recipe", "recipe_version", "call_id", "pack_ref", "answer_ref")
    cause = {name: str(getattr(call, name)) for name in names} if call else {}
    return deps.interventions.open(kind, message, hint=hint, revision=str(manifest.revision), **site, **cause)


def has_continued(manifest: Manifest, intervention: Intervention) -> bool:
    """Whether the turn continued after its HALT: the phase has finished, and the manifest no longer names the intervention."""
    return manifest.has_finished(intervention.phase) and manifest.intervention != intervention.id


def close_intervention(deps: PhaseDependencies, intervention_id: str | None, manifest: Manifest) -> None:
    """Resolve the intervention that halted a turn once the turn continued. Ignores errors: `has_continued` gives the state at any time."""
    with suppress(PandoraError):
        if intervention_id and (halt := deps.interventions.show(intervention_id)).is_open and has_continued(manifest, halt):
            deps.interventions.resolve(halt.id, "", how="went_on")
