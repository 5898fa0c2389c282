"""Turns that ran outside Dagster, told to it afterwards."""

import dagster as dg

from pandora_dagster.defs.checks import GATES
from pandora_dagster.defs.report import report_phases


def test_a_chat_turn_appears_as_materialisations_with_checks(graph, cookbook, key):
    """Each phase that ran has its materialisation under the turn's partition; a skipped one has none."""
    reports = [graph.phases.run_phase(name, key) for name in ("turn_request", "reflection", "clarification")]
    report_phases(graph.instance, reports, cookbook=cookbook, folder="/t")
    assert list(graph.instance.get_dynamic_partitions("turns")) == [str(key)]
    assert graph.instance.get_materialized_partitions(dg.AssetKey("reflection")) == {str(key)}
    assert graph.metadata("reflection")["tokens_prompt"] == 300
    assert graph.instance.get_latest_materialization_event(dg.AssetKey("clarification")) is None
    assert _checks(graph.instance, "reflection") == {"schema_validation": True, "confidence_threshold": True}


def test_a_halt_is_an_observation_with_its_failed_check(graph, cookbook, key, halt):
    """A runless event can not fail a partition; the observation names the intervention."""
    graph.phases.halts = {"reflection": halt}
    report_phases(graph.instance, [graph.phases.run_phase("reflection", key)], cookbook=cookbook, folder="/t")
    assert not graph.instance.get_materialized_partitions(dg.AssetKey("reflection"))
    seen = graph.instance.fetch_observations(dg.AssetKey("reflection"), limit=1).records[0]
    assert seen.asset_observation.metadata["intervention"].value == "int_0002"
    assert _checks(graph.instance, "reflection") == {"confidence_threshold": False}


def _checks(instance, phase):
    keys = [dg.AssetCheckKey(dg.AssetKey(phase), gate) for gate in GATES]
    kept = instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    return {key.name: record.event.dagster_event.asset_check_evaluation_data.passed for key, record in kept.items()}
