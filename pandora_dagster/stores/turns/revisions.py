"""The part of a turn that a re-run keeps: a turn in, a turn out. Pure.

An unfinished turn is changed in place, a finished one gets a numbered revision (`turn_files`). What each phase writes is an argument.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.turns import Manifest, PhaseEffects, Turn
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.stores.turns.commits import context_fields
from pandora_dagster.stores.turns.manifests import updated_manifest

UNFINISHED = frozenset({TurnState.OPEN, TurnState.HALTED})


@dataclass(frozen=True, slots=True)
class DroppedPhases:
    """The phases that a re-run drops: the one that it starts at, and all after it."""

    phases: frozenset[str]

    @classmethod
    def from_phase(cls, phase: str, order: Sequence[str]) -> "DroppedPhases":
        if phase not in order:
            raise ValueError(f"phase {phase!r}: expected one of {', '.join(order)}")
        return cls(frozenset(order[order.index(phase) :]))

    def affects_finished(self, manifest: Manifest, effects: PhaseEffects) -> bool:
        """Whether a finished phase is dropped. The sections of a recorded turn count as finished phases."""
        if any(p.phase in self.phases for p in manifest.phases):
            return True
        numbers = {str(n) for phase, n in effects.sections.items() if phase in self.phases}
        return manifest.recorded and not numbers.isdisjoint(manifest.sections)


def drop_phases(turn: Turn, dropped: DroppedPhases, effects: PhaseEffects, *, counter: TokenMeasure) -> Turn:
    """`turn` without what the dropped phases wrote, in the state in which the re-run finds it."""
    manifest = turn.manifest
    phases = tuple(p for p in manifest.phases if p.phase not in dropped.phases)
    kept_names = {name for p in phases for name in p.files}
    context = _without_sections(turn.context, dropped, effects)
    fields: dict[str, object] = {"phases": phases, "state": _state(manifest, dropped, effects), "intervention": None}
    fields |= context_fields(context, where=str(turn.key), counter=counter)
    if effects.summary in dropped.phases:
        fields["summary"] = None
    if fields["state"] == TurnState.OPEN:
        fields["recorded"] = False
    files = {name: text for name, text in turn.files.items() if name in kept_names}
    return Turn(turn.key, updated_manifest(manifest, fields), context, files)


def _without_sections(context: str, dropped: DroppedPhases, effects: PhaseEffects) -> str:
    numbers = {n for phase, n in effects.sections.items() if phase in dropped.phases and n != 0}
    document = ContextDocument.parse(context)
    return ContextDocument(document.preamble, tuple(s for s in document.sections if s.number not in numbers)).render()


def _state(manifest: Manifest, dropped: DroppedPhases, effects: PhaseEffects) -> TurnState:
    """The state of the turn without the dropped phases."""
    if manifest.state in UNFINISHED:
        return TurnState.OPEN
    final_states = {p: state for p, state in effects.final_states.items() if manifest.has_finished(p)}
    # A recorded turn ran no phase: it counts as ended by the phase that saves a turn.
    final_phases = tuple(final_states) or tuple(p for p, state in effects.final_states.items() if state is TurnState.SAVED)
    if any(p in dropped.phases for p in final_phases):
        return TurnState.OPEN
    # The state of the last final phase of the flow; SAVED for a recorded turn.
    return (TurnState.SAVED, *final_states.values())[-1]
