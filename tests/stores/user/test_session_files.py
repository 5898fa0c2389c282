"""Records of imported conversations."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pandora_dagster.contracts.ids import SessionId, UserId
from pandora_dagster.contracts.user.conversations import SessionRecord
from pandora_dagster.errors import DocumentError
from pandora_dagster.stores.user.session_files import SessionFiles, session_folder

ANN = UserId("ann")


def _record(name: str = "s1", first: int = 1, user: str = "ann") -> SessionRecord:
    return SessionRecord(
        user_id=user, session_id=name, created_at="2026-01-04T14:30:00Z", state="importing", content_sha="x", first_turn=first, turn_count=2
    )


@pytest.mark.parametrize("name", ["s1", "../etc", "a/b", "ä" * 200, "CON:1", " "])
def test_any_conversation_id_has_its_own_safe_folder(name: str, tmp_path: Path) -> None:
    """The id is kept in the record; the folder is built from safe characters only."""
    store = SessionFiles(tmp_path)
    store.save(_record(name))
    assert store.find(ANN, SessionId(name)) == _record(name)
    assert [p.parent for p in tmp_path.rglob("session.json")] == [tmp_path / "users/ann/sessions" / session_folder(name)]


def test_begin_keeps_what_stands_there(tmp_path: Path) -> None:
    """Eight that begin one session at once share one record."""
    stores = [SessionFiles(tmp_path) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda pair: pair[1].begin(_record(first=pair[0] + 1)), enumerate(stores)))
    assert len({record.first_turn for record in got}) == 1
    assert stores[0].find(ANN, SessionId("s1")) == got[0]


def test_records_come_by_user_and_first_turn(tmp_path: Path) -> None:
    """An export keeps the order in which conversations came."""
    store = SessionFiles(tmp_path)
    for record in (_record("b", 5), _record("a", 9), _record("z", 1), _record("q", 1, "bob")):
        store.save(record)
    assert [r.session_id for r in store.records()] == ["z", "b", "a", "q"]
    assert [r.session_id for r in store.records(UserId("bob"))] == ["q"]


def test_a_damaged_or_swapped_record_is_named(tmp_path: Path) -> None:
    """A record that is no record, or another's, is never taken for one."""
    store = SessionFiles(tmp_path)
    store.save(_record())
    path = tmp_path / "users/ann/sessions/s1/session.json"
    path.write_text(path.read_text().replace('"s1"', '"s2"'))
    with pytest.raises(DocumentError, match="it holds session 's2'"):
        store.find(ANN, SessionId("s1"))
    path.write_text("{")
    with pytest.raises(DocumentError, match=r"session\.json"):
        store.find(ANN, SessionId("s1"))
