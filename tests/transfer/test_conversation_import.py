"""Conversations imported as recorded turns, and exported again."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.contracts.turns import Manifest, Turn, TurnRow
from pandora_dagster.contracts.user.conversations import SessionRecord
from pandora_dagster.documents.sections import parse_context
from pandora_dagster.errors import StoreError, UnknownTurnError
from pandora_dagster.language.terms import TermReader
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from pandora_dagster.stores.search.turn_index import DuckTurnIndex
from pandora_dagster.stores.search.turn_index_rebuild import Preambles, verify_turns
from pandora_dagster.stores.search.turn_tables import TURN_SCHEMA
from pandora_dagster.transfer.conversation_export import export_conversations
from pandora_dagster.transfer.conversation_import import ImportContext, ImportReport, import_conversations


class _Disk:
    """Turns and session records in memory; `writes_left` writes succeed before it fails, as a full disk does."""

    def __init__(self) -> None:
        self.turns: dict[TurnKey, Turn] = {}
        self.sessions: dict[tuple[str, str], SessionRecord] = {}
        self.last: Counter[str] = Counter()
        self.writes_left = 10**9

    def allocate(self, user: UserId, count: int) -> range:
        self._burn()
        self.last[user] += count
        return range(self.last[user] - count + 1, self.last[user] + 1)

    def place_many(self, turns: Iterable[tuple[TurnKey, Mapping[str, str], Manifest]]) -> tuple[Turn, ...]:
        return tuple(self._place(*turn) for turn in turns)

    def _place(self, key: TurnKey, files: Mapping[str, str], manifest: Manifest) -> Turn:
        self._burn()
        if key in self.turns:
            raise StoreError(f"{key}: already exists")
        filled = manifest.model_copy(update={"context_sha": files["context.md"][:20], "tokens": len(files["context.md"])})
        self.turns[key] = Turn(key, filled, files["context.md"], {name: text for name, text in files.items() if name != "context.md"})
        return self.turns[key]

    def find(self, user: UserId, session: SessionId) -> SessionRecord | None:
        return self.sessions.get((user, session))

    def begin(self, record: SessionRecord) -> SessionRecord:
        if (record.user_id, record.session_id) not in self.sessions:
            self.save(record)
        return self.sessions[record.user_id, record.session_id]

    def save(self, record: SessionRecord) -> None:
        self._burn()
        self.sessions[record.user_id, record.session_id] = SessionRecord.model_validate_json(record.model_dump_json())

    def records(self, user: UserId | None = None, *, on_fault: object = None) -> Iterable[SessionRecord]:
        return sorted((r for r in self.sessions.values() if user in (None, r.user_id)), key=lambda r: (r.user_id, r.first_turn))

    def keys(self, user: UserId | None = None) -> Iterable[TurnKey]:
        return sorted(key for key in self.turns if user in (None, key.user))

    def manifest(self, key: TurnKey) -> Manifest:
        return self.turns[key].manifest

    def load(self, key: TurnKey, *, revision: int | None = None) -> Turn:
        if key not in self.turns:
            raise UnknownTurnError(f"{key}: there is no such turn")
        return self.turns[key]

    def original(self, key: TurnKey, *, revision: int | None = None) -> Turn:
        return self.load(key)

    def _burn(self) -> None:
        self.writes_left -= 1
        if self.writes_left < 0:
            raise StoreError("disk: full")


@pytest.fixture
def disk() -> _Disk:
    return _Disk()


@pytest.fixture
def index(tmp_path: Path) -> DuckTurnIndex:
    return DuckTurnIndex(DuckDBFile(tmp_path / "turn_index.duckdb", TURN_SCHEMA, 10.0))


def _import_context(disk: _Disk, index: DuckTurnIndex) -> ImportContext:
    return ImportContext(disk, disk, index, TermReader())


def _import(disk: _Disk, index: DuckTurnIndex, *lines: object) -> ImportReport:
    raw = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    return import_conversations(raw, _import_context(disk, index), where="chats.jsonl")


def _conversation(name: str, *messages: dict[str, Any], user: str = "ann", **fields: Any) -> dict[str, Any]:
    return {"id": name, "user_id": user, "created_at": "2024-05-15T15:00:00+02:00", "messages": list(messages), **fields}


_SYSTEM = {"role": "system", "content": "rules"}
_ASK = {"role": "user", "content": "Which flight did I book?", "id": "D1"}
_CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "get", "arguments": "{}"}}],
}
_RESULT = {"role": "tool", "tool_call_id": "c", "name": "get", "content": "HAT113 for $340", "x": [1.5, None]}
_ANSWER = {"role": "assistant", "content": "You booked HAT113."}
_FULL = _conversation("trip", _SYSTEM, _ASK, _CALL, _RESULT, _ANSWER, {"role": "user", "content": "Thanks"}, topic="air")


def test_a_conversation_becomes_recorded_turns(disk: _Disk, index: DuckTurnIndex) -> None:
    """Each turn is saved, marked as recorded, dated as the conversation, summarised and indexed."""
    report = _import(disk, index, _FULL)
    assert (report.conversations, report.turns, report.unchanged, report.faults) == (1, 2, 0, ())
    first = disk.turns[TurnKey(UserId("ann"), 1)]
    manifest = first.manifest
    assert (manifest.state, manifest.recorded, manifest.runtime, manifest.session_id) == (TurnState.SAVED, True, "recorded", "trip")
    assert manifest.created_at == manifest.last_activity == "2024-05-15T13:00:00Z"
    assert manifest.summary is not None
    assert manifest.summary["runtime"] == "extractive"
    assert parse_context(first.context, where="t").query() == "Which flight did I book?"
    assert "HAT113 for $340" in parse_context(first.context, where="t").body(4)
    assert set(first.files) == {"messages.jsonl"}
    assert [c.row.turn_id for c in index.candidates("ann", "what did HAT113 cost", limit=1)] == ["turn_000001"]
    assert verify_turns(disk, index, Preambles(disk)) == ()


def test_importing_twice_changes_nothing(disk: _Disk, index: DuckTurnIndex) -> None:
    """The second import writes neither documents nor rows, in whatever order keys stand."""
    _import(disk, index, _FULL)
    turns, rows = dict(disk.turns), index.rows()
    disk.writes_left = 0
    report = _import(disk, index, dict(reversed(_FULL.items())))
    assert (report.turns, report.unchanged, report.faults) == (0, 1, ())
    assert (disk.turns, index.rows()) == (turns, rows)


def test_other_content_under_a_known_id_is_a_fault(disk: _Disk, index: DuckTurnIndex) -> None:
    """Nothing is overwritten; another user may use the same id."""
    _import(disk, index, _conversation("a", _ASK))
    before = dict(disk.turns)
    report = _import(disk, index, _conversation("a", _ASK, _ANSWER), _conversation("a", _ASK, _ANSWER, user="bob"))
    assert report.faults == ("chats.jsonl:1: conversation 'a' of ann: other content is stored under this id and is kept",)
    assert before.items() <= disk.turns.items()
    assert report.conversations == 1


def test_a_broken_line_is_named_and_the_rest_imported(disk: _Disk, index: DuckTurnIndex) -> None:
    """Blank lines are passed over; each fault carries its line number."""
    report = _import(disk, index, b"{oops\n", b"\n", _conversation("a", _ASK), {"id": "b"}, _conversation("c", {"role": "robot"}))
    assert [fault.split(": ")[0] for fault in report.faults] == ["chats.jsonl:1:2", "chats.jsonl:4", "chats.jsonl:5"]
    assert (report.conversations, report.turns, report.lines) == (1, 1, 5)


def test_the_same_line_twice_in_a_file_is_one_conversation(disk: _Disk, index: DuckTurnIndex) -> None:
    """A double inside one file is unchanged, other content under the id a fault."""
    report = _import(disk, index, _conversation("a", _ASK), _conversation("a", _ASK), _conversation("a", _ANSWER))
    assert (report.conversations, report.unchanged, len(report.faults), len(disk.turns)) == (1, 1, 1, 1)


def test_numbers_rise_per_user_in_the_given_order(disk: _Disk, index: DuckTurnIndex) -> None:
    """Conversations of one file number their turns one after the other."""
    _import(disk, index, _conversation("b", _ASK, _ASK), _conversation("x", _ASK, user="bob"), _conversation("a", _ASK))
    found = [(key.user, key.number, disk.turns[key].manifest.session_id) for key in sorted(disk.turns)]
    assert found == [("ann", 1, "b"), ("ann", 2, "b"), ("ann", 3, "a"), ("bob", 1, "x")]


@pytest.mark.parametrize("writes", range(9))
def test_an_import_that_was_cut_off_goes_on(disk: _Disk, index: DuckTurnIndex, writes: int) -> None:
    """Whatever write fails, importing again completes it without doubles, and what is there comes back equal."""
    lines = [_FULL, _conversation("other", _ASK, _ANSWER)]
    disk.writes_left = writes
    with pytest.raises(StoreError):
        _import(disk, index, *lines)
    disk.writes_left = 10**9
    report = _import(disk, index, *lines)
    assert report.faults == ()
    assert len(disk.turns) == len(index.rows()) == 3
    assert verify_turns(disk, index, Preambles(disk)) == ()
    assert {record.state for record in disk.records()} == {"complete"}
    assert {e["id"]: e for e in export_conversations(disk, disk)} == {line["id"]: line for line in lines}


def test_an_index_that_refuses_leaves_the_import_to_be_taken_up(disk: _Disk, index: DuckTurnIndex) -> None:
    """Documents without rows are completed by the next import."""

    class Refusing:
        def put(self, rows: Iterable[TurnRow]) -> None:
            raise StoreError("index: locked")

        rows = index.rows
        candidates = index.candidates

    raw = [json.dumps(_FULL).encode()]
    ctx = _import_context(disk, index)
    with pytest.raises(StoreError):
        import_conversations(raw, ImportContext(disk, disk, Refusing(), ctx.reader), where="f")
    assert list(export_conversations(disk, disk)) == []
    assert import_conversations(raw, ctx, where="f").turns == 2
    assert (len(index.rows()), len(disk.turns)) == (2, 2)


def test_two_imports_at_once_make_each_turn_once(disk: _Disk, index: DuckTurnIndex) -> None:
    """Another import wrote the session record between the look and the write: its numbers hold for both."""

    class Late(_Disk):
        def find(self, user: UserId, session: SessionId) -> SessionRecord | None:
            return None

    late = Late()
    late.turns, late.sessions, late.last = disk.turns, disk.sessions, disk.last
    _import(disk, index, _FULL)
    report = import_conversations([json.dumps(_FULL).encode()], _import_context(late, index), where="f")
    assert (report.unchanged, report.faults, len(disk.turns), len(index.rows())) == (1, (), 2, 2)


def test_a_conversation_without_a_user_message_is_kept_as_a_preamble(disk: _Disk, index: DuckTurnIndex) -> None:
    """No turn is made, and it leaves as it came."""
    line = _conversation("quiet", _SYSTEM, _ANSWER)
    assert _import(disk, index, line).turns == 0
    assert list(export_conversations(disk, disk)) == [line]


def test_a_greeting_before_the_first_turn_is_found(disk: _Disk, index: DuckTurnIndex) -> None:
    """What the assistant said first is searched under the turn that follows, and stands in no other."""
    _import(disk, index, _conversation("g", _SYSTEM, {"role": "assistant", "content": "Welcome to the aquarium"}, _ASK, _ANSWER, _ASK))
    found = index.candidates("ann", "aquarium", limit=1)
    assert [c.row.number for c in found] == [1]
    assert "aquarium" not in disk.turns[TurnKey(UserId("ann"), 2)].context


def test_a_message_with_its_own_time_dates_its_turn(disk: _Disk, index: DuckTurnIndex) -> None:
    """A time that cannot be read is passed over."""
    _import(disk, index, _conversation("t", {**_ASK, "created_at": "2024-06-01T00:00:00Z"}, {**_ASK, "timestamp": "noon"}))
    assert [row.created_at for row in index.rows()] == ["2024-05-15T13:00:00Z", "2024-06-01T00:00:00Z"]


def test_progress_is_reported_after_every_line(disk: _Disk, index: DuckTurnIndex) -> None:
    """Who shows a bar sees the lines go by and the end."""
    seen: list[int] = []
    raw = [json.dumps(_conversation(name, _ASK)).encode() for name in ("a", "b")]
    import_conversations(raw, _import_context(disk, index), where="f", progress=lambda report: seen.append(report.lines))
    assert seen == [1, 2, 2]


def test_many_conversations_are_stored_in_batches(disk: _Disk, index: DuckTurnIndex) -> None:
    """A file of more turns than a batch is imported whole, and turns are placed before its end is read."""
    placed_early: list[int] = []

    def lines() -> Iterable[bytes]:
        for number in range(12):
            placed_early.append(len(disk.turns))
            yield json.dumps(_conversation(f"c{number}", *([_ASK] * 100))).encode()

    report = import_conversations(lines(), _import_context(disk, index), where="f")
    assert (report.turns, len(report.keys), len(disk.turns), len(index.rows())) == (1200, 1200, 1200, 1200)
    assert 1000 <= placed_early[-1] < 1200
