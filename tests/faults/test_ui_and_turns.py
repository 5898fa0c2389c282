"""Real processes over one store and one DAGSTER_HOME: the web page, a turn started from it, and two more beside it."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

from pandora_dagster.app import open_app
from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.defs.instance import open_instance
from pandora_dagster.settings import load_settings

ROOT = Path(__file__).parents[2]
ASK = """
import os, sys
from pandora_dagster.cli.ask.turn_record import run_and_record
from pandora_dagster.settings import load_settings
from pandora_dagster.app import open_app
app = open_app(load_settings(os.environ))
key = app.start("The oak chair cost 240 dollars.", user="ann", session="s1", mode="chat")
last = run_and_record(app, key, on_report=lambda report: None)
app.close()
sys.exit(1 if last.halt else 0)
"""
LAUNCH = """
mutation Launch($config: RunConfigData!) {
  launchRun(executionParams: {
    selector: {repositoryLocationName: "pandora_dagster", repositoryName: "__repository__", jobName: "new_turn"},
    runConfigData: $config
  }) { __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } }
}
"""
AGAIN = """
mutation Again($run: String!) {
  launchRunReexecution(reexecutionParams: {parentRunId: $run, strategy: FROM_FAILURE}) {
    __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }
  }
}
"""
STATUS = "query Status($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"


@pytest.fixture
def environment(tmp_path):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PANDORA_", "DAGSTER_"))}
    return {**kept, "PANDORA_ROOT": str(tmp_path), "DAGSTER_HOME": str(tmp_path / "dagster"), "PANDORA_RUNTIME": "extractive"}


@pytest.fixture
def ui(environment):
    with open_instance(load_settings(environment)), socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "dagster_webserver", "-w", "workspace.yaml", "-h", "127.0.0.1", "-p", str(port)]
    daemon = [sys.executable, "-m", "dagster._daemon", "run", "-w", "workspace.yaml"]  # it takes runs from the queue
    processes = [
        subprocess.Popen(program, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for program in (command, daemon)
    ]
    try:
        yield _answering(f"http://127.0.0.1:{port}")
    finally:
        for process in processes:
            process.send_signal(signal.SIGINT)
        for process in processes:
            process.wait(timeout=30)


def test_a_turn_from_the_page_and_two_asks_at_once_all_end_saved(ui, environment):
    """Three numbers, three partitions, no lock error: the page's run and two processes work side by side."""
    asked = {"query": "What did the chair cost?", "user": "ann", "mode": "chat", "session": "s1"}
    launched = _graphql(ui, LAUNCH, {"config": {"ops": {"ask": {"config": asked}}}})["launchRun"]
    assert launched["__typename"] == "LaunchRunSuccess", launched
    asks = [subprocess.Popen([sys.executable, "-c", ASK], cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    output = [ask.communicate(timeout=120)[1] for ask in asks]
    assert [ask.returncode for ask in asks] == [0, 0], output
    assert _ended(ui, launched["run"]["runId"]) == "SUCCESS"
    settings = load_settings(environment)
    app = open_app(settings)
    keys = sorted(app.dependencies.turns.keys())
    assert [key.number for key in keys] == [1, 2, 3]
    assert {app.dependencies.turns.manifest(key).state for key in keys} == {TurnState.SAVED}
    app.close()
    with open_instance(settings) as instance:
        assert sorted(instance.get_dynamic_partitions("turns")) == [str(key) for key in keys]


def test_a_turn_that_halted_outside_dagster_goes_on_from_the_page(ui, environment):
    """ "Re-execute from failure" on the recorded run of `ask` ends with a saved turn and a closed intervention."""
    ask = [sys.executable, "-c", ASK]
    no_server = {**environment, "PANDORA_RUNTIME": "sglang"}
    assert subprocess.run(ask, cwd=ROOT, env=no_server, stderr=subprocess.PIPE, timeout=120, check=False).returncode == 1
    settings = load_settings(environment)
    with open_instance(settings) as instance:
        (halted,) = instance.get_runs()
    launched = _graphql(ui, AGAIN, {"run": halted.run_id})["launchRunReexecution"]
    assert launched["__typename"] == "LaunchRunSuccess", launched
    assert _ended(ui, launched["run"]["runId"]) == "SUCCESS"
    app = open_app(settings)
    (key,) = app.dependencies.turns.keys()
    assert app.dependencies.turns.manifest(key).state is TurnState.SAVED
    assert [halt.how for halt in app.interventions.list()] == ["went_on"]
    app.close()


def _answering(address):
    last = time.monotonic() + 90
    while time.monotonic() < last:
        try:
            urlopen(f"{address}/server_info", timeout=5).close()
            return address
        except (URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
    raise AssertionError(f"{address}: no answer")


def _ended(address, run_id):
    last = time.monotonic() + 120
    status = ""
    while time.monotonic() < last and status not in ("SUCCESS", "FAILURE", "CANCELED"):
        time.sleep(0.3)
        status = _graphql(address, STATUS, {"id": run_id})["runOrError"]["status"]
    return status


def _graphql(address, query, variables):
    body = json.dumps({"query": query, "variables": variables}).encode()
    with urlopen(Request(f"{address}/graphql", body, {"Content-Type": "application/json"}), timeout=60) as answer:
        return json.load(answer)["data"]
