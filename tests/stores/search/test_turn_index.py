"""The turn index in DuckDB."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.turns import SearchFilters
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from pandora_dagster.stores.search import turn_index, turn_tables
from pandora_dagster.stores.search.turn_index import DuckTurnIndex
from pandora_dagster.stores.search.turn_tables import TURN_SCHEMA
from tests.stores.search.index_rig import message_row, text_row


@pytest.fixture
def index(tmp_path: Path) -> DuckTurnIndex:
    return DuckTurnIndex(DuckDBFile(tmp_path / "turn_index.duckdb", TURN_SCHEMA, 10.0))


def _found(index: DuckTurnIndex, query: str, *, user: str = "ann", limit: int = 10, before: int | None = None) -> list[int]:
    return [c.row.number for c in index.candidates(user, query, limit=limit, before=before)]


def test_a_row_comes_back_as_it_was_put(index: DuckTurnIndex) -> None:
    """Every field of 004 section 3.3 and the rest are kept, odd characters included."""
    row = text_row(
        811,
        "a'b;\n--\x00 ü🙂",
        summary="S",
        topics=("x", "y z", ""),
        intent="recall",
        has_research=True,
        research_topic="a.b",
        tokens=12,
        revision=3,
        recorded=True,
        runtime="recorded",
        context_sha="ff",
    )
    index.put([row, text_row(812)])
    assert index.rows() == (text_row(812), row)


def test_rows_are_filtered_and_limited_to_the_newest(index: DuckTurnIndex) -> None:
    """Newest last; user and session narrow it; the limit keeps the newest."""
    index.put([text_row(1), text_row(2, session="s2"), text_row(3), text_row(1, user="bob")])
    assert [r.number for r in index.rows("ann")] == [1, 2, 3]
    assert [r.number for r in index.rows("ann", limit=2)] == [2, 3]
    assert [r.number for r in index.rows("ann", session="s1")] == [1, 3]
    assert [(r.user_id, r.number) for r in index.rows(limit=1)] == [("ann", 3)]
    assert len(index.rows()) == 4
    assert index.rows("nobody") == index.rows(limit=0) == ()


def test_the_newest_are_the_same_before_and_after_a_merge(index: DuckTurnIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """By time, not by number; a session's turns and those of other users included, removed ones not."""
    days = [text_row(n, user=user, session=f"s{n % 3}") for n in range(1, 40) for user in ("ann", "bob")]

    def listed() -> list[list[int]]:
        asked = ({"limit": 5}, {"limit": 5, "before": 30}, {"session": "s1", "limit": 4}, {"session": "s1"}, {"limit": 200})
        return [[r.number for r in index.rows("ann", **fields)] for fields in asked]  # type: ignore[arg-type]

    index.put(days)
    index.remove("ann", [27])
    before = listed()
    assert before[0] == [22, 23, 24, 25, 26]
    monkeypatch.setattr(turn_tables, "MAX_NEW_TURNS", 1)
    index.put([text_row(1, user="eve")])
    assert listed() == before
    index.remove("ann", [26])
    index.put([text_row(99, user="eve")])
    assert 26 not in [n for numbers in listed() for n in numbers]
    assert [len(numbers) for numbers in listed()] == [5, 5, 4, 13, 37]


def test_a_turn_put_again_replaces_its_row(index: DuckTurnIndex) -> None:
    """The old row and the old terms are gone; within one batch the last one counts."""
    index.put([text_row(1, "laptop"), text_row(2, "phone", session="s2")])
    index.put([text_row(1, "camera"), text_row(1, "printer", summary="new")])
    assert [r.summary for r in index.rows()] == ["new", ""]
    assert (_found(index, "laptop"), _found(index, "camera"), _found(index, "printer")) == ([], [], [1])


def test_removed_turns_are_gone(index: DuckTurnIndex) -> None:
    """A turn that is taken out is neither listed nor found."""
    index.put([text_row(1, "laptop"), text_row(2, "laptop", session="s2")])
    index.remove("ann", [1, 77])
    assert ([r.number for r in index.rows()], _found(index, "laptop")) == ([2], [2])


