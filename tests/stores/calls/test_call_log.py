"""The call log: one line a call, beside its turn, readable after a kill."""

import subprocess
import sys
from pathlib import Path

import pytest

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.model_calls import CallRecord, CallTokens
from pandora_dagster.errors import BadIdError
from pandora_dagster.stores.calls.call_log import CallFiles, records_in

KEY = TurnKey("anna", 1)


def call(name="c1", **more):
    fields = {"recipe": "r", "user_id": "anna", "turn_id": "turn_000001", "timestamp": "2026-01-04T14:30:00Z", **more}
    return CallRecord(
        call_id=name,
        recipe_version="v",
        model_layer=ModelLayer.MIND,
        runtime="x",
        phase="p",
        tokens=CallTokens(),
        latency_ms=1.5,
        success=True,
        **fields,
    )


@pytest.fixture
def log(tmp_path):
    (tmp_path / "users/anna/turns/turn_000001/revisions/2").mkdir(parents=True)
    return CallFiles(tmp_path)


def test_records_lie_beside_their_turn(log, tmp_path):
    """In the turn's folder, in its revision's, or by day where there is no turn; `read` finds them all."""
    records = [
        call("a"),
        call("b", revision=2),
        call("c", turn_id=""),
        call("d", turn_id="turn_000077"),
        call("e", turn_id="", timestamp="??"),
    ]
    for record in records:
        log.append(record)
    assert list(records_in(log.path_of(KEY, 0), report=pytest.fail)) == [records[0]]
    assert list(records_in(log.path_of(KEY, 2), report=pytest.fail)) == [records[1]]
    assert list(log.read("anna", report=pytest.fail)) == records
    names = sorted(str(p.relative_to(tmp_path / "users/anna")) for p in tmp_path.rglob("*.jsonl"))
    assert names == [
        "calls/2026-01-04.jsonl",
        "calls/undated.jsonl",
        "turns/turn_000001/calls.jsonl",
        "turns/turn_000001/revisions/2/calls.jsonl",
    ]


def test_credentials_do_not_reach_the_log(log):
    """An error that quotes a request is kept without its key."""
    log.append(call(error="401 for Authorization: Bearer abcdef0123456789abcdef"))
    assert next(records_in(log.path_of(KEY, 0), report=pytest.fail)).error == "401 for Authorization: [redacted]"


def test_half_a_line_is_reported_and_hides_nothing(log, tmp_path):
    """What a killed process left is reported with file and line; records before and after it are read."""
    path = tmp_path / "users/anna/turns/turn_000001/calls.jsonl"
    log.append(call("a"))
    with path.open("ab") as file:
        file.write(b'{"call_id": "ha\xff')
    messages = []
    assert [r.call_id for r in records_in(log.path_of(KEY, 0), report=messages.append)] == ["a"]
    assert messages == [f"{path}:2: half a call record, left by a process that was killed: expected one JSON object"]
    log.append(call("b"))
    assert [r.call_id for r in records_in(log.path_of(KEY, 0), report=messages.append)] == ["a", "b"]
    assert messages[1] == f"{path}:2: no call record: expected one JSON object"


def test_processes_append_whole_lines(log, tmp_path):
    """Two processes writing long lines at once lose and mix nothing."""
    code = (
        "import sys, pathlib; sys.path[:0] = sys.argv[2:4]; import test_call_log as t\n"
        "log = t.CallFiles(pathlib.Path(sys.argv[1]))\n"
        "for n in range(50): log.append(t.call(f'{sys.argv[4]}-{n}', error='x' * 20_000))\n"
    )
    here = Path(__file__)
    command = [sys.executable, "-c", code, str(tmp_path), str(here.parents[2]), str(here.parent)]
    running = [subprocess.Popen([*command, name]) for name in "ab"]
    assert [process.wait(timeout=60) for process in running] == [0, 0]
    found = [r.call_id for r in records_in(log.path_of(KEY, 0), report=pytest.fail)]
    assert sorted(found) == sorted(f"{name}-{n}" for name in "ab" for n in range(50))


def test_ids_that_must_not_become_paths_are_refused(log):
    """User and turn alike."""
    for bad in (call(user_id="../x"), call(turn_id="../../x")):
        with pytest.raises(BadIdError):
            log.append(bad)
