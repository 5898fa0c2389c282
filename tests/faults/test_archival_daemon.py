"""The archival run as it comes: Dagster's own daemon ticks the schedule, and its run archives and checks what is due."""

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from pandora_dagster.app import open_app
from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.defs.instance import open_instance
from pandora_dagster.defs.turn.turn_run import report_import
from pandora_dagster.settings import load_settings
from tests.faults.processes import environment

REPOSITORY = Path(__file__).parents[2]
TICK_WITHIN_S = 240


@pytest.fixture
def store(tmp_path):
    """The shipped example; the archival run is to come with the next minute but one."""
    settings = load_settings({"PANDORA_ROOT": str(tmp_path / "store")})
    app = open_app(settings)
    report_import(app, app.transfer.import_example(), source="example")
    app.close()
    at = datetime.now(UTC) + timedelta(seconds=75)
    return settings, {**environment(settings.root), "DAGSTER_HOME": str(settings.dagster_home), "PANDORA_ARCHIVE_AT": f"{at:%H:%M}"}


def test_the_daemon_ticks_and_the_archival_run_is_archived(store, tmp_path):
    """Nobody starts anything but the daemon: at the hour it starts one run over all that is due, which archives and checks it."""
    settings, environ = store
    log = (tmp_path / "daemon.log").open("wb")
    command = [sys.executable, "-m", "dagster._daemon", "run", "-w", "workspace.yaml"]
    daemon = subprocess.Popen(command, cwd=REPOSITORY, env=environ, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        run = _finished(settings, tmp_path / "daemon.log")
    finally:
        os.killpg(daemon.pid, signal.SIGINT)
        try:
            daemon.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(daemon.pid, signal.SIGKILL)
            daemon.wait()
        log.close()
    assert run.status is dg.DagsterRunStatus.SUCCESS, (tmp_path / "daemon.log").read_text()[-4000:]
    assert run.tags["dagster/schedule_name"] == "nightly_turn_archival"
    app = open_app(settings)
    keys = list(app.turns.keys(None))
    assert keys and all(app.turns.manifest(key).state is TurnState.ARCHIVED for key in keys)
    assert {app.turns.manifest(key).archive.run_id for key in keys} == {run.run_id}
    days = {app.turns.manifest(key).archive.day for key in keys}
    assert app.indexes.verify() == ()
    app.close()
    with open_instance(settings) as instance:
        assert instance.get_dynamic_partitions("turns") == []
        made = instance.get_materialized_partitions(dg.AssetKey("archived_turns"))
        assert set(made) == days, "an empty day has no partition"


def _finished(settings, log):
    """The run of the job, once it has ended."""
    last = time.monotonic() + TICK_WITHIN_S
    while time.monotonic() < last:
        time.sleep(2)
        with open_instance(settings) as instance:
            runs = instance.get_runs(dg.RunsFilter(job_name="archival"))
        if runs and runs[0].is_finished:
            assert len(runs) == 1
            return runs[0]
    raise AssertionError(f"no run within {TICK_WITHIN_S} s: {log.read_text()[-4000:]}")
