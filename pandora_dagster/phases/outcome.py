"""What a phase's run comes to: its report for people, and the part of it that the manifest keeps."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from pandora_dagster.contracts.calls import CallResult, GateVerdict, token_alarm
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.turns import Turn
from pandora_dagster.contracts.words import InterventionType
from pandora_dagster.phases.ctx import PhaseContext, PhaseOutput
from pandora_dagster.phases.report import PhaseReport
from pandora_dagster.text.sections import ContextDocument

_log = logging.getLogger(__name__)
_GATE_OF = {
    InterventionType.SCHEMA_VIOLATION: "schema_validation",
    InterventionType.LOW_CONFIDENCE: "confidence_threshold",
    InterventionType.MISSING_EVIDENCE: "evidence_required",
    InterventionType.TIMEOUT: "timeout_ms",
    InterventionType.FACT_LOSS: "facts_preserved",
}
"""Why a turn halted -> the gate that shows it."""


def worst_verdicts(verdicts: Sequence[GateVerdict]) -> tuple[GateVerdict, ...]:
    """One verdict a gate: the failed one where any call failed it, else the lowest value."""
    worst: dict[str, GateVerdict] = {}
    for verdict in verdicts:
        known = worst.get(verdict.gate)
        if known is None or _rank(verdict) < _rank(known):
            worst[verdict.gate] = verdict
    return tuple(worst.values())


def _rank(verdict: GateVerdict) -> tuple[bool, float]:
    return (verdict.passed, verdict.value if verdict.value is not None else 1.0)


def build_report(
    ctx: PhaseContext, turn: Turn, written: PhaseOutput, verdicts: tuple[GateVerdict, ...], *, halt: Intervention | None = None
) -> PhaseReport:
    """The report of a phase that ran, halted or not."""
    if halt and (gate := _GATE_OF.get(halt.type)):
        verdicts = worst_verdicts([*verdicts, GateVerdict(gate, False, halt.message)])  # pyright: ignore[reportArgumentType] - the table holds gate names only
    shown = "\n\n".join(ContextDocument.parse(turn.context).body(n) for n in sorted(written.sections)) or written.shown
    calls = tuple(r.record for r in ctx.results)
    facts = {**written.facts, **(_turn_usage(ctx) if calls else {})}
    return PhaseReport(ctx.phase, turn.key, turn.manifest, shown, calls, verdicts, facts, halt=halt)


def _turn_usage(ctx: PhaseContext) -> dict[str, Any]:
    """What the turn took so far, compressions included, and the alarm where that is over what is expected of one."""
    spent = ctx.deps.calls.usage(ctx.turn.key, ctx.turn.manifest.revision, phase=ctx.phase)
    facts: dict[str, Any] = {"turn_tokens": spent.tokens, **({"turn_cost": spent.cost} if spent.cost else {})}
    if alarm := token_alarm(spent.tokens):
        facts["turn_tokens_alarm"] = alarm
        if not token_alarm(spent.earlier):
            _log.warning("%s: %s: %s", ctx.turn.key, ctx.phase, alarm)
    return facts


def manifest_report(results: Sequence[CallResult], verdicts: Sequence[GateVerdict], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Per call the figures people ask for, the gates, and the phase's own facts."""
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
