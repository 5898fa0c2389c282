"""Turns leave as conversations."""

from collections.abc import Iterable

import pytest

from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.contracts.turns import Manifest, Turn
from pandora_dagster.contracts.user.conversations import SessionRecord
from pandora_dagster.documents.sections import new_context
from pandora_dagster.errors import DocumentError
from pandora_dagster.transfer.conversation_export import export_conversations


class _Store:
    """Turns and session records that are there."""

    def __init__(self, turns: Iterable[Turn] = (), records: Iterable[SessionRecord] = ()) -> None:
        self.turns = {turn.key: turn for turn in turns}
        self.kept = list(records)

    def keys(self, user: UserId | None = None) -> Iterable[TurnKey]:
        return sorted(key for key in self.turns if user in (None, key.user))

    def manifest(self, key: TurnKey) -> Manifest:
        return self.turns[key].manifest

    def original(self, key: TurnKey, *, revision: int | None = None) -> Turn:
        return self.turns[key]

    def find(self, user: UserId, session: SessionId) -> SessionRecord | None:
        return None

    def begin(self, record: SessionRecord) -> SessionRecord:
        return record

    def save(self, record: SessionRecord) -> None:
        self.kept.append(record)

    def records(self, user: UserId | None = None, *, on_fault: object = None) -> Iterable[SessionRecord]:
        return [record for record in self.kept if user in (None, record.user_id)]


def _live(
    number: int, query: str, *, session: str = "main", user: str = "ann", recorded: bool = False, answer: str = "", **files: str
) -> Turn:
    created = f"2026-01-04T14:{number:02d}:00Z"
    fields = {"user_id": user, "turn_id": f"turn_{number:06d}", "session_id": session, "created_at": created, "last_activity": created}
    document = new_context(query)
    context = (document.with_section(5, answer) if answer else document).render()
    return Turn(TurnKey(UserId(user), number), Manifest.model_validate(fields | {"recorded": recorded}), context, files)


def _record(**fields: object) -> SessionRecord:
    plain = {
        "user_id": "ann",
        "session_id": "old",
        "created_at": "2024",
        "state": "complete",
        "content_sha": "x",
        "first_turn": 1,
        "turn_count": 1,
    }
    return SessionRecord.model_validate(plain | fields)


def test_live_turns_leave_by_session() -> None:
    """The user's words verbatim, the answer as it was given; a turn without an answer keeps its question."""
    turns = [
        _live(1, " a \n", **{"response.md": "one [1]"}),
        _live(2, "b", session="other"),
        _live(3, "c", answer="from section 5"),
        _live(1, "d", user="bob"),
    ]
    assert list(export_conversations(_Store(turns), _Store())) == [
        {
            "id": "main",
            "user_id": "ann",
            "created_at": "2026-01-04T14:01:00Z",
            "messages": [
                {"role": "user", "content": " a \n"},
                {"role": "assistant", "content": "one [1]"},
                {"role": "user", "content": "c"},
                {"role": "assistant", "content": "from section 5"},
            ],
        },
        {"id": "other", "user_id": "ann", "created_at": "2026-01-04T14:02:00Z", "messages": [{"role": "user", "content": "b"}]},
        {"id": "main", "user_id": "bob", "created_at": "2026-01-04T14:01:00Z", "messages": [{"role": "user", "content": "d"}]},
    ]


def test_only_the_asked_user_leaves() -> None:
    """`user` narrows the export."""
    store = _Store(
        [_live(1, "a"), _live(1, "b", user="bob")],
        [_record(turn_count=0, first_turn=0), _record(turn_count=0, first_turn=0, user_id="bob")],
    )
    assert {conversation["user_id"] for conversation in export_conversations(store, store, UserId("bob"))} == {"bob"}


def test_an_imported_conversation_that_went_on_keeps_its_messages() -> None:
    """Live turns in an imported session leave as a conversation of their own."""
    imported = _live(1, "hi", session="old", recorded=True, **{"messages.jsonl": '{"role": "user", "content": "hi"}\n'})
    store = _Store([imported, _live(2, "and now?", session="old")], [_record()])
    assert [(c["id"], [m["content"] for m in c["messages"]]) for c in export_conversations(store, store)] == [
        ("old", ["hi"]),
        ("old.live", ["and now?"]),
    ]


def test_an_import_that_was_cut_off_is_left_out() -> None:
    """Half a conversation never leaves as a whole one."""
    store = _Store([], [_record(state="importing")])
    assert list(export_conversations(store, store)) == []


def test_a_recorded_turn_without_its_messages_is_named() -> None:
    """A lost file is an error, not a shorter conversation."""
    store = _Store([_live(1, "hi", session="old", recorded=True)], [_record()])
    with pytest.raises(DocumentError, match=r"ann:turn_000001: messages.jsonl: missing"):
        list(export_conversations(store, store))
