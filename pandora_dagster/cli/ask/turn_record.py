"""How a command runs a turn: the phases first, then their record in Dagster, so that the answer waits for no bookkeeping.

See decision 40: docs/decisions/40-the-answer-before-the-bookkeeping.md.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pandora_dagster.cli.output import print_note
from pandora_dagster.phases.core.phase_report import PhaseReport, TimedReports

if TYPE_CHECKING:
    from pandora_dagster.app import App
    from pandora_dagster.contracts.ids import TurnKey


def run_and_record(app: "App", key: "TurnKey", *, on_report: Callable[[PhaseReport], None]) -> PhaseReport:
    """Run the unfinished phases of a turn and record them as a Dagster run; return the report of the last phase.

    A failure of the record is reported and does not fail the turn.
    """
    reports = TimedReports()

    def on_each(report: PhaseReport) -> None:
        reports.append(report)
        on_report(report)

    try:
        last = app.run_turn(key, on_report=on_each)
    except BaseException as error:
        _record(app, key, reports, error)
        raise
    _record(app, key, reports)
    return last


def _record(app: "App", key: "TurnKey", reports: TimedReports, error: BaseException | None = None) -> None:
    if not reports:
        return
    from pandora_dagster.defs.turn.turn_run import report_turn

    try:
        report_turn(app, key, reports, error)
    except Exception as fault:
        print_note(f"pandora: {key}: Dagster has no record of this turn: {fault}")
