"""What every search index must do, asked of the DuckDB adapter and of the fake in memory."""

from pathlib import Path
from typing import Any

import pytest

from pandora_dagster.app.search_service import SearchService
from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.ports.turn_storage import SearchIndex
from pandora_dagster.contracts.turns import Manifest, SearchFilters, TurnRow
from pandora_dagster.errors import InputError
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from pandora_dagster.stores.search.turn_index import DuckTurnIndex
from pandora_dagster.stores.search.turn_tables import TURN_SCHEMA
from tests.fakes.search_index import MemorySearchIndex
from tests.stores.search.index_rig import message_row, text_row


@pytest.fixture(params=["memory", "duckdb"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> SearchIndex:
    return (
        MemorySearchIndex() if request.param == "memory" else DuckTurnIndex(DuckDBFile(tmp_path / "turn_index.duckdb", TURN_SCHEMA, 10.0))
    )


ANN, BOB = UserId("ann"), UserId("bob")
DESK_TURN = message_row(1, "we ordered the oak desk", "it costs 700 euros", topics=("desk", "order"), intent="recall")
LAMP = message_row(2, "a walnut lamp would be nice", session="s2")
OTHER = message_row(1, "my oak desk is a secret", user="bob")


def manifest(row: TurnRow, **fields: object) -> Manifest:
    shared = {"user_id", "turn_id", "session_id", "state", "created_at", "last_activity", "tokens", "context_sha"}
    return Manifest.model_validate(row.model_dump(include=shared) | fields)


def bare(*rows: TurnRow) -> tuple[TurnRow, ...]:
    """Rows as an index returns them."""
    return tuple(row.model_copy(update={"messages": ()}) for row in rows)


def numbers(rows: tuple[TurnRow, ...]) -> list[int]:
    return [row.number for row in rows]


def test_rows_come_back_newest_last(index: SearchIndex) -> None:
    """Without their messages, of one user or session, before a number, the newest up to a limit; a second put replaces a row."""
    index.put([DESK_TURN, LAMP, OTHER])
    assert index.rows("ann") == bare(DESK_TURN, LAMP) and len(index.rows()) == 3
    assert numbers(index.rows("ann", session="s2")) == [2] and numbers(index.rows("ann", before=2)) == [1]
    assert numbers(index.rows("ann", limit=1)) == [2] and index.rows("ann", limit=0) == index.rows("eve") == ()
    index.put([LAMP.model_copy(update={"summary": "lamps"})])
    assert [row.summary for row in index.rows("ann")] == ["", "lamps"]


def test_messages_come_back_as_they_were_put(index: SearchIndex) -> None:
    """By turn, of one user."""
    index.put([DESK_TURN, LAMP, OTHER])
    assert dict(index.messages_by_turn("ann")) == {1: DESK_TURN.messages, 2: LAMP.messages} and not index.messages_by_turn("eve")


def test_a_query_finds_the_best_match_of_its_user_first(index: SearchIndex) -> None:
    """No other user's messages, no turn at or after `before`, at most `limit`; no shared word, no result."""
    index.put([DESK_TURN, LAMP, OTHER])
    found = index.messages("ann", "which oak desk?", limit=5)
    assert (found[0].message_id, found[0].turn_id, found[0].text) == ("D1:1", "turn_000001", "we ordered the oak desk")
    assert "secret" not in " ".join(m.text for m in found) and len({m.position for m in found}) == len(found)
    assert len(index.messages("ann", "oak desk", limit=1)) == 1 and index.messages("ann", "oak desk", limit=0) == ()
    assert index.messages("ann", "walnut", limit=5, before=2) == index.messages("ann", "zeppelin", limit=5) == ()
    candidates = index.candidates("ann", "which oak desk?", limit=5)
    assert (candidates[0].row, candidates[0].score > 0) == (bare(DESK_TURN)[0], True)
    assert index.candidates("ann", "oak desk", limit=5, before=1) == index.candidates("eve", "oak desk", limit=5) == ()


@pytest.mark.parametrize(
    "filters",
    [
        {"session": "s2"},
        {"since": "2026-01-03T00:00:00Z"},
        {"until": "2026-01-02T00:00:00Z"},
        {"intent": "purchase"},
        {"topic": "lamps"},
        {"state": TurnState.HALTED},
    ],
)
def test_a_filter_that_excludes_the_match_finds_nothing(index: SearchIndex, filters: dict[str, Any]) -> None:
    """Of every field a search can be narrowed by."""
    index.put([DESK_TURN, LAMP])
    assert all(m.turn_id == "turn_000002" for m in index.messages("ann", "oak desk", limit=5, filters=SearchFilters(**filters)))
    assert index.messages("ann", "oak desk", limit=5, filters=SearchFilters(session="s1", intent="recall", topic="desk"))


def test_filter_values_of_no_turn_are_named(index: SearchIndex) -> None:
    """Also those of a user without turns."""
    index.put([DESK_TURN])
    given = SearchFilters(session="s1", intent="purchase", topic="desk", state=TurnState.HALTED)
    assert dict(index.unmatched_filters("ann", given)) == {"intent": "purchase", "state": "halted"}
    assert dict(index.unmatched_filters("eve", SearchFilters(topic="desk"))) == {"topic": "desk"}


def test_relevant_messages_and_their_neighbours_are_found_ones(index: SearchIndex) -> None:
    """In the order of the found; none is both."""
    index.put([DESK_TURN, LAMP])
    found = index.messages("ann", "which oak desk?", limit=5)
    relevant = index.relevant("which oak desk?", found)
    near = index.neighbours(found, relevant)
    assert relevant[0].message_id == "D1:1"
    assert {m.position for m in relevant} | {m.position for m in near} <= {m.position for m in found}
    assert not {m.position for m in relevant} & {m.position for m in near} and not index.neighbours((), ())


def test_states_change_without_the_texts(index: SearchIndex) -> None:
    """An outdated row is one that is missing or says otherwise than its manifest."""
    index.put([DESK_TURN])
    halted = manifest(DESK_TURN, state="halted", tokens=9, context_sha="ff")
    assert index.outdated([manifest(DESK_TURN)]) == () and index.outdated([halted, manifest(LAMP)]) == (halted, manifest(LAMP))
    index.update_states([halted, manifest(LAMP)])
    assert index.outdated([halted]) == () and numbers(index.rows("ann")) == [1]
    assert index.messages("ann", "oak desk", limit=5)[0].text == "we ordered the oak desk"


def test_activities_are_listed_by_user_and_number(index: SearchIndex) -> None:
    """All of them, those that are archived or not, those of a span of time; of one user by session."""
    index.put([LAMP, OTHER, DESK_TURN.model_copy(update={"state": TurnState.ARCHIVED})])
    assert [turn.key for turn in index.activities()] == [TurnKey(ANN, 1), TurnKey(ANN, 2), TurnKey(BOB, 1)]
    assert [turn.key for turn in index.activities(archived=True)] == [TurnKey(ANN, 1)]
    assert [t.key for t in index.activities(archived=False, between=("2026-01-03", "2026-01-04"))] == [TurnKey(ANN, 2)]
    assert {name: [t.key.number for t in turns] for name, turns in index.sessions("ann").items()} == {"s1": [1], "s2": [2]}
    assert dict(index.sessions("eve")) == {}


def test_removed_turns_are_missing(index: SearchIndex) -> None:
    """Of one user; a number without a row is ignored."""
    index.put([DESK_TURN, LAMP, OTHER])
    index.remove("ann", [1, 7])
    assert index.missing([TurnKey(ANN, 1), TurnKey(ANN, 2), TurnKey(BOB, 1)]) == (TurnKey(ANN, 1),)
    assert index.messages("bob", "oak desk", limit=5) and not index.messages("ann", "oak desk", limit=5)


def test_a_rebuild_replaces_all_rows(index: SearchIndex) -> None:
    """The old rows answer until the last batch is in; nothing was damaged, so nothing is kept under another name."""
    index.put([DESK_TURN, OTHER])
    seen: list[list[int]] = []

    def batches():
        for row in (LAMP, text_row(3, "third")):
            seen.append(numbers(index.rows("ann")))
            yield [row]

    assert index.rebuild(batches()) is None
    assert seen == [[1], [1]] and numbers(index.rows()) == [2, 3]


def test_the_search_service_needs_the_port_alone(index: SearchIndex) -> None:
    """A search packs what the index finds; a filter's value that no turn has is one sentence, a faulty one an error."""
    index.put([DESK_TURN, LAMP, OTHER])
    search = SearchService(index, ANN, len)
    found = search.messages("oak desk", budget_tokens=200, session="")
    assert found.results[0].turn_id == "turn_000001" and "oak desk" in found.text and found.tokens <= 200
    assert search.unmatched_filters("", {"topic": "lamps", "session": "s1"}) == (
        "topic 'lamps': no turn of ann has it: expected one that is there",
    )
    with pytest.raises(InputError, match="state 'gone': expected one of"):
        search.messages("oak desk", budget_tokens=200, state="gone")
    with pytest.raises(InputError, match="'sesion': no filter of a search"):
        search.messages("oak desk", budget_tokens=200, sesion="s1")
