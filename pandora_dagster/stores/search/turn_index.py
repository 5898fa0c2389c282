"""The turn index (specification 004, section 3.3): rows of turns in a DuckDB file, and their messages and terms in a SQLite file beside it.

This module opens the files and implements the port; `turn_tables` and `search_tables` have the tables, `message_search` a search. A change
is made in both under the lock of the DuckDB file, and is committed in SQLite first. So a process that is killed in between leaves turns
that are found and not listed, which count as missing and are put again; and no turn that is listed and not found.
"""

import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path

import duckdb
import numpy as np

from pandora_dagster.contracts.archive_records import TurnActivity
from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.turns import Candidate, FoundMessage, IndexedMessage, Manifest, SearchFilters, TurnRow
from pandora_dagster.errors import OldIndexError, StoreError
from pandora_dagster.language.terms import TermReader
from pandora_dagster.retrieval.messages.document_numbers import NUMBER_BITS, PLACE_BITS, document_number, turn_number
from pandora_dagster.retrieval.messages.message_relevance import neighbouring_messages, relevant_messages
from pandora_dagster.retrieval.messages.search_question import strip_names
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from pandora_dagster.stores.disk.sqlite_file import SqliteFile
from pandora_dagster.stores.search import search_tables
from pandora_dagster.stores.search.message_search import MessageSearch, best_messages
from pandora_dagster.stores.search.search_documents import SearchDocument, search_documents, session_term
from pandora_dagster.stores.search.search_tables import (
    SEARCH_SCHEMA,
    drop_documents,
    insert_documents,
    messages_of,
    newest_turns,
    postings_of,
    search_path,
    speakers_of,
)
from pandora_dagster.stores.search.turn_tables import (
    ALL_TURNS,
    TIERS,
    TURN_COLUMN_NAMES,
    allocate_bases,
    drop_turns,
    insert_turns,
    merge_full_table,
    row_from,
    user_base,
    user_end,
)
from pandora_dagster.stores.search.turn_vectors import TurnVectors

NO_FILTERS = SearchFilters()
_NEWEST_FIRST = "ORDER BY created_at DESC, doc DESC"
_SELECT_BY_DOCS = f"SELECT {TURN_COLUMN_NAMES} FROM {ALL_TURNS} WHERE doc IN (SELECT unnest(?::BIGINT[])) {_NEWEST_FIRST} LIMIT ?"  # noqa: S608
_SELECT_BY_RANGE = f"SELECT {TURN_COLUMN_NAMES} FROM {ALL_TURNS} WHERE doc >= ? AND doc < ? {_NEWEST_FIRST} LIMIT ?"  # noqa: S608
_SELECT_OF_ALL_USERS = f"""
    SELECT {TURN_COLUMN_NAMES} FROM {ALL_TURNS} WHERE number < ? AND (? IS NULL OR session_id = ?)
    ORDER BY created_at DESC, number DESC, user_id DESC LIMIT ?
"""  # noqa: S608
_SELECT_ACTIVITIES = f"""
    SELECT doc, user_id, number, state, last_activity FROM {ALL_TURNS}
    WHERE doc > ? AND (? IS NULL OR (state = '{TurnState.ARCHIVED}') = ?) AND last_activity >= ? AND last_activity < ?
    ORDER BY doc LIMIT ?
"""  # noqa: S608
_ALL_TIME = ("", "\U0010ffff")
"""Bounds of times as text that hold for every time."""
_UNLIMITED = 2**62
_MAX_LISTED_TURNS = 1_000
"""Newest turns of a user that are looked up one by one; where more are asked for, all rows are read."""
_BATCH_ROWS = 50_000
"""Rows of a store that are read at once: a few MB."""
_MAX_OPEN_TURNS = 8
"""Turns of a user that run at the same time, at most: so many more candidates are looked up, because open turns are left out."""
_SELECT_SESSIONS = (
    f"SELECT session_id, number, state, last_activity FROM {ALL_TURNS} WHERE doc >= ? AND doc < ? ORDER BY session_id, number"  # noqa: S608
)
_SELECT_STATES = f"SELECT doc, state, last_activity, tokens, context_sha FROM {ALL_TURNS} WHERE doc IN (SELECT unnest(?::BIGINT[]))"  # noqa: S608
_SELECT_EXISTING_DOCS = f"SELECT doc FROM {ALL_TURNS} WHERE doc IN (SELECT unnest(?::BIGINT[]))"  # noqa: S608
_UPDATE_STATES = """
    UPDATE {table} SET state = given.state, tokens = given.tokens, context_sha = given.context_sha
    FROM (SELECT unnest(?::BIGINT[]) AS doc, unnest(?::VARCHAR[]) AS state, unnest(?::BIGINT[]) AS tokens,
        unnest(?::VARCHAR[]) AS context_sha) AS given
    WHERE {table}.doc = given.doc
"""
_SELECT_FILTERED_TURNS = f"""
    SELECT number FROM {ALL_TURNS} WHERE doc >= ? AND doc < ? AND (? IS NULL OR session_id = ?) AND (? IS NULL OR created_at >= ?)
    AND (? IS NULL OR created_at < ?) AND (? IS NULL OR intent = ?) AND (? IS NULL OR list_contains(topics, ?)) AND (? IS NULL OR state = ?)
"""  # noqa: S608
_SELECT_BY_FILTER = {
    name: f"SELECT 1 FROM {ALL_TURNS} WHERE doc >= ? AND doc < ? AND {having} LIMIT 1"  # noqa: S608
    for name, having in (
        ("session", "session_id = ?"),
        ("intent", "intent = ?"),
        ("topic", "list_contains(topics, ?)"),
        ("state", "state = ?"),
    )
}
"""Filter -> SQL that finds a turn with a value of it."""


