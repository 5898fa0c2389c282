"""The reports of finished phases, read back from a stored turn whose process did not keep them."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from pandora_dagster.contracts.compression_results import GateVerdict
from pandora_dagster.contracts.model_calls import CallRecord
from pandora_dagster.contracts.ports.record_storage import Interventions
from pandora_dagster.contracts.turns import PhaseRecord, Turn
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.errors import DocumentError, InputError
from pandora_dagster.phases.core.phase_report import PhaseReport, TimedReports
from pandora_dagster.phases.flow.phase_table import phase_order, phase_spec


def stored_reports(turn: Turn, calls: Iterable[CallRecord], interventions: Interventions) -> TimedReports:
    """The reports of a turn's finished phases in order, and of the phase that halted. `calls`: those of its revision.

    Times have whole seconds, as the manifest has. A verdict has no reason and no value: the manifest stores whether a gate passed.
    What a phase without a section showed is not stored.
    """
    known, manifest, phase_calls = set(phase_order()), turn.manifest, tuple(calls)
    records = [record for record in manifest.phases if record.phase in known]
    ends = [_seconds(manifest.created_at), *(_seconds(record.finished_at) for record in records), _seconds(manifest.last_activity)]
    reports = TimedReports(_rising(ends).__next__)
    context = ContextDocument.parse(turn.context)
    for record in records:
        reports.append(_report(turn, record, context, phase_calls))
    if halted := _halted_report(turn, interventions, phase_calls):
        reports.append(halted)
    return reports


def _report(turn: Turn, record: PhaseRecord, context: ContextDocument, calls: tuple[CallRecord, ...]) -> PhaseReport:
    spec, stored = phase_spec(record.phase), record.report
    return PhaseReport(
        record.phase,
        turn.key,
        turn.manifest,
        section=context.body(spec.section) if spec.section is not None and str(spec.section) in turn.manifest.sections else "",
        calls=tuple(call for call in calls if call.phase == record.phase),
        verdicts=tuple(GateVerdict(gate, passed) for gate, passed in stored.get("gates", {}).items()),
        facts=stored.get("facts", {}),
        turn=turn,
        has_answer=spec.has_answer,
    )


def _halted_report(turn: Turn, interventions: Interventions, calls: tuple[CallRecord, ...]) -> PhaseReport | None:
    if turn.manifest.intervention is None:
        return None
    try:
        halt = interventions.show(turn.manifest.intervention)
    except (InputError, DocumentError):
        return None
    if halt.phase not in phase_order():
        return None
    phase_calls = tuple(call for call in calls if call.phase == halt.phase)
    return PhaseReport(halt.phase, turn.key, turn.manifest, calls=phase_calls, halt=halt, turn=turn)


def _rising(times: Iterable[float]) -> Iterator[float]:
    """These times, none before the one before it."""
    latest = 0.0
    for time in times:
        latest = max(latest, time)
        yield latest


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()
