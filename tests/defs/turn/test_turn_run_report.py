"""Turns that ran outside Dagster, told to it afterwards."""

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.loader import LoadingContextForTest

from pandora_dagster.defs.turn.phase_checks import GATE_DESCRIPTIONS
from pandora_dagster.defs.turn.recorded_run import record_run
from pandora_dagster.errors import StoreError
from pandora_dagster.phases.flow.phase_table import PHASES
from tests.defs.conftest import timed


def test_a_chat_turn_appears_as_materialisations_with_checks(graph, recipes, key):
    """One successful run has each phase that ran under the turn's partition; a skipped one has no event."""
    reports = timed(graph.phases.run_phase(name, key) for name in ("turn_request", "reflection", "clarification"))
    run_id = record_run(graph.instance, key, reports, recipes=recipes, session="s1", folder="/t")
    record = graph.instance.get_run_record_by_id(run_id)
    assert (record.dagster_run.status, record.dagster_run.job_name) == (dg.DagsterRunStatus.SUCCESS, "turn")
    assert (record.start_time, record.end_time) == (1_700_000_000, 1_700_000_002)
    assert list(graph.instance.get_dynamic_partitions("turns")) == [str(key)]
    assert graph.instance.get_materialized_partitions(dg.AssetKey("reflection")) == {str(key)}
    assert graph.metadata("reflection")["tokens_prompt"] == 300
    assert graph.instance.get_latest_materialization_event(dg.AssetKey("clarification")) is None
    assert _checks(graph.instance, "reflection") == {"schema_validation": True, "confidence_threshold": True}
    origin = record.dagster_run.remote_job_origin
    assert (origin.repository_origin.code_location_origin.location_name, origin.job_name) == ("pandora_dagster", "turn")


def test_a_chat_turn_that_halts_is_a_failed_run(graph, recipes, key, halt):
    """Its page names the failed check, the reason and the intervention; no phase runs again, and what went through is there."""
    graph.phases.halts = {"reflection": halt}
    reports = timed(graph.phases.run_phase(name, key) for name in ("turn_request", "query_analysis", "reflection"))
    graph.phases.ran.clear()
    record_run(graph.instance, key, reports, recipes=recipes, session="s1", folder="/t")
    assert graph.phases.ran == []
    (run,) = graph.instance.get_runs()
    assert (run.status, run.job_name, run.tags["pandora/turn"], run.tags["pandora/session"]) == (
        dg.DagsterRunStatus.FAILURE,
        "turn",
        key.turn_id,
        "s1",
    )
    assert graph.materialised(run.run_id) == ["turn_request", "query_analysis"]
    assert run.asset_selection is None, "a re-execution goes on to the answer"
    failed = graph.failure(run.run_id, "reflection")
    assert "HALT at reflection" in failed.description and failed.metadata["intervention"].value == "int_0002"
    assert failed.metadata["resolve"].value == "`pandora interventions resolve int_0002 --retry`"
    assert graph.checks(run.run_id)["reflection", "confidence_threshold"] is False
    status = graph.instance.get_status_by_partition(dg.AssetKey("reflection"), [str(key)], dg.DynamicPartitionsDefinition(name="turns"))
    assert {name: found.value for name, found in status.items()} == {str(key): "FAILED"}


def test_a_turn_that_an_error_stopped_is_a_failed_run(graph, recipes, key):
    """Its phases are there; the run names the error, with credentials redacted."""
    reports = timed([graph.phases.run_phase("turn_request", key)])
    error = StoreError("disk full; password=hunter2secret99")
    run_id = record_run(graph.instance, key, reports, recipes=recipes, session="s1", folder="/t", error=error)
    assert graph.instance.get_run_by_id(run_id).status is dg.DagsterRunStatus.FAILURE
    (failed,) = [e for e in graph.events(run_id) if e.event_type_value == "PIPELINE_FAILURE"]
    assert "disk full" in failed.job_failure_data.error.message and "hunter2secret99" not in failed.job_failure_data.error.message
    assert graph.materialised(run_id) == ["turn_request"]


def test_the_phases_of_a_recorded_turn_are_in_sync(graph, recipes, key):
    """Each materialization names the version of the phase before it, as those of executed runs do: the UI shows none as unsynced."""
    names = [spec.name for spec in PHASES if spec.name not in ("clarification", "plan_clarification")]
    record_run(graph.instance, key, timed(graph.phases.run_phase(n, key) for n in names), recipes=recipes, session="s1", folder="/t")
    definitions = dg.Definitions(graph.assets, resources={"pandora": graph.phases})
    resolver = CachingStaleStatusResolver(graph.instance, definitions.resolve_asset_graph(), LoadingContextForTest(graph.instance))
    assert {name: resolver.get_status(dg.AssetKey(name), str(key)).name for name in names} == dict.fromkeys(names, "FRESH")


def test_a_turn_without_a_phase_leaves_no_record(graph, recipes, key):
    """Nothing ran: no run, no partition that would read Missing."""
    assert record_run(graph.instance, key, timed([]), recipes=recipes, session="s1", folder="/t") == ""
    assert not graph.instance.get_runs() and not graph.instance.get_dynamic_partitions("turns")


@pytest.mark.parametrize("message", [False, True])
def test_a_failed_check_carries_reason_and_intervention(graph, recipes, key, halt, message):
    """Whether the turn ran in Dagster or was reported to it."""
    graph.phases.halts = {"reflection": halt}
    if message:
        record_run(graph.instance, key, timed([graph.phases.run_phase("reflection", key)]), recipes=recipes, session="s1", folder="/t")
    else:
        graph.run()
    (run,) = graph.instance.get_runs()
    kept = [e.asset_check_evaluation_data for e in graph.events(run.run_id) if e.event_type_value == "ASSET_CHECK_EVALUATION"]
    (failed,) = [c for c in kept if not c.passed]
    assert {name: value.value for name, value in failed.metadata.items()} == {
        "turn": str(key),
        "value": 0.42,
        "reason": "confidence 0.42 is under 0.7",
        "intervention": "int_0002",
        "halt": "confidence 0.42 is under 0.7",
    }


def _checks(instance, phase):
    keys = [dg.AssetCheckKey(dg.AssetKey(phase), gate) for gate in GATE_DESCRIPTIONS]
    kept = instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    return {key.name: record.event.dagster_event.asset_check_evaluation_data.passed for key, record in kept.items()}
