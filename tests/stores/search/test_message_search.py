"""Messages found in the index."""

import sqlite3
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.turns import SearchFilters, TurnRow
from pandora_dagster.retrieval.messages.document_numbers import PLACE_BITS
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from pandora_dagster.stores.search import search_tables
from pandora_dagster.stores.search.turn_index import DuckTurnIndex
from pandora_dagster.stores.search.turn_tables import TURN_SCHEMA
from tests.stores.search.index_rig import message_row


@pytest.fixture
def index(tmp_path: Path) -> DuckTurnIndex:
    return DuckTurnIndex(DuckDBFile(tmp_path / "turn_index.duckdb", TURN_SCHEMA, 30.0))


def _ids(index: DuckTurnIndex, query: str, *, user: str = "ann", limit: int = 10, **filters: object) -> list[str]:
    return [m.message_id for m in index.messages(user, query, limit=limit, filters=SearchFilters(**filters))]  # type: ignore[arg-type]


def test_the_message_that_matches_stands_before_its_neighbours(index: DuckTurnIndex) -> None:
    """A message comes with its id, its turn and its words."""
    index.put([message_row(1, "the weather", "we ordered a desk", "thanks"), message_row(2, "a desk elsewhere?", session="s2")])
    found = index.messages("ann", "which desk was ordered", limit=10)
    assert (found[0].message_id, found[0].turn_id, found[0].text) == ("D1:2", "turn_000001", "we ordered a desk")
    assert {m.message_id for m in found} == {"D1:1", "D1:2", "D1:3", "D2:1"}


def test_neighbours_are_found_over_turns_of_other_sessions(index: DuckTurnIndex) -> None:
    """Sessions that run side by side do not hide each other's neighbours."""
    index.put([message_row(1, "we ordered a desk"), message_row(2, "something else", session="s2"), message_row(3, "it came on Monday")])
    assert _ids(index, "desk") == ["D1:1", "D3:1"]


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ({"session": "s2"}, {"D2:1"}),
        ({"since": "2026-01-03T00:00:00Z"}, {"D2:1", "D3:1"}),
        ({"until": "2026-01-03T00:00:00Z"}, {"D1:1"}),
        ({"intent": "recall"}, {"D3:1"}),
        ({"topic": "desks"}, {"D1:1"}),
        ({"state": TurnState.HALTED}, {"D2:1"}),
        ({"session": "s2", "intent": "recall"}, set()),
        ({}, {"D1:1", "D2:1", "D3:1"}),
    ],
)
def test_filters_narrow_the_search(index: DuckTurnIndex, filters: dict[str, object], ids: set[str]) -> None:
    """By session, time, intent, topic and state; what stands beside a match must pass too."""
    index.put(
        [
            message_row(1, "the desk", topics=("desks",)),
            message_row(2, "the desk", session="s2", state=TurnState.HALTED),
            message_row(3, "the desk", intent="recall"),
        ]
    )
    assert set(_ids(index, "desk", **filters)) == ids


def test_what_was_said_comes_back_as_it_was_put(index: DuckTurnIndex) -> None:
    """The messages of a turn in order, odd characters included."""
    row = message_row(7, "a'b;\n--\x00 ü🙂", "", "last")
    index.put([row, message_row(8)])
    assert index.messages_by_turn("ann") == {7: row.messages}
    assert index.messages_by_turn("bob") == {}


