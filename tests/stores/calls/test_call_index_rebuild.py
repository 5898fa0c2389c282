"""The call index made again from the lines."""

from pathlib import Path

import pytest

from pandora_dagster.contracts.enums import ModelLayer, TurnState
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.model_calls import CallRecord, CallTokens
from pandora_dagster.contracts.turns import Manifest
from pandora_dagster.errors import StoreError
from pandora_dagster.stores.calls.call_index import CALL_SCHEMA, DuckCallIndex
from pandora_dagster.stores.calls.call_index_rebuild import rebuild_calls, verify_calls
from pandora_dagster.stores.calls.call_log import CallFiles, IndexedCallLog
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile

_KEY = TurnKey(UserId("ann"), 1)


def _record(call_id: str, **fields: object) -> CallRecord:
    plain = {
        "call_id": call_id,
        "timestamp": "2026-01-04T14:30:00Z",
        "recipe": "pipeline/planner_chat",
        "recipe_version": "abc",
        "model_layer": ModelLayer.MIND,
        "runtime": "extractive",
        "user_id": "ann",
        "turn_id": "turn_000001",
        "phase": "task_plan",
        "tokens": CallTokens(prompt=10, input=20, output=5, total=35, budget=100),
        "latency_ms": 1.5,
        "success": True,
    }
    return CallRecord.model_validate(plain | fields)


class _Store:
    """A turn with two revisions, a day's file, and the index over them."""

    def __init__(self, root: Path) -> None:
        self.files, self.index = CallFiles(root), DuckCallIndex(DuckDBFile(root / "calls.duckdb", CALL_SCHEMA, 5.0))
        self.state = TurnState.SAVED
        self.messages: list[str] = []
        (root / "users/ann/turns/turn_000001/revisions/1").mkdir(parents=True)
        for record in (_record("a"), _record("b", revision=1), _record("c", turn_id="")):
            self.files.append(record)

    def manifest(self, key: TurnKey) -> Manifest:
        values = {"user_id": key.user, "turn_id": key.turn_id, "session_id": "s", "state": self.state}
        return Manifest.model_validate(values | {"created_at": "2026-01-04T14:30:00Z", "last_activity": "2026-01-04T14:30:00Z"})

    def rebuild(self) -> tuple[int, Path | None]:
        return rebuild_calls(self.files, self.index, report=self.messages.append)

    def verify(self) -> tuple[str, ...]:
        return verify_calls(self.files, self.index, self.manifest)


@pytest.fixture
def store(tmp_path: Path) -> _Store:
    return _Store(tmp_path)


def test_calls_of_turns_revisions_and_days_are_taken_in(store: _Store) -> None:
    """Whatever file a record stands in, it is in the index once; then index and lines agree."""
    assert store.rebuild() == (3, None)
    assert sorted(record.call_id for record in store.index.records()) == ["a", "b", "c"]
    assert (store.verify(), store.messages) == ((), [])


def test_a_damaged_index_is_kept_and_made_again(store: _Store) -> None:
    """The remedy that the error names works."""
    store.index.file.path.write_bytes(b"garbage")
    with pytest.raises(StoreError, check=lambda error: "pandora index rebuild" in error.hint):
        store.verify()
    count, damaged_file = store.rebuild()
    assert (count, damaged_file and damaged_file.read_bytes(), store.verify()) == (3, b"garbage", ())


def test_every_difference_is_reported(store: _Store) -> None:
    """A call that is missing, one that says something else, and one that no file knows."""
    store.rebuild()
    with store.index.file.writing() as db:
        db.execute("DELETE FROM calls WHERE call_id = 'a'")
        db.execute("UPDATE calls SET record = ? WHERE call_id = 'b'", [_record("b", retries=9).model_dump_json()])
        db.execute("UPDATE calls SET call_id = 'z', record = ? WHERE call_id = 'c'", [_record("z").model_dump_json()])
    messages = "\n".join(store.verify())
    assert messages.count("\n") == 3
    for part in (
        "call a: missing",
        "call b: the index differs from the record in the file",
        "call c: missing",
        "call z: in the index, but in no file",
    ):
        assert part in messages


def test_an_open_turn_may_be_ahead_of_the_index(store: _Store) -> None:
    """Its calls are taken in when it comes to rest; a saved turn's must be there."""
    store.rebuild()
    store.files.append(_record("d"))
    store.state = TurnState.OPEN
    assert store.verify() == ()
    store.state = TurnState.SAVED
    assert [fault.partition(": ")[2] for fault in store.verify()] == ["call d: missing from the index, expected a row"]


def test_a_broken_line_is_named_and_the_rest_taken_in(store: _Store) -> None:
    """Half a line that a killed process left keeps no other record out."""
    path = store.files.path_of(_KEY, 0)
    path.write_text("{half\n" + path.read_text())
    assert store.rebuild()[0] == 3
    assert [str(path) in line for line in store.messages] == [True]


def test_a_call_index_that_fails_loses_no_turn(store: _Store) -> None:
    """Settling tells what is wrong and goes on; the totals of a turn raise it."""
    calls = IndexedCallLog(store.files, store.index, store.messages.append)
    store.index.file.path.write_bytes(b"garbage")
    calls.index_turns([(_KEY, 0)])
    assert "pandora index rebuild" in store.messages[0]
    with pytest.raises(StoreError):
        calls.totals(_KEY, 0)
    store.rebuild()
    assert calls.totals(_KEY, 0).total_tokens == 35
