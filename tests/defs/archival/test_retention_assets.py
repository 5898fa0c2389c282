"""Originals and old runs deleted through Dagster: what goes, what the page still shows."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from pandora_dagster.app.adapters.erasure_adapters import open_record_folder
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.retention import PrunedTurn, PruneReport, RetentionReason
from pandora_dagster.defs.archival.retention_assets import COLD_ASSET, COLD_JOB, RUNS_JOB, SCHEDULE, cold_asset, runs_asset, runs_schedule
from pandora_dagster.defs.instance import TURNS, add_turn_partitions, remove_turn_partitions
from pandora_dagster.defs.run_records import delete_old_runs
from pandora_dagster.defs.turn.recorded_run import record_run
from pandora_dagster.errors import ConfigurationError
from pandora_dagster.phases.flow.phase_table import PHASES
from pandora_dagster.settings import load_settings
from tests.defs.conftest import timed

ONE, TWO = TurnKey.parse("ann:turn_000001"), TurnKey.parse("ann:turn_000002")
SOON = timedelta(days=1)


@pytest.fixture
def instance(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    with dg.instance_for_test(temp_dir=str(home)) as opened:
        yield opened


@dg.asset(partitions_def=TURNS)
def answered() -> None: ...


@dg.asset(partitions_def=dg.DailyPartitionsDefinition("2026-01-01"))
def nightly(context: dg.AssetExecutionContext) -> None:
    context.log.info("a night")


@dg.asset
def whole() -> None: ...


def ran(instance, asset, partition=None):
    return dg.materialize([asset], instance=instance, partition_key=partition).run_id


def files_of(instance, run):
    return [p for p in Path(instance.root_directory).rglob(f"*{run}*")]


def test_old_runs_go_with_all_their_records_and_every_partition_still_shows(instance):
    """The newest run of each asset and partition stays; a turn whose key is gone needs none."""
    add_turn_partitions(instance, [ONE, TWO])
    old = [ran(instance, answered, str(ONE)), ran(instance, nightly, "2026-01-01"), ran(instance, whole)]
    archived = ran(instance, answered, str(TWO))
    newest = [ran(instance, answered, str(ONE)), ran(instance, nightly, "2026-01-01"), ran(instance, whole)]
    remove_turn_partitions(instance, [TWO])
    done = delete_old_runs(instance, open_record_folder(Path(instance.root_directory)), before=datetime.now(UTC) + SOON)
    assert done == (4, 3)
    assert {r.run_id for r in instance.get_runs()} == set(newest)
    assert not [p for run in (*old, archived) for p in files_of(instance, run)]
    assert all(instance.all_logs(run) for run in newest)
    assert instance.get_materialized_partitions(dg.AssetKey("nightly")) == {"2026-01-01"}
    assert instance.get_materialized_partitions(dg.AssetKey("answered")) == {str(ONE)}
    assert instance.get_latest_materialization_event(dg.AssetKey("whole")).run_id == newest[2]


def test_nothing_of_a_deleted_run_stays_in_a_table(instance, recipes, phases):
    """With the tags and check results that Dagster leaves behind; the run that a live turn needs stays whole."""
    key = TurnKey.parse("ann:turn_000007")
    old, newest = [
        record_run(instance, key, timed(phases.run_phase(p.name, key) for p in PHASES), recipes=recipes, session="s1", folder="/t")
        for _ in range(2)
    ]
    assert delete_old_runs(instance, open_record_folder(Path(instance.root_directory)), before=datetime.now(UTC) + SOON) == (1, 1)
    left = {old: 0, newest: 0}
    for database in open_record_folder(Path(instance.root_directory)).databases():
        with database as db:
            for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                rows = db.execute(f"SELECT * FROM {table}").fetchall()
                left = {run: count + sum(run in str(row) for row in rows) for run, count in left.items()}
    assert left[old] == 0 and left[newest] > 50


def test_young_runs_and_runs_under_way_stay(instance):
    ran(instance, whole)
    ran(instance, whole)
    assert delete_old_runs(instance, open_record_folder(Path(instance.root_directory)), before=datetime.now(UTC) - SOON)[0] == 0
    job = dg.Definitions(assets=[whole], jobs=[dg.define_asset_job("j", selection=[whole])]).resolve_job_def("j")
    waiting = instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED)
    delete_old_runs(instance, open_record_folder(Path(instance.root_directory)), before=datetime.now(UTC) + SOON)
    assert instance.get_run_by_id(waiting.run_id)


def settings(**environ):
    return load_settings({"PANDORA_ROOT": os.devnull + "x", **environ})


def test_run_retention_runs_only_where_days_are_set(instance, tmp_path):
    assert runs_schedule(settings()).default_status is dg.DefaultScheduleStatus.RUNNING, "retention is on by default"
    never = settings(PANDORA_ROOT=str(tmp_path), PANDORA_RUNS_KEEP_DAYS="0")
    assert runs_schedule(never).default_status is dg.DefaultScheduleStatus.STOPPED
    done = dg.materialize([runs_asset(never)], instance=instance, raise_on_error=False)
    assert not done.success
    yearly = settings(PANDORA_ROOT=str(tmp_path), PANDORA_RUNS_KEEP_DAYS="365")
    graph = dg.Definitions(assets=[runs_asset(yearly)], jobs=[RUNS_JOB], schedules=[runs_schedule(yearly)])
    schedule = graph.resolve_schedule_def(SCHEDULE)
    assert (schedule.job_name, schedule.default_status) == (RUNS_JOB.name, dg.DefaultScheduleStatus.RUNNING)
    assert graph.resolve_job_def(RUNS_JOB.name).execute_in_process(instance=instance).success


class Prunes(dg.ConfigurableResource):
    fault: bool = False
    never: bool = False

    def open(self):
        return self

    def prune(self, *, by):
        if self.never:
            raise ConfigurationError("PANDORA_COLD_KEEP_DAYS: 0: originals are kept for ever", hint="set it")
        kept = (PrunedTurn(TWO, "2026-01-04", "cold/x", 7, RetentionReason.FAULT, "missing"),) if self.fault else ()
        return PruneReport(400, False, (PrunedTurn(ONE, "2026-01-04", by, 7),), kept, within_retention=3, deleted_earlier=2)


@pytest.mark.parametrize("fault", [False, True])
def test_cold_retention_tells_what_went_and_fails_its_check_for_a_fault(instance, fault):
    graph = dg.Definitions(assets=[cold_asset()], jobs=[COLD_JOB], resources={"retention": Prunes(fault=fault)})
    done = graph.resolve_job_def(COLD_JOB.name).execute_in_process(instance=instance)
    report = instance.get_latest_materialization_event(dg.AssetKey(COLD_ASSET)).asset_materialization.metadata
    assert (report["deleted"].value, report["young"].value, report["deleted_before"].value, report["bytes_freed"].value) == (1, 3, 2, 7)
    assert report["turns"].records[0].data["cold"] == f"Dagster run {done.run_id}"
    (check,) = done.get_asset_check_evaluations()
    assert check.passed is not fault


def test_cold_retention_without_days_fails_and_says_what_to_set(instance):
    graph = dg.Definitions(assets=[cold_asset()], jobs=[COLD_JOB], resources={"retention": Prunes(never=True)})
    done = graph.resolve_job_def(COLD_JOB.name).execute_in_process(instance=instance, raise_on_error=False)
    (failed,) = [e for e in done.all_events if e.is_step_failure]
    assert "kept for ever" in failed.step_failure_data.user_failure_data.description
