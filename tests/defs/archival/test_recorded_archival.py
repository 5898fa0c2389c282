"""`pandora archive` reported to Dagster: its days are materialized with the metadata and checks of an executed run, once."""

from datetime import date

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.loader import LoadingContextForTest

from pandora_dagster.app.archive_service import ArchiveService, open_archive, open_levels
from pandora_dagster.archive.archive_run import archive_turns
from pandora_dagster.archive.archive_selection import select_turns
from pandora_dagster.archive.session_narratives import summarize_sessions
from pandora_dagster.archive.user_digests import digest_users
from pandora_dagster.contracts.archive_records import ArchiveReport, DayCheck
from pandora_dagster.defs.archival.archive_assets import ASSET
from pandora_dagster.defs.archival.level_assets import DIGESTS, NARRATIVES
from pandora_dagster.defs.archival.recorded_archival import ArchivalRecord, report_archival
from pandora_dagster.defs.instance import ARCHIVAL_DAYS, open_instance
from tests.defs.archival.test_archive_assets import NIGHT, RANGE, definitions, run, tick

ASSETS = (ASSET, NARRATIVES, DIGESTS)


def archived(app, days=None):
    """What `pandora archive` does before its report."""
    record = ArchivalRecord()
    ctx = open_archive(app, run_id=record.run_id)
    record.finish(ASSET, ArchiveService(app).archive(select_turns(ctx, days=days), ctx, on_row=record.add_turn))
    levels = open_levels(app, run_id=record.run_id)
    record.finish(NARRATIVES, app.run(summarize_sessions(levels, on_row=record.add_level_row(NARRATIVES))))
    record.finish(DIGESTS, app.run(digest_users(levels, on_row=record.add_level_row(DIGESTS))))
    return record


def days_of(app):
    return sorted({app.turns.manifest(key).last_activity[:10] for key in app.turns.keys()})  # noqa: SIM118 - a store


def materializations(instance, asset):
    """Partition -> the materializations of it."""
    found = {}
    for record in instance.fetch_materializations(dg.AssetKey(asset), limit=1000).records:
        found.setdefault(record.partition_key, []).append(record.asset_materialization)
    return found


def check_results(instance, asset, names):
    keys = [dg.AssetCheckKey(dg.AssetKey(asset), name) for name in names]
    found = instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    return {key.name: record.event.dagster_event.asset_check_evaluation_data for key, record in found.items()}


def test_each_day_is_materialized_as_by_an_executed_run(app):
    """One run of the job, one materialization a day and asset, all checks, and the lineage names the run."""
    days, record = days_of(app), archived(app)
    run_id = report_archival(app, record)
    with open_instance(app.settings) as instance:
        (stored,) = instance.get_runs()
        assert (stored.run_id, stored.job_name, stored.status) == (run_id, "archival", dg.DagsterRunStatus.SUCCESS)
        assert (stored.tags[RANGE[0]], stored.tags[RANGE[1]]) == (days[0], days[-1])
        assert instance.get_dynamic_partitions(ARCHIVAL_DAYS.name) == days
        for asset in ASSETS:
            found = materializations(instance, asset)
            assert sorted(found) == days and all(len(events) == 1 for events in found.values())
        metadata = materializations(instance, ASSET)[days[0]][0].metadata
        assert metadata["turns"].value and metadata["documents_table"].records and metadata["lineage"].value.endswith(days[0])
        assert all(check.passed for check in check_results(instance, ASSET, [str(check) for check in DayCheck]).values())
        assert set(check_results(instance, ASSET, [str(check) for check in DayCheck])) == set(DayCheck)
        for asset in (NARRATIVES, DIGESTS):
            assert check_results(instance, asset, ["sources_linked"])["sources_linked"].passed
            assert all(events[0].metadata["levels"].records for events in materializations(instance, asset).values())
        resolver = CachingStaleStatusResolver(instance, definitions(app).resolve_asset_graph(), LoadingContextForTest(instance))
        assert {resolver.get_status(dg.AssetKey(asset), day).name for asset in ASSETS for day in days} == {"FRESH"}
    key = next(app.turns.keys())
    assert app.turns.manifest(key).archive.run_id == run_id


