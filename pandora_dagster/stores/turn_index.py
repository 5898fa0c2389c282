"""The turn index: rows of turns, their messages and the postings of their terms, in one DuckDB file (004 section 3.3).

Knows when the file is opened and what each question of the ports needs; tables are `turn_tables`', one search `message_search`'s.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from pandora_dagster.contracts.turns import Candidate, FoundMessage, IndexedMessage, SearchFilters, TurnRow
from pandora_dagster.selection.message_ranking import PLACE_BITS
from pandora_dagster.stores.duck import DuckFile
from pandora_dagster.stores.message_search import MessageSearch
from pandora_dagster.stores.postings import posted
from pandora_dagster.stores.turn_tables import ALL_MESSAGES, ALL_TURNS, SCHEMA, TURN_NAMES, drop, insert, merge_full, row_from
from pandora_dagster.text.words import TermReader

_LAST = 2**62
EVERYTHING = SearchFilters()


@dataclass(frozen=True, slots=True)
class DuckTurnIndex:
    """`TurnIndex` and `MessageIndex` in one DuckDB file. Every method opens, works and closes; raises StoreError."""

    file: DuckFile
    reader: TermReader = field(default_factory=TermReader)

    @classmethod
    def at(cls, path: Path, *, wait_s: float = 30.0) -> "DuckTurnIndex":
        return cls(DuckFile(path, SCHEMA, wait_s))

    def put(self, rows: Sequence[TurnRow]) -> None:
        """Store rows, each in the place of an older one of the same turn; all of them or none."""
        newest = {(row.user_id, row.number): row for row in rows}
        if not newest:
            return
        documents = [document for row in newest.values() for document in posted(row, self.reader)]
        with self.file.writing() as db:
            drop(db, [user for user, _ in newest], [number for _, number in newest])
            insert(db, list(newest.values()), documents)
            merge_full(db)

    def rows(
        self, user: str | None = None, *, session: str | None = None, before: int | None = None, limit: int | None = None
    ) -> tuple[TurnRow, ...]:
        """Newest last, by time and number; turns numbered `before` or later stay out; `limit` keeps the newest.

        Rows come without their messages: see `said`.
        """
        last = _LAST if before is None else before
        with self.file.reading() as db:
            found = db.execute(
                f"SELECT {TURN_NAMES} FROM {ALL_TURNS} "  # noqa: S608 - constants
                "WHERE (? IS NULL OR user_id = ?) AND (? IS NULL OR session_id = ?) AND number < ? "
                "ORDER BY created_at DESC, number DESC, user_id DESC LIMIT ?",
                [user, user, session, session, last, _LAST if limit is None else max(0, limit)],
            ).fetchall()
        return tuple(row_from(values) for values in reversed(found))

    def said(self, user: str) -> dict[int, tuple[IndexedMessage, ...]]:
        """The messages of a user's turns by the turn's number, as they were put."""
        with self.file.reading() as db:
            found = db.execute(
                f"SELECT number, message_id, role, speaker, text, created_at FROM {ALL_MESSAGES} "  # noqa: S608 - constant
                f"WHERE user_id = ? AND doc & {(1 << PLACE_BITS) - 1} > 0 ORDER BY doc",
                [user],
            ).fetchall()
        turns: dict[int, tuple[IndexedMessage, ...]] = {}
        for number, *values in found:
            message = IndexedMessage.model_validate(dict(zip(("id", "role", "name", "text", "created_at"), values, strict=True)))
            turns[number] = (*turns.get(number, ()), message)
        return turns

    def candidates(self, user: str, query: str, *, limit: int, before: int | None = None) -> tuple[Candidate, ...]:
        """The user's own turns that share terms or dates with `query` or stand beside one that does, best first.

        A turn is as good as its best message. Nothing matches, nothing comes back: recent turns are the caller's to add.
        """
        if limit <= 0:
            return ()
        with self.file.reading() as db:
            scores: dict[int, float] = {}
            for scored in MessageSearch(db, user, self.reader, _doc_before(before)).ranked(query):
                scores.setdefault(scored.unit.number, scored.score)
            best = list(scores)[:limit]
            rows = _fetched(db, user, best)
        return tuple(Candidate(rows[number], scores[number]) for number in best)

    def messages(
        self, user: str, query: str, *, limit: int, filters: SearchFilters = EVERYTHING, before: int | None = None
    ) -> tuple[FoundMessage, ...]:
        """The user's own messages that share something with `query` or stand beside one that does, best first."""
        if limit <= 0:
            return ()
        with self.file.reading() as db:
            search = MessageSearch(db, user, self.reader, _doc_before(before), filters)
            return search.texts(tuple(s for s in search.ranked(query) if not s.unit.is_turn)[:limit])

    def remove(self, user: str, numbers: Sequence[int]) -> None:
        """Take turns out of the index; those it does not hold are passed over."""
        with self.file.writing() as db:
            drop(db, [user] * len(numbers), list(numbers))


def _doc_before(number: int | None) -> int:
    return _LAST if number is None else max(0, number) << PLACE_BITS


def _fetched(db: duckdb.DuckDBPyConnection, user: str, numbers: list[int]) -> dict[int, TurnRow]:
    statement = f"SELECT {TURN_NAMES} FROM {ALL_TURNS} WHERE user_id = ? AND number IN (SELECT unnest(?::BIGINT[]))"  # noqa: S608
    return {row.number: row for row in map(row_from, db.execute(statement, [user, numbers]).fetchall())}