@dataclass(frozen=True, slots=True)
class DuckTurnIndex:
    """`SearchIndex` in a DuckDB and a SQLite file. Every method opens, works and closes the files; raises StoreError."""

    file: DuckDBFile
    reader: TermReader = field(default_factory=TermReader)
    vectors: TurnVectors | None = None
    """Vectors for similarity by meaning; None: the search uses words only."""
    clock: Callable[[], datetime] | None = None
    """Gives the day of a query, in UTC as all times of turns; None: `yesterday` and the like are plain words."""

    @property
    def today(self) -> date | None:
        return self.clock().astimezone(UTC).date() if self.clock else None

    @property
    def search_file(self) -> SqliteFile:
        """The file that a search reads."""
        return SqliteFile(search_path(self.file.path), SEARCH_SCHEMA, self.file.wait_s)

    @property
    def path(self) -> Path:
        return self.file.path

    def exists(self) -> bool:
        return self.file.exists()

    def fault(self) -> StoreError | None:
        """Why an existing file cannot be used; None where both can, or are missing, or will be rebuilt at their next use."""
        fault = self.search_file.fault()
        return self.file.fault() or (None if isinstance(fault, OldIndexError) and self.file.remake else fault)

    def put(self, rows: Sequence[TurnRow]) -> None:
        """Store rows; each replaces an older row of the same turn. All rows are stored or none."""
        newest = {(row.user_id, row.number): row for row in rows}
        if not newest:
            return
        documents: dict[str, list[SearchDocument]] = {}  # read before the files are locked
        for row in newest.values():
            documents.setdefault(row.user_id, []).extend(_checked_documents(row, self.reader))
        self._ensure_search_file()
        with self.file.writing() as db:
            bases = allocate_bases(db, list(documents))
            drop_turns(db, [bases[row.user_id] + document_number(row.number) for row in newest.values()])
            insert_turns(db, [(bases[row.user_id], row) for row in newest.values()])
            merge_full_table(db)
            with self.search_file.writing() as search:
                for user, new in documents.items():
                    base = search_tables.allocate_base(search, user)
                    drop_documents(search, base, [number for owner, number in newest if owner == user])
                    insert_documents(search, base, new)

    def rows(
        self, user: str | None = None, *, session: str | None = None, before: int | None = None, limit: int | None = None
    ) -> tuple[TurnRow, ...]:
        """Rows by time and number, newest last, without turns numbered `before` or later; `limit` keeps the newest.

        Rows have no messages: see `messages_by_turn`.
        """
        max_rows = _UNLIMITED if limit is None else max(0, limit)
        is_looked_up = session is not None or max_rows <= _MAX_LISTED_TURNS
        numbers = self._listed(user, session, before, max_rows) if user is not None and is_looked_up else None
        with self.file.reading() as db:
            if user is None:
                end = _UNLIMITED if before is None else before
                rows = db.execute(_SELECT_OF_ALL_USERS, [end, session, session, max_rows]).fetchall()
            elif (base := user_base(db, user)) is None:
                rows = []
            elif numbers is None:
                rows = db.execute(_SELECT_BY_RANGE, [base, base + _end(before), max_rows]).fetchall()
            else:
                rows = db.execute(_SELECT_BY_DOCS, [[base + document_number(number) for number in numbers], max_rows]).fetchall()
        return tuple(row_from(values) for values in reversed(rows))

    def _listed(self, user: str, session: str | None, before: int | None, limit: int) -> list[int]:
        """The numbers of a user's turns: all of a session, or the newest."""
        with self._searching(user) as found:
            if found is None:
                return []
            if session is None:
                return newest_turns(*found, _end(before), limit)
            docs = postings_of(*found, session_term(session))[0]
            return [turn_number(doc) for doc in docs[docs < _end(before)].tolist()]

    def update_states(self, manifests: Sequence[Manifest]) -> None:
        """Set state, tokens and context hash of rows whose texts do not change; turns without a row are ignored."""
        with self.file.writing() as db:
            docs = _turn_docs(db, [m.key for m in manifests])
            values = [docs, [m.state for m in manifests], [m.tokens for m in manifests], [m.context_sha for m in manifests]]
            for tier in TIERS:
                db.execute(_UPDATE_STATES.format(table=f"turns{tier}"), values)

    def activities(self, *, archived: bool | None = None, between: tuple[str, str] = _ALL_TIME) -> Iterator[TurnActivity]:
        """State and last activity of every turn, by user and number. The file is closed between batches.

        `archived`: only archived turns, or only others; `between`: only turns whose last activity is from the first time to before the
        second, compared as text.
        """
        last_doc = -1
        while True:
            with self.file.reading() as db:
                rows = db.execute(_SELECT_ACTIVITIES, [last_doc, archived, archived, *between, _BATCH_ROWS]).fetchall()
            yield from (TurnActivity(TurnKey(UserId(user), number), state, at) for _, user, number, state, at in rows)
            if len(rows) < _BATCH_ROWS:
                return
            last_doc = rows[-1][0]

    def missing(self, keys: Sequence[TurnKey]) -> tuple[TurnKey, ...]:
        """The turns that have no row."""
        with self.file.reading() as db:
            docs = _turn_docs(db, keys)
            existing = {doc for (doc,) in db.execute(_SELECT_EXISTING_DOCS, [docs]).fetchall()}
        return tuple(key for key, doc in zip(keys, docs, strict=True) if doc not in existing)

    def sessions(self, user: str) -> dict[str, tuple[TurnActivity, ...]]:
        """The user's sessions by id, with state and last activity of each turn, by number."""
        with self.file.reading() as db:
            base = user_base(db, user)
            rows = [] if base is None else db.execute(_SELECT_SESSIONS, [base, user_end(base)]).fetchall()
        sessions: dict[str, list[TurnActivity]] = {}
        for session, number, state, last_activity in rows:
            sessions.setdefault(session, []).append(TurnActivity(TurnKey(UserId(user), number), state, last_activity))
        return {session: tuple(turns) for session, turns in sessions.items()}

    def outdated(self, manifests: Sequence[Manifest]) -> tuple[Manifest, ...]:
        """The manifests whose row is missing or has another state, last activity, number of tokens or context hash."""
        with self.file.reading() as db:
            docs = _turn_docs(db, [m.key for m in manifests])
            stored = {doc: tuple(fields) for doc, *fields in db.execute(_SELECT_STATES, [docs]).fetchall()}
        expected = ((m.state, m.last_activity, m.tokens, m.context_sha) for m in manifests)
        return tuple(m for m, doc, fields in zip(manifests, docs, expected, strict=True) if stored.get(doc) != fields)

    def messages_by_turn(self, user: str) -> dict[int, tuple[IndexedMessage, ...]]:
        """The messages of a user's turns by the turn's number, as `put` stored them."""
        turns: dict[int, list[IndexedMessage]] = {}
        with self._searching(user) as found:
            for number, message in messages_of(*found) if found else ():
                turns.setdefault(number, []).append(message)
        return {number: tuple(messages) for number, messages in turns.items()}

    def candidates(self, user: str, query: str, *, limit: int, before: int | None = None) -> tuple[Candidate, ...]:
        """The user's own turns that share terms or dates with `query` or are near one that does, best first.

        A turn has the score of its best message. Where nothing matches the result is empty: the caller adds recent turns. Open turns are
        left out: their documents still change, and a citation of them might not be found in them later.
        """
        if limit <= 0:
            return ()
        likeness = self._similarities(user, query)
        scores: dict[int, float] = {}
        with self._searching(user) as found:
            if found:
                search = MessageSearch(*found, self.reader, _end(before), likeness=likeness, today=self.today)
                for scored in search.rank(query):
                    scores.setdefault(scored.number, scored.score)
        best = list(scores)[: limit + _MAX_OPEN_TURNS]
        if not best:
            return ()
        with self.file.reading() as db:
            docs = _turn_docs(db, [TurnKey(UserId(user), number) for number in best])
            rows = map(row_from, db.execute(_SELECT_BY_DOCS, [docs, len(best)]).fetchall())
            by_number = {row.number: row for row in rows if row.state is not TurnState.OPEN}
        return tuple(Candidate(by_number[number], scores[number]) for number in best if number in by_number)[:limit]

    def messages(
        self, user: str, query: str, *, limit: int, filters: SearchFilters = NO_FILTERS, before: int | None = None
    ) -> tuple[FoundMessage, ...]:
        """The user's own messages that share something with `query` or are near one that does, best first."""
        if limit <= 0:
            return ()
        likeness = self._similarities(user, query)
        allowed = None if filters == NO_FILTERS else np.array(self._filtered(user, filters), dtype=np.int64)
        with self._searching(user) as found:
            if found is None:
                return ()
            search = MessageSearch(*found, self.reader, _end(before), allowed, likeness, self.today)
            return search.texts(best_messages(search.rank(query), limit))

    def _filtered(self, user: str, filters: SearchFilters) -> list[int]:
        """The numbers of a user's turns that pass the filters."""
        state = None if filters.state is None else str(filters.state)
        values = (filters.session, filters.since, filters.until, filters.intent, filters.topic, state)
        with self.file.reading() as db:
            if (base := user_base(db, user)) is None:
                return []
            parameters = [base, user_end(base), *(value for value in values for _ in range(2))]
            return [number for (number,) in db.execute(_SELECT_FILTERED_TURNS, parameters).fetchall()]

    def unmatched_filters(self, user: str, filters: SearchFilters) -> dict[str, str]:
        """Filter -> its value, of session, intent, topic and state, where no turn of the user has that value."""
        fields = {"session": filters.session, "intent": filters.intent, "topic": filters.topic, "state": filters.state}
        values = {name: str(value) for name, value in fields.items() if value is not None}
        with self.file.reading() as db:
            base = user_base(db, user)
            if base is None:
                return values
            bounds = [base, user_end(base)]
            return {name: value for name, value in values.items() if not db.execute(_SELECT_BY_FILTER[name], [*bounds, value]).fetchone()}

    def _similarities(self, user: str, query: str) -> Mapping[int, float]:
        """The number of a message among the user's -> similarity to the query with and without its names.

        A name makes everything that its bearer said similar, and the ranking counts names already. The file is closed while the model
        works, so that no other process waits for the lock.
        """
        if not self.vectors:
            return {}
        with self._searching(user) as found:
            speakers = [name for name in speakers_of(*found)[0].values() if name] if found else []
        return self.vectors.similarities(user, query, strip_names(query, speakers))

    def relevant(self, query: str, messages: Sequence[FoundMessage]) -> Sequence[FoundMessage]:
        """The found messages that are relevant to `query`, in their order. With vectors all of them are."""
        return messages if self.vectors else relevant_messages(query, messages, self.reader, self.today)

    def neighbours(self, messages: Sequence[FoundMessage], relevant: Sequence[FoundMessage]) -> Sequence[FoundMessage]:
        """Found messages near the best relevant ones, for the rest of a budget; none with vectors."""
        return () if self.vectors else neighbouring_messages(messages, relevant, self.reader)

    def remove(self, user: str, numbers: Sequence[int]) -> None:
        """Delete turns from the index; numbers without a row are ignored."""
        known = [number for number in numbers if 0 <= number < 1 << NUMBER_BITS]
        self._ensure_search_file()
        with self.file.writing() as db:
            if (base := user_base(db, user)) is not None:
                drop_turns(db, [base + document_number(number) for number in known])
            with self.search_file.writing() as search:
                if (base := search_tables.user_base(search, user)) is not None:
                    drop_documents(search, base, known)

    def rebuild(self, batches: Iterable[Sequence[TurnRow]]) -> Path | None:
        """Put `batches` into new files beside these, then put them in their place. Returns the new path of a damaged file."""
        fresh_search = self.search_file.path

        def fill(file: DuckDBFile) -> None:
            nonlocal fresh_search
            fresh = DuckTurnIndex(file, self.reader)
            fresh_search = fresh.search_file.path
            fresh.search_file.discard()
            fresh.search_file.create()
            for rows in batches:
                fresh.put(rows)

        return self.file.rebuild(fill, lambda: self.search_file.replace_by(fresh_search))[1]

    @contextmanager
    def _searching(self, user: str) -> Generator[tuple[sqlite3.Connection, int] | None]:
        """A connection to the search file, and the number from which the user's documents count; None for a user without documents."""
        self._ensure_search_file()
        with self.search_file.reading() as db:
            base = search_tables.user_base(db, user)
            yield None if base is None else (db, base)

    def _ensure_search_file(self) -> None:
        """Create a missing search file; where there are turns, which it would have to hold, it is rebuilt from the documents."""
        if self.search_file.is_current():
            return
        with self.file.reading() as db:
            has_turns = db.execute(f"SELECT 1 FROM {ALL_TURNS} LIMIT 1").fetchone() is not None  # noqa: S608 - constants
        if has_turns:
            self.file.remake_if(lambda: not self.search_file.is_current())
        elif not self.search_file.is_current():
            with self.file.locked():
                self.search_file.create()


def _checked_documents(row: TurnRow, reader: TermReader) -> list[SearchDocument]:
    """The documents of a turn; raises StoreError where they have no numbers."""
    documents = list(search_documents(row, reader))
    if row.number >> NUMBER_BITS or len(documents) >> PLACE_BITS:
        limits = f"expected a number below 2^{NUMBER_BITS} and less than 2^{PLACE_BITS} messages"
        raise StoreError(f"{row.user_id}:{row.turn_id}: {len(documents)} documents do not fit the index: {limits}")
    return documents


def _turn_docs(db: duckdb.DuckDBPyConnection, keys: Sequence[TurnKey]) -> list[int]:
    """The document number of each turn; -1 where its user has no documents."""
    bases = {user: user_base(db, user) for user in {key.user for key in keys}}
    return [-1 if (base := bases[key.user]) is None else base + document_number(key.number) for key in keys]


def _end(before: int | None) -> int:
    """The end of a user's documents that belong to turns numbered below `before`."""
    end = document_number(1 << NUMBER_BITS)
    return end if before is None else min(end, document_number(max(0, before)))
