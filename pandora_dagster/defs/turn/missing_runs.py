"""Turns that ran without a record in Dagster: those of batches, and those whose process died between the answer and the record.

Their runs are made from what the turns store.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

import dagster as dg

from pandora_dagster.app import App
from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.turns import TurnRow
from pandora_dagster.defs.instance import TURNS
from pandora_dagster.defs.turn.recorded_run import record_run
from pandora_dagster.errors import PandoraError
from pandora_dagster.phases.core.phase_report import PhaseReport, TimedReports
from pandora_dagster.phases.flow import phase_table
from pandora_dagster.phases.flow.phase_spec import PhaseRole
from pandora_dagster.phases.flow.stored_reports import stored_reports

_MAX_RECENT_TURNS = 50
"""Turns of the user that are looked at after each answer; a turn lacks its record since the last command or server ended."""
_SETTLED = timedelta(minutes=2)
"""A turn that ended this long ago is not about to be recorded by its own process."""
_ENDED_STATES = frozenset({TurnState.SAVED, TurnState.CLARIFY, TurnState.HALTED})


def record_stored_turns(app: App, instance: dg.DagsterInstance, keys: Iterable[TurnKey]) -> list[str]:
    """Record a run for each of these turns that has phases without a materialization, or a halt without a run; return their ids.

    A turn that cannot be read is left out: `doctor` names it.
    """
    run_ids: list[str] = []
    for key in keys:
        try:
            turn = app.turns.load(key)
            reports = stored_reports(turn, app.calls.recorded(key, turn.manifest.revision), app.interventions)
        except PandoraError:
            continue
        if turn.manifest.recorded or not (missing := _unrecorded(instance, reports)):
            continue
        session, folder = turn.manifest.session_id, app.turns.path(key)
        run_ids.append(record_run(instance, key, missing, recipes=app.recipes, session=session, folder=folder))
    return run_ids


def record_recent_turns(app: App, instance: dg.DagsterInstance, user: str) -> list[str]:
    """Record the runs of a user's newest turns that ended a while ago and have no partition: their process died before its record."""
    latest = app.dependencies.clock() - _SETTLED
    rows = app.dependencies.index.rows(user, limit=_MAX_RECENT_TURNS)
    ended = (row for row in rows if row.state in _ENDED_STATES and not row.recorded and datetime.fromisoformat(row.last_activity) < latest)
    keys = [TurnKey.parse(f"{row.user_id}:{row.turn_id}") for row in ended]
    return record_stored_turns(app, instance, [key for key in keys if not instance.has_dynamic_partition(str(TURNS.name), str(key))])


def unrecorded_turns(app: App, instance: dg.DagsterInstance) -> list[TurnKey]:
    """The turns of the store that ended a while ago and have no record: saved without a summary, others without any phase or run.

    The run of a halted turn may have been deleted after PANDORA_RUNS_KEEP_DAYS; the newest one of every other turn stays.
    """
    materialized = {spec.name: instance.get_materialized_partitions(dg.AssetKey(spec.name)) for spec in phase_table.PHASES}
    recorded, saved = set[str]().union(*materialized.values()), materialized[phase_table.phase_in_role(PhaseRole.SUMMARY)]
    now, keep_days = app.dependencies.clock(), app.settings.runs_keep_days

    def is_missing(row: TurnRow) -> bool:
        key, age = TurnKey.parse(f"{row.user_id}:{row.turn_id}"), now - datetime.fromisoformat(row.last_activity)
        if row.recorded or row.state not in _ENDED_STATES or age <= _SETTLED:
            return False
        if row.state == TurnState.SAVED:
            return str(key) not in saved
        is_kept = row.state != TurnState.HALTED or not keep_days or age.days < keep_days
        return str(key) not in recorded and is_kept and not _has_run(instance, key)

    return [TurnKey.parse(f"{row.user_id}:{row.turn_id}") for row in app.dependencies.index.rows() if is_missing(row)]


def _has_run(instance: dg.DagsterInstance, key: TurnKey) -> bool:
    return instance.get_runs_count(dg.RunsFilter(tags={"pandora/user": key.user, "pandora/turn": key.turn_id})) > 0


def _unrecorded(instance: dg.DagsterInstance, reports: TimedReports) -> TimedReports:
    """The reports that Dagster lacks: of phases without a materialization, and of a halt where the turn has no run."""

    def is_unrecorded(report: PhaseReport) -> bool:
        partition = str(report.key)
        if report.halt:
            return not _has_run(instance, report.key)
        wanted = dg.AssetRecordsFilter(dg.AssetKey(report.phase), asset_partitions=[partition])
        return not instance.fetch_materializations(wanted, limit=1).records

    return reports.select(is_unrecorded)
