"""The whole graph as it ships, over the shipped recipes."""

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg

from pandora_dagster.definitions import defs

ROOT = Path(__file__).parents[1]


def test_the_whole_graph_is_as_drawn(snapshot):
    """Keys, dependencies, groups, kinds, checks, partitions, code versions: a change to the graph is a change to this text."""
    assert "\n".join(_lines(defs.resolve_asset_graph())) == snapshot


def test_the_jobs_are_turns_batches_and_archival_runs():
    """What a user finds under Jobs, and what ticks by itself."""
    jobs = {j.name for j in defs.resolve_all_job_defs()} - {"__ASSET_JOB"}
    assert jobs == {"turn", "new_turn", "batch", "archival", "prune_cold", "clear_runs", "prompt_scores", "research_refresh"}
    sensor = defs.resolve_sensor_def("inbox_files")
    assert (sensor.job_name, sensor.default_status) == ("batch", dg.DefaultSensorStatus.RUNNING)
    assert defs.resolve_sensor_def("missed_archival_runs").default_status is dg.DefaultSensorStatus.RUNNING
    schedule = defs.resolve_schedule_def("nightly_turn_archival")
    assert (schedule.job_name, schedule.cron_schedule, schedule.default_status) == (
        "archival",
        "0 2 * * *",
        dg.DefaultScheduleStatus.RUNNING,
    )
    scores = defs.resolve_schedule_def("daily_prompt_scores")
    assert (scores.job_name, scores.cron_schedule, scores.default_status) == (
        "prompt_scores",
        "30 5 * * *",
        dg.DefaultScheduleStatus.RUNNING,
    )


def test_the_workspace_loads_an_uninstalled_package(tmp_path):
    """`workspace.yaml` is what `make ui` opens."""
    command = [sys.executable, "-m", "dagster", "definitions", "validate", "-w", "workspace.yaml"]
    home = {"DAGSTER_HOME": str(tmp_path), "PANDORA_ROOT": str(tmp_path / "store")}
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **home}, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "store").exists(), "loading the graph must not touch the store"


def _lines(graph):
    for key in graph.toposorted_asset_keys:
        node = graph.get(key)
        checks = sorted(k.name for k in graph.asset_check_keys if k.asset_key == key)
        yield f"{key.to_user_string()} <- {', '.join(sorted(p.to_user_string() for p in node.parent_keys)) or '-'}"
        yield f"    group {node.group_name}, kinds {', '.join(sorted(node.kinds))}, code version {node.code_version}"
        yield f"    checks {', '.join(checks) or '-'}; {'may be skipped' if _skippable(key) else 'always runs'}"
        yield f"    partitions {_partitions(node.partitions_def)}"


def _partitions(definition):
    if isinstance(definition, dg.DynamicPartitionsDefinition):
        return definition.name
    return "days" if isinstance(definition, dg.DailyPartitionsDefinition) else "-"


def _skippable(key):
    return next(spec.skippable for spec in defs.resolve_all_asset_specs() if spec.key == key)