def test_the_recorded_metadata_is_that_of_an_executed_run(graph, app, instance):
    """The same days in both: executed, and recorded in the store's own instance."""
    ((first, last),) = tick(graph, instance, NIGHT)
    assert run(graph, instance, first, last).success
    report_archival(app, archived(app))
    with open_instance(app.settings) as own:
        for asset in ASSETS:
            executed, recorded = materializations(instance, asset), materializations(own, asset)
            assert {day: set(events[0].metadata) for day, events in executed.items()} == {
                day: set(events[0].metadata) for day, events in recorded.items()
            }
        for asset, names in ((ASSET, [str(check) for check in DayCheck]), (DIGESTS, ["sources_linked"])):
            executed, recorded = check_results(instance, asset, names), check_results(own, asset, names)
            assert {n: (c.passed, c.severity, set(c.metadata)) for n, c in executed.items()} == {
                n: (c.passed, c.severity, set(c.metadata)) for n, c in recorded.items()
            }


def test_the_next_archival_records_what_a_killed_one_archived(app):
    """The killed one left no record; the next has nothing to archive, and its run has the days. A third one records nothing."""
    days, ctx = days_of(app), open_archive(app)
    app.run(archive_turns(select_turns(ctx, days={date.fromisoformat(day) for day in days[:2]}), ctx))
    assert report_archival(app, archived(app))
    with open_instance(app.settings) as instance:
        assert {asset: sorted(materializations(instance, asset)) for asset in ASSETS} == dict.fromkeys(ASSETS, days)
    record = archived(app)
    assert record.is_empty and report_archival(app, record) == ""
    with open_instance(app.settings) as instance:
        assert all(len(events) == 1 for asset in ASSETS for events in materializations(instance, asset).values())
        assert len(instance.get_runs()) == 1


def test_days_that_a_run_of_dagster_materialized_or_works_on_are_not_recorded(app):
    """What Dagster ran has its record; what it is running gets one from that run."""
    days = days_of(app)
    with open_instance(app.settings) as instance:
        graph = definitions(app)
        ((first, last),) = tick(graph, instance, NIGHT)
        assert run(graph, instance, first, last).success
    assert report_archival(app, archived(app)) == ""
    with open_instance(app.settings) as instance:
        assert all(len(events) == 1 for asset in ASSETS for events in materializations(instance, asset).values())
        instance.wipe_assets([dg.AssetKey(asset) for asset in ASSETS])
        job = graph.resolve_job_def("archival")
        active = instance.create_run_for_job(job, tags={"dagster/partition": days[0]}, status=dg.DagsterRunStatus.STARTED)
    assert report_archival(app, archived(app))
    with open_instance(app.settings) as instance:
        assert sorted(materializations(instance, ASSET)) == days[1:]
        assert not instance.get_run_by_id(active.run_id).is_finished


@pytest.mark.parametrize("stopped", ["", "the disk is full"])
def test_an_archival_that_ended_early_is_a_failed_run(app, stopped):
    """Its days are failed, so that the next run of the schedule takes them; the step has the reason."""
    record = ArchivalRecord()
    record.days.add(date(2026, 1, 4))
    record.finish(ASSET, ArchiveReport(due=1, stopped=stopped, hint="free some space"))
    run_id = report_archival(app, record)
    with open_instance(app.settings) as instance:
        ended = instance.get_run_by_id(run_id)
        assert ended.status is (dg.DagsterRunStatus.FAILURE if stopped else dg.DagsterRunStatus.SUCCESS)
        status = instance.get_status_by_partition(dg.AssetKey(ASSET), ["2026-01-04"], ARCHIVAL_DAYS)
        assert {day: found.value for day, found in status.items()} == {"2026-01-04": "FAILED" if stopped else "MATERIALIZED"}
        failures = [
            e.dagster_event.step_failure_data for e in instance.all_logs(run_id) if e.dagster_event and e.dagster_event.is_step_failure
        ]
        assert [f.user_failure_data.description for f in failures] == ([f"{ASSET}: {stopped}"] if stopped else [])
