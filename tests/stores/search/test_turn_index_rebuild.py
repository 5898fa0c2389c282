"""The turn index made again from the documents."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.turns import Manifest, Turn
from pandora_dagster.documents.sections import new_context
from pandora_dagster.documents.turn_row import build_turn_row
from pandora_dagster.errors import DocumentError, StoreError
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from pandora_dagster.stores.search.turn_index import DuckTurnIndex
from pandora_dagster.stores.search.turn_index_rebuild import rebuild_turns, verify_turns
from pandora_dagster.stores.search.turn_tables import TURN_SCHEMA


def _turn(number: int, words: str, *, user: str = "ann", summary: str = "") -> Turn:
    manifest = Manifest.model_validate(
        {
            "user_id": user,
            "turn_id": f"turn_{number:06d}",
            "session_id": "s1",
            "state": "saved",
            "created_at": "2026-01-04T14:30:00Z",
            "last_activity": "2026-01-04T14:30:00Z",
            "context_sha": words,
            "summary": {"summary": summary, "topics": ["a", "b"]} if summary else None,
        }
    )
    return Turn(TurnKey(UserId(user), number), manifest, new_context(words).render())


class _Documents:
    """Turns in memory; those named in `broken` cannot be read."""

    def __init__(self, *turns: Turn, broken: tuple[int, ...] = ()) -> None:
        self.turns = {turn.key: turn for turn in turns}
        self.broken = broken

    def keys(self, user: UserId | None = None) -> Iterable[TurnKey]:
        return sorted(self.turns)

    def manifest(self, key: TurnKey) -> Manifest:
        return self.load(key).manifest

    def load(self, key: TurnKey, *, revision: int | None = None) -> Turn:
        if key.number in self.broken:
            raise DocumentError("context.md: sha256 differs")
        return self.turns[key]

    original = load


@pytest.fixture
def index(tmp_path: Path) -> DuckTurnIndex:
    return DuckTurnIndex(DuckDBFile(tmp_path / "turn_index.duckdb", TURN_SCHEMA, 10.0))


def _put(index: DuckTurnIndex, *turns: Turn) -> None:
    for turn in turns:
        index.put([build_turn_row(turn.manifest, turn.context, turn.files)])


def test_a_rebuilt_index_answers_as_the_incremental_one(index: DuckTurnIndex, tmp_path: Path) -> None:
    """The same rows and the same candidates with the same scores."""
    turns = [_turn(n, f"laptop {'cheap ' * n}", user=("ann", "bob")[n % 2], summary=f"turn {n}") for n in range(1, 9)]
    _put(index, *turns)
    again = DuckTurnIndex(DuckDBFile(tmp_path / "again.duckdb", TURN_SCHEMA))
    assert rebuild_turns(_Documents(*turns), again).turns == 8
    assert again.rows() == index.rows()
    assert again.candidates("ann", "cheap laptop", limit=9) == index.candidates("ann", "cheap laptop", limit=9)


def test_an_index_that_agrees_has_no_differences(index: DuckTurnIndex) -> None:
    """After a rebuild the documents and the index say the same."""
    documents = _Documents(_turn(1, "a"), _turn(2, "b"))
    rebuild_turns(documents, index)
    assert verify_turns(documents, index) == ()


def test_every_difference_is_one_sentence(index: DuckTurnIndex) -> None:
    """A missing row, a row too many, a field that differs and an unreadable document are reported."""
    _put(index, _turn(2, "old words"), _turn(3, "gone"))
    assert verify_turns(_Documents(_turn(1, "a"), _turn(2, "new words"), _turn(4, "x"), broken=(4,)), index) == (
        "ann:turn_000001: missing from the index, expected a row",
        "ann:turn_000002: context_sha: the index says 'old words', the documents say 'new words'",
        "ann:turn_000002: text: the index says 'old words', the documents say 'new words'",
        "ann:turn_000002: message query: the index says 'old words', the documents say 'new words'",
        "ann:turn_000004: context.md: sha256 differs",
        "ann:turn_000003: in the index, but no document: expected no row",
    )


def test_a_rebuild_drops_what_no_document_says(index: DuckTurnIndex) -> None:
    """Rows of turns that are gone do not survive."""
    _put(index, _turn(9, "gone"))
    rebuild_turns(_Documents(_turn(1, "a")), index)
    assert [row.number for row in index.rows()] == [1]


def test_an_unreadable_turn_is_named_and_the_rest_indexed(index: DuckTurnIndex) -> None:
    """One damaged document does not keep the others out."""
    report = rebuild_turns(_Documents(_turn(1, "a"), _turn(2, "b"), broken=(1,)), index)
    assert (report.turns, report.faults) == (1, ("ann:turn_000001: context.md: sha256 differs",))


def test_a_damaged_index_is_kept(index: DuckTurnIndex) -> None:
    """The remedy that the error names works, and the damaged file is not lost."""
    index.file.path.write_bytes(b"garbage")
    with pytest.raises(StoreError, check=lambda error: "pandora index rebuild" in error.hint):
        index.rows()
    (damaged_file,) = rebuild_turns(_Documents(_turn(1, "a")), index).damaged_files
    assert damaged_file.read_bytes() == b"garbage"
    assert len(index.rows()) == 1


class _Growing(_Documents):
    """A turn is saved, and another summarised, after the first pass over the keys."""

    def __init__(self, *turns: Turn, later: tuple[Turn, ...]) -> None:
        super().__init__(*turns)
        self.later = later

    def keys(self, user: UserId | None = None) -> Iterator[TurnKey]:
        yield from super().keys()
        self.turns |= {turn.key: turn for turn in self.later}


def test_turns_saved_during_a_rebuild_are_taken_in(index: DuckTurnIndex) -> None:
    """Nobody has to stop working while the index is made again."""
    documents = _Growing(_turn(1, "a"), later=(_turn(1, "a", summary="now summarised"), _turn(2, "b")))
    rebuild_turns(documents, index)
    assert [(row.number, row.summary) for row in index.rows()] == [(1, "now summarised"), (2, "")]


def test_an_empty_store_gives_an_empty_index(index: DuckTurnIndex) -> None:
    """No documents, no rows."""
    assert rebuild_turns(_Documents(), index).turns == 0
    assert index.rows() == ()


def test_a_turn_that_cannot_be_read_is_named_once(index: DuckTurnIndex) -> None:
    """It stands in the index from before; one that has no document at all is named too."""
    sound, broken, gone = _turn(1, "a"), _turn(2, "b"), _turn(3, "c")
    _put(index, sound, broken, gone)
    assert verify_turns(_Documents(sound, broken, broken=(2,)), index) == (
        "ann:turn_000002: context.md: sha256 differs",
        "ann:turn_000003: in the index, but no document: expected no row",
    )


def test_the_row_of_an_open_turn_may_be_older_than_its_documents(index: DuckTurnIndex) -> None:
    """A turn that runs has its row written once it has ended, so no difference is reported; a row of another session is one."""
    saved = _turn(1, "laptop")
    begun = replace(saved, manifest=saved.manifest.model_copy(update={"state": TurnState.OPEN}))
    _put(index, begun)
    further = begun.manifest.model_copy(update={"last_activity": "2026-01-04T14:31:00Z", "context_sha": "f", "runtime": "sglang"})
    assert verify_turns(_Documents(replace(begun, manifest=further)), index) == ()
    (moved,) = verify_turns(_Documents(replace(begun, manifest=further.model_copy(update={"session_id": "s2"}))), index)
    assert "session_id" in moved
    assert len(verify_turns(_Documents(saved), index)) == 1
