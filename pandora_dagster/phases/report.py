"""What one phase reports to whoever ran it: Dagster, the command line, a test. Shapes only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pandora_dagster.contracts.calls import CallRecord, GateVerdict
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.turns import Manifest


@dataclass(frozen=True, slots=True)
class PhaseReport:
    """One run of one phase of one turn.

    `skipped`: the turn took the other branch, nothing was written. `halt`: the turn stopped here, the intervention is
    written and the manifest says `halted`. `verdicts` holds the worst verdict per gate over the phase's calls.
    """

    phase: str
    key: TurnKey
    manifest: Manifest
    section: str = ""
    """The Markdown that the phase wrote into context.md, or shows where it writes none."""
    calls: tuple[CallRecord, ...] = ()
    verdicts: tuple[GateVerdict, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further numbers and tables (lists of flat mappings) to display."""
    skipped: bool = False
    halt: Intervention | None = None

    @property
    def has_answer(self) -> bool:
        """Whether the turn's answer, or its question back, is there with this phase."""
        return self.phase in _ANSWER_PHASES and not self.skipped and self.halt is None


_ANSWER_PHASES = ("saved_turn", "clarification", "plan_clarification")