def test_what_matches_stands_first_and_what_does_not_is_left_out(index: DuckTurnIndex) -> None:
    """Stems match, unrelated turns of other sessions stay out."""
    index.put(
        [
            text_row(1, "We booked two reservations", session="a"),
            text_row(2, "The weather", session="b"),
            text_row(3, "a reservation", session="c"),
        ]
    )
    assert set(_found(index, "my booked reservation")) == {1, 3}
    assert _found(index, "my booked reservation")[0] == 1


def test_nothing_matches_nothing_comes_back(index: DuckTurnIndex) -> None:
    """Recent turns are not offered in the place of matches."""
    index.put([text_row(1, "laptop")])
    assert _found(index, "giraffe") == []


def test_summary_and_topics_are_searched(index: DuckTurnIndex) -> None:
    """A turn is found by its summary and by its topics too."""
    index.put([text_row(1, summary="Compared laptops", session="a"), text_row(2, topics=("nvidia",), session="b")])
    assert (_found(index, "laptop"), _found(index, "NVIDIA")) == ([1], [2])


def test_dates_are_terms(index: DuckTurnIndex) -> None:
    """A question that names a date prefers the turn of that date."""
    index.put([text_row(1, "we met", session="a"), text_row(7, "we met", session="b"), text_row(9, "we met", session="c")])
    assert _found(index, "who met on January 8, 2026?")[0] == 7
    assert _found(index, "2026-01-02") == [1]


def test_a_date_inside_a_text_is_found_by_its_month_and_day(index: DuckTurnIndex) -> None:
    """A flight of 2024-05-26 answers to `26 May`."""
    index.put([text_row(1, "flight on 2024-05-26", session="a"), text_row(2, "flight on 2024-06-26", session="b")])
    assert _found(index, "the flight of 26 May")[0] == 1


def test_a_price_question_prefers_turns_that_name_an_amount(index: DuckTurnIndex) -> None:
    """What did it cost: the turn with the amount wins."""
    index.put([text_row(1, "the reservation costs $340", session="a"), text_row(2, "what the reservation costs is open", session="b")])
    assert _found(index, "what did the reservation cost")[0] == 1


def test_turns_from_a_number_on_stay_out(index: DuckTurnIndex) -> None:
    """`before` keeps the asking turn and later ones out, as matches and as neighbours."""
    index.put([text_row(n, "laptop") for n in range(1, 6)])
    assert set(_found(index, "laptop", before=3)) == {1, 2}


def test_what_came_later_is_no_neighbour_either(index: DuckTurnIndex) -> None:
    """A turn that runs again must not be offered what was said after it, not even beside a message that matches."""
    index.put([message_row(n, "laptop" if n < 4 else f"later words {n}", session="s") for n in range(1, 7)])
    assert set(_found(index, "laptop", before=3)) == {1, 2}
    assert set(_found(index, "laptop", before=4)) == {1, 2, 3}
    assert {4, 5} <= set(_found(index, "laptop"))


def test_the_limit_holds(index: DuckTurnIndex) -> None:
    """No more than `limit` turns come back."""
    index.put([text_row(n, "laptop") for n in range(1, 30)])
    assert (len(_found(index, "laptop", limit=5)), _found(index, "laptop", limit=0)) == (5, [])


@pytest.mark.parametrize(
    "query",
    [
        "",
        "   ",
        "the of and",
        "'; DROP TABLE turns; --",
        "SELECT * FROM turns WHERE '1'='1",
        "🙂🙂",
        "bob",
        "\ud800",
        "%_*?",
        "laptop " * 15_000,
    ],
)
def test_odd_queries_are_answered_sanely(index: DuckTurnIndex, query: str) -> None:
    """Whatever is asked, nothing breaks, nothing is lost, and no other user's turn is seen."""
    index.put([text_row(1, "laptop"), text_row(1, "laptop bob turns", user="bob")])
    assert all(c.row.user_id == "ann" for c in index.candidates("ann", query, limit=5))
    assert len(index.rows()) == 2


