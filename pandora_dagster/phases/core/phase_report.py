"""Reports of phases: for users, and the part that the manifest stores."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pandora_dagster.contracts.compression_results import GateVerdict
from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.model_calls import CallRecord, CallResult, token_alarm
from pandora_dagster.contracts.turns import Manifest, Turn
from pandora_dagster.phases.core.phase_context import PhaseContext, PhaseOutput


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
    turn: Turn | None = None
    """The turn as the phase left it; None where it cannot be read."""
    has_answer: bool = False
    """Whether the turn's answer, or its question back, is stored since this phase."""


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """When a phase began and ended, in seconds since 1970."""

    begin: float
    end: float


class TimedReports(list[PhaseReport]):
    """The reports of one turn in order; `spans` holds the time of each, from the end of the phase before it."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._clock, self._last_end = clock, clock()
        self.spans: list[TimeSpan] = []

    def append(self, report: PhaseReport) -> None:
        end = self._clock()
        self.spans.append(TimeSpan(self._last_end, end))
        self._last_end = end
        super().append(report)

    def select(self, is_wanted: Callable[[PhaseReport], bool]) -> "TimedReports":
        """These reports without the others, each with its time."""
        selected = TimedReports(lambda: self._last_end)
        for report, span in zip(self, self.spans, strict=True):
            if is_wanted(report):
                list.append(selected, report)  # pyright: ignore[reportUnknownMemberType]
                selected.spans.append(span)
        return selected


_log = logging.getLogger(__name__)
_GATES_BY_INTERVENTION = {
    InterventionType.SCHEMA_VIOLATION: "schema_validation",
    InterventionType.MISSING_EVIDENCE: "evidence_required",
    InterventionType.TIMEOUT: "timeout_ms",
    InterventionType.FACT_LOSS: "no_fact_changed",
}
"""Type of the intervention -> the gate that reports it."""


def worst_verdicts(verdicts: Sequence[GateVerdict]) -> tuple[GateVerdict, ...]:
    """One verdict for each gate: the failed one where any call failed it, else the one of the lowest value."""
    worst: dict[str, GateVerdict] = {}
    for verdict in verdicts:
        worst_so_far = worst.get(verdict.gate)
        if worst_so_far is None or _rank(verdict) < _rank(worst_so_far):
            worst[verdict.gate] = verdict
    return tuple(worst.values())


def _rank(verdict: GateVerdict) -> tuple[bool, float]:
    """Sorts failed verdicts first, then low values."""
    return (verdict.passed, verdict.value if verdict.value is not None else 1.0)


def build_report(
    ctx: PhaseContext, turn: Turn, output: PhaseOutput, verdicts: tuple[GateVerdict, ...], *, halt: Intervention | None = None
) -> PhaseReport:
    """The report of a phase that ran, halted or not."""
    if halt and (gate := _GATES_BY_INTERVENTION.get(halt.type)):
        verdicts = worst_verdicts([*verdicts, GateVerdict(gate, False, halt.message)])  # pyright: ignore[reportArgumentType] - the table holds gate names only
    section = "\n\n".join(ctx.context_document.body(n) for n in sorted(output.sections)) or output.shown
    calls = tuple(r.record for r in ctx.results)
    facts = {**output.facts, **(_turn_usage(ctx) if calls else {})}
    return PhaseReport(ctx.phase, turn.key, turn.manifest, section, calls, verdicts, facts, halt=halt)


def _turn_usage(ctx: PhaseContext) -> dict[str, Any]:
    """Tokens and cost of the turn so far, compressions included, and an alarm where they exceed what is expected of a turn."""
    usage = ctx.deps.calls.usage(ctx.turn.key, ctx.turn.manifest.revision, phase=ctx.phase)
    facts: dict[str, Any] = {"turn_tokens": usage.tokens, **({"turn_cost": usage.cost} if usage.cost else {})}
    if alarm := token_alarm(usage.tokens):
        facts["turn_tokens_alarm"] = alarm
        if not token_alarm(usage.other_phase_tokens):
            _log.warning("%s: %s: %s", ctx.turn.key, ctx.phase, alarm)
    return facts


def manifest_report(results: Sequence[CallResult], verdicts: Sequence[GateVerdict], facts: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of each call, the gates, and the phase's own facts."""
    calls = [
        {
            "call_id": r.record.call_id,
            "recipe": r.record.recipe,
            "prompt": r.record.prompt_version,
            "layer": r.record.model_layer.value,
            "model": r.record.model,
            "tokens": r.record.tokens.total,
            "budget": r.record.tokens.budget,
            "latency_ms": round(r.record.latency_ms, 1),
            "retries": r.record.retries,
        }
        for r in results
    ]
    return {"calls": calls, "gates": {v.gate: v.passed for v in verdicts}, "facts": dict(facts)}