def test_the_number_of_turns_in_a_block_changes_no_answer(index: DuckTurnIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns are found, replaced and removed in whichever block their postings are."""
    monkeypatch.setattr(search_tables, "POSTING_BITS", PLACE_BITS + 1)
    monkeypatch.setattr(search_tables, "COLUMN_BITS", PLACE_BITS + 2)
    for n in range(1, 13):
        index.put([message_row(n, f"desk number {n}", "fine", session=f"s{n}")])
    assert set(_ids(index, "desk", limit=50)) == {f"D{n}:{i}" for n in range(1, 13) for i in (1, 2)}
    index.put([message_row(1, "a lamp", session="s1")])
    index.remove("ann", [2])
    assert {i.split(":")[0] for i in _ids(index, "desk", limit=50)} == {f"D{n}" for n in range(3, 13)}
    assert _ids(index, "lamp") == ["D1:1"]
    assert len(index.rows()) == 11


def test_nothing_of_a_removed_turn_is_left(index: DuckTurnIndex) -> None:
    """The search file of turns that were put and removed holds what one that never had them holds, but for names."""
    kept = [message_row(n, f"a desk of oak {n}", session="s1") for n in range(1, 4)]
    index.put(kept)
    with index.search_file.reading() as db:
        before = _contents(db)
    index.put([message_row(n, "the computers of walnut, 340 dollars on 2026-05-26", session="s2") for n in (2, 9)])
    index.put(kept[1:2])
    index.remove("ann", [9])
    with index.search_file.reading() as db:
        assert _contents(db) == before


def _contents(db: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    """The rows of each table, with the documents of a block in order."""
    contents: dict[str, list[tuple[object, ...]]] = {}
    for name in ("users", "speakers", "postings", "columns", "messages", "turns"):
        rows = db.execute(f"SELECT * FROM {name}").fetchall()
        kinds = {"postings": search_tables.POSTING, "columns": search_tables.COLUMNS}
        if kind := kinds.get(name):
            rows = [(*row[:-1], tuple(sorted(np.frombuffer(row[-1], dtype=kind).tolist()))) for row in rows]
        contents[name] = rows
    return contents


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("What did we say of the desk yesterday?", "D5:1"),
        ("what about the desk on 3 January?", "D2:1"),
        ("was war im Januar mit dem desk", "D9:1"),
        ("which desk", "D9:1"),
    ],
)
def test_days_are_those_before_the_question(index: DuckTurnIndex, query: str, first: str) -> None:
    """`yesterday` is counted from the clock; a day without a year is the latest that has messages and is not to come."""
    dated = replace(index, clock=lambda: datetime(2026, 1, 7, tzinfo=UTC))
    values = {3: "we ate", 5: "it rained", 9: "the desk is oak, a desk of oak", 30: "later"}
    dated.put([message_row(n, values.get(n, "the desk stands"), session=f"s{n}") for n in (2, 3, 5, 9)])
    assert _ids(dated, query, limit=1) == [first]


@pytest.mark.parametrize(
    "query", ["", "  ", "the of and", "'; DROP TABLE messages; --", "🙂🙂", "bob", "\ud800", "%_*?", "desk " * 20_000, "@may", "~desk"]
)
def test_odd_queries_are_answered_sanely(index: DuckTurnIndex, query: str) -> None:
    """Whatever is asked, nothing breaks, nothing is lost, and no other user's message is seen."""
    index.put([message_row(1, "a desk"), message_row(1, "bob has a desk in May", user="bob")])
    assert {m.text for m in index.messages("ann", query, limit=5)} <= {"a desk"}
    assert len(index.rows()) == 2


def test_a_question_with_few_matches_brings_what_its_user_said(index: DuckTurnIndex) -> None:
    """The newest messages of the user whom it names stand behind what matches; filters hold for them too."""
    index.put([_turn_row(1, "Bob", "a desk"), _turn_row(2, "Bob", "the sea", session="s2"), _turn_row(3, "Ann", "a hill", session="s3")])
    assert _ids(index, "Which desk does Bob have?") == ["D1:1", "D2:1"]
    assert _ids(index, "What about Bob?", session="s2") == ["D2:1"]


def _turn_row(number: int, speaker: str, text: str, **fields: object) -> TurnRow:
    row = message_row(number, text, **fields)  # type: ignore[arg-type]
    return row.model_copy(update={"messages": (row.messages[0].model_copy(update={"name": speaker}),)})


_WORDS = st.lists(st.sampled_from(["desk", "lamp", "bob", "ann", "yesterday", "340"]), max_size=3)
_TURNS = st.lists(st.tuples(st.sampled_from(["ann", "bob", "eve"]), st.sampled_from(["s1", "s2"]), _WORDS, _WORDS), max_size=8)


@given(_TURNS, st.lists(st.sampled_from(["desk", "lamp", "bob", "January", "2026"]), min_size=1, max_size=3))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_one_user_never_sees_another(tmp_path: Path, turns: list[tuple[str, str, list[str], list[str]]], query: list[str]) -> None:
    """Users share sessions, numbers and words; each finds what an index of their messages alone would find, scores included."""
    rows = [message_row(n, " ".join(a), " ".join(b), user=user, session=session) for n, (user, session, a, b) in enumerate(turns, 1)]
    answers = []
    for name, kept in (("shared", rows), ("alone", [row for row in rows if row.user_id == "ann"])):
        index = DuckTurnIndex(DuckDBFile(tmp_path / f"{name}.duckdb", TURN_SCHEMA))
        index.search_file.discard()
        index.file.path.unlink(missing_ok=True)
        index.put(kept)
        answers.append(index.messages("ann", " ".join(query), limit=20))
    assert answers[0] == answers[1]