def test_a_query_of_many_different_words_is_answered(index: DuckTurnIndex) -> None:
    """A query of 100,000 characters without repeats finds its turn."""
    index.put([text_row(1, "laptop")])
    assert _found(index, " ".join(f"w{n}" for n in range(15_000)) + " laptop") == [1]


_WORDS = st.sampled_from(["laptop", "phone", "flight", "paris", "340"])
_TURNS = st.lists(
    st.tuples(st.sampled_from(["ann", "bob", "eve"]), st.sampled_from(["s1", "s2"]), st.lists(_WORDS, max_size=3)), max_size=10
)


@given(_TURNS, st.lists(_WORDS, min_size=1, max_size=3))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_one_user_never_sees_another(tmp_path: Path, turns: list[tuple[str, str, list[str]]], query: list[str]) -> None:
    """Users share session names and words; each finds what an index of their turns alone would find, scores included."""
    shared = DuckTurnIndex(DuckDBFile(tmp_path / "shared.duckdb", TURN_SCHEMA))
    shared.search_file.discard()
    shared.file.path.unlink(missing_ok=True)
    rows = [text_row(n, " ".join(words), user=user, session=session) for n, (user, session, words) in enumerate(turns, 1)]
    shared.put(rows)
    alone = DuckTurnIndex(DuckDBFile(tmp_path / "alone.duckdb", TURN_SCHEMA))
    alone.search_file.discard()
    alone.file.path.unlink(missing_ok=True)
    alone.put([row for row in rows if row.user_id == "ann"])
    found = shared.candidates("ann", " ".join(query), limit=20)
    assert {c.row.user_id for c in found} <= {"ann"}
    assert found == alone.candidates("ann", " ".join(query), limit=20)


def test_values_that_no_turn_of_the_user_has_are_named(index: DuckTurnIndex) -> None:
    """By their filter; another user's do not count, and a user without turns has none."""
    index.put([text_row(1, intent="recall", topics=("desks",)), text_row(1, user="bob", session="s9")])
    assert index.unmatched_filters("ann", SearchFilters(session="s9", intent="recall", topic="lamps")) == {
        "session": "s9",
        "topic": "lamps",
    }
    assert index.unmatched_filters("ann", SearchFilters()) == {}
    assert index.unmatched_filters("eve", SearchFilters(topic="desks")) == {"topic": "desks"}


def test_standing_is_read_some_at_a_time(index: DuckTurnIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every turn once, user by user, whatever its tier and however many are read at once; by state and by day."""
    index.put([text_row(n, user="ann", state=TurnState.ARCHIVED if n % 2 else TurnState.SAVED) for n in range(1, 8)])
    index.put([text_row(n, user="zoe") for n in range(1, 4)])
    everything = [(s.key.user, s.key.number, s.state) for s in index.activities()]
    assert len(everything) == 10 and everything == sorted(everything)
    for some in (1, 2, 3, 10):
        monkeypatch.setattr(turn_index, "_BATCH_ROWS", some)
        assert [(s.key.user, s.key.number, s.state) for s in index.activities()] == everything
    assert [s.key.number for s in index.activities(archived=True)] == [1, 3, 5, 7]
    assert [s.key.number for s in index.activities(archived=False)] == [2, 4, 6, 1, 2, 3]
    assert [s.key.number for s in index.activities(archived=True, between=("2026-01-04", "2026-01-07"))] == [3, 5]


def test_turns_without_a_row(index: DuckTurnIndex) -> None:
    """Of a known user and of one that has none."""
    index.put([text_row(1), text_row(2)])
    keys = [TurnKey(UserId(user), number) for user, number in (("ann", 1), ("ann", 3), ("bob", 1))]
    assert index.missing(keys) == tuple(keys[1:]) and index.missing([]) == ()
