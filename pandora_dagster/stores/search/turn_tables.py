"""The tables of the turn index: an inverted index in three tiers, and how turns go in and out of it.

A document is a turn or one of its messages. The tables `turns` and `messages` hold the documents, `post` the postings: a row (key, doc, tf,
length) for each term of a document, with the term's frequency and the document's length, so that a first score needs no join.

A document has one number, `doc`: the number of its user, of its turn, and its place in the turn (0 is the turn itself). Message 2 of turn 7
of user 3 is `3 << 44 | 7 << 20 | 2`. A posting's key is the user's number in the same bits, then a digest of the term. So the rows of one
user are adjacent in every sorted run, and a search reads no other user's. `user_base` is the number from which a user's documents count.

The tiers are small (`post_new`), middle (`post_mid`) and large (`post`) tables. New turns go into the small ones. Full ones are appended to
the next tier as one run, sorted by key and document; a search reads only the blocks that can hold its user's rows. So a new turn costs the
same in an index of any size, and a merge touches no run that was merged before.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from operator import attrgetter
from typing import Any

import duckdb

from pandora_dagster.contracts.turns import IndexedMessage, TurnRow
from pandora_dagster.errors import StoreError
from pandora_dagster.language.dates import date_terms
from pandora_dagster.language.relative_days import mentioned_date_terms
from pandora_dagster.language.terms import TermReader, prefix_of
from pandora_dagster.retrieval.messages.document_numbers import NUMBER_BITS, PLACE_BITS, document_number
from pandora_dagster.stores.disk.column_table import ColumnTable, columns_of
from pandora_dagster.stores.disk.duckdb_file import Schema

# The documents of a turn: the turn itself, then each of its messages, with their terms. No SQL.

ASKS, OWN_WORDS = 1, 2
"""Bits of `SearchDocument.manner`: a question; a statement in the first person; a statement with a date."""
_FIRST_PERSON = frozenset({"i", "me", "my", "mine", "we", "us", "our", "ours"})


@dataclass(frozen=True, slots=True)
class SearchDocument:
    """One document as its row has it, and its terms. `doc` is counted from the user's first document."""

    doc: int
    session_id: str
    message_id: str
    role: str
    speaker: str
    created_at: str
    length: int
    manner: int
    """What kind of statement it is, as bits."""
    text: str
    term_counts: str
    """Terms, each followed by its count, separated by spaces: `laptop 2 budget 1`."""


def search_documents(row: TurnRow, reader: TermReader) -> Iterator[SearchDocument]:
    """The documents of a turn. The summary of a recorded turn quotes its messages, which are documents already, and is left out."""
    texts = () if row.messages else (row.text,)
    text = "" if row.recorded and row.messages else "\n".join((row.summary, " ".join(row.topics), *texts))
    turn = IndexedMessage(id="", role="", text=text, created_at=row.created_at)
    yield _message_document(row, 0, turn, (*date_terms(row.created_at), session_term(row.session_id)), reader)
    for place, message in enumerate(row.messages, 1):
        yield _message_document(row, place, message, (), reader)


def session_term(session: str) -> str:
    """The term that every turn of a session has, such as `&0123456789abcdef`."""
    return f"&{sha256(session.encode(errors='surrogatepass')).hexdigest()[:16]}"


def _message_document(row: TurnRow, place: int, message: IndexedMessage, marks: tuple[str, ...], reader: TermReader) -> SearchDocument:
    """The document at a place of a turn. `marks`: terms beside those of its text, such as the dates of its day."""
    reading = reader.read(message.text)
    counts = reading.counts
    for term, count in [*counts.items()]:
        if prefix := prefix_of(term):
            counts[prefix] += count
    if place:
        marks = mentioned_date_terms(message.text, message.created_at)
    manner = ASKS * message.text.rstrip().endswith("?")
    manner |= OWN_WORDS * (not _FIRST_PERSON.isdisjoint(reading.words))
    return SearchDocument(
        doc=document_number(row.number, place),
        session_id=row.session_id,
        message_id=message.id,
        role=message.role,
        speaker=message.name,
        created_at=message.created_at,
        length=reading.length,
        manner=manner,
        text=message.text if place else "",
        term_counts=" ".join([f"{term} {count}" for term, count in counts.items()] + [f"{mark} 1" for mark in marks]),
    )


TIERS = ("", "_mid", "_new")
"""Suffixes of the tables' names: large, middle, small."""
_TURN_COLUMNS = {"user_id": "VARCHAR", "number": "BIGINT"} | columns_of(TurnRow, without=("messages",))
_TURNS = ColumnTable("turns", {"doc": "BIGINT"} | _TURN_COLUMNS)
_MESSAGES = ColumnTable(
    "messages",
    columns_of(SearchDocument, without=("term_counts",)) | {"length": "INTEGER", "manner": "UTINYINT"},
    uncompressed="text",
)
_POSTINGS = ColumnTable("post", {"key": "BIGINT", "doc": "BIGINT", "tf": "USMALLINT", "length": "USMALLINT"})
_TABLES = {(table.name, tier): replace(table, name=table.name + tier) for table in (_TURNS, _MESSAGES, _POSTINGS) for tier in TIERS}
_USERS = ColumnTable("users", {"user_id": "VARCHAR", "no": "BIGINT"})
_TURN_VALUES, _MESSAGE_VALUES = attrgetter(*_TURN_COLUMNS), attrgetter(*_MESSAGES.columns)
TURN_COLUMN_NAMES = ", ".join(_TURN_COLUMNS)
_MAX_USMALLINT = 65_535
_USER_SHIFT = NUMBER_BITS + PLACE_BITS
"""The bits of a document's number below its user's."""
MAX_NEW_MESSAGES, MAX_MIDDLE_POSTINGS = 8_192, 4_000_000
"""Messages in the small tables, and postings in the middle ones, from which on they are merged into the next tier."""
MAX_NEWEST_TURNS = 100
"""Turns of a user that the table `newest` lists, so that the last ones are found at once."""

TURN_SCHEMA = Schema(
    version=8,
    statements=(
        *(table.creation for table in (*_TABLES.values(), _USERS)),
        "CREATE TABLE speakers (no BIGINT, speaker VARCHAR, messages BIGINT, length BIGINT)",
        "CREATE TABLE newest (doc BIGINT, created_at VARCHAR)",
    ),
)
ALL_TURNS, ALL_MESSAGES, ALL_POSTINGS = (
    f"({' UNION ALL '.join(f'SELECT * FROM {table}{tier}' for tier in TIERS)})"  # noqa: S608 - fixed names
    for table in ("turns", "messages", "post")
)
POSTING_KEY_SQL = f"({{base}} | (md5_number_lower({{term}}) & {(1 << _USER_SHIFT) - 1})::BIGINT)"
"""SQL of a posting's key, from a `user_base` and a term. The chance that any two of a million terms share a key is 3 %."""
_TURN_TIERS = " UNION ALL ".join(f"SELECT doc, '{tier}' AS tier FROM turns{tier}" for tier in TIERS)  # noqa: S608 - fixed names
_TURN_DOC = f"doc >> {PLACE_BITS} << {PLACE_BITS}"
_GIVEN_DOCS = "(SELECT unnest(?::BIGINT[]) AS doc)"
_INSERT_POSTINGS = f"""
    INSERT INTO post_new
    SELECT {POSTING_KEY_SQL.format(base=f"(doc >> {_USER_SHIFT} << {_USER_SHIFT})", term="pairs[2 * i + 1]")}, doc,
        least(pairs[2 * i + 2]::INTEGER, {_MAX_USMALLINT}), least(length, {_MAX_USMALLINT})
    FROM (SELECT *, unnest(range(len(pairs) // 2)) AS i FROM (
        SELECT unnest(?::BIGINT[]) AS doc, unnest(?::INTEGER[]) AS length, string_split(unnest(?::VARCHAR[]), ' ') AS pairs))
"""  # noqa: S608 - constants of this module
_COUNT_SPEAKERS = f"""
    INSERT INTO speakers SELECT doc >> {_USER_SHIFT}, speaker, {{sign}} * count(*), {{sign}} * sum(length)
    FROM {{table}} WHERE {_TURN_DOC} IN {_GIVEN_DOCS} GROUP BY ALL
"""  # noqa: S608


def user_base(db: duckdb.DuckDBPyConnection, user: str) -> int | None:
    """The number from which a user's documents count; None for a user without documents."""
    row = db.execute("SELECT no FROM users WHERE user_id = ?", [user]).fetchone()
    return int(row[0]) << _USER_SHIFT if row else None


def user_number(doc: int) -> int:
    """The number of the user whose document this is."""
    return doc >> _USER_SHIFT


USER_NUMBER_SQL = f"doc >> {_USER_SHIFT}"
"""SQL of the number of the user whose document the column `doc` names."""


def user_end(base: int) -> int:
    """The first number above those of the user's documents."""
    return base + (1 << _USER_SHIFT)


def allocate_bases(db: duckdb.DuckDBPyConnection, users: Sequence[str]) -> dict[str, int]:
    """The `user_base` of each user; a user without a number gets the next one."""
    numbers = dict(
        db.execute("SELECT user_id, no FROM users SEMI JOIN (SELECT unnest(?::VARCHAR[]) AS user_id) USING (user_id)", [users]).fetchall()
    )
    if new_users := [user for user in users if user not in numbers]:
        row = db.execute("SELECT coalesce(max(no), 0) FROM users").fetchone()
        first = (row[0] if row else 0) + 1
        numbers |= {user: first + place for place, user in enumerate(new_users)}
        _USERS.insert(db, [(user, numbers[user]) for user in new_users])
    return {user: int(no) << _USER_SHIFT for user, no in numbers.items()}


def insert_turns(db: duckdb.DuckDBPyConnection, turns: Sequence[tuple[int, TurnRow, Sequence[SearchDocument]]]) -> None:
    """Add turns that are not stored, each with its `user_base` and its documents."""
    for _, row, documents in turns:
        if row.number >> NUMBER_BITS or len(documents) >> PLACE_BITS:
            limits = f"expected a number below 2^{NUMBER_BITS} and less than 2^{PLACE_BITS} messages"
            raise StoreError(f"{row.user_id}:{row.turn_id}: {len(documents)} documents do not fit the index: {limits}")
    docs = [base + document_number(row.number) for base, row, _ in turns]
    all_documents = [replace(document, doc=base + document.doc) for base, _, documents in turns for document in documents]
    _TABLES["turns", "_new"].insert(db, [(doc, *_TURN_VALUES(row)) for doc, (_, row, _) in zip(docs, turns, strict=True)])
    _TABLES["messages", "_new"].insert(db, map(_MESSAGE_VALUES, all_documents))
    db.execute(
        _INSERT_POSTINGS,
        [
            [document.doc for document in all_documents],
            [document.length for document in all_documents],
            [document.term_counts for document in all_documents],
        ],
    )
    db.execute(_COUNT_SPEAKERS.format(sign=1, table="messages_new"), [docs])


def drop_turns(db: duckdb.DuckDBPyConnection, turns: Sequence[int]) -> None:
    """Delete turns, by their numbers as documents, with their messages and postings. Only the tables of a turn's own tier are searched."""
    tiers = db.execute(f"SELECT tier, list(doc) FROM ({_TURN_TIERS}) SEMI JOIN {_GIVEN_DOCS} USING (doc) GROUP BY tier", [turns]).fetchall()  # noqa: S608
    for tier, docs in tiers:
        db.execute(_COUNT_SPEAKERS.format(sign=-1, table=f"messages{tier}"), [docs])
        for table in (*(f"{name}{tier}" for name in ("turns", "messages", "post")), *(() if tier == "_new" else ("newest",))):
            db.execute(f"DELETE FROM {table} WHERE {_TURN_DOC} IN {_GIVEN_DOCS}", [docs])  # noqa: S608 - fixed names


def merge_full_tables(db: duckdb.DuckDBPyConnection) -> None:
    """Append the small tables to the middle ones where they are full, then the middle ones to the large ones where those are full."""
    if _count_rows(db, "messages_new") < MAX_NEW_MESSAGES:
        return
    db.execute(
        "CREATE OR REPLACE TABLE newest AS SELECT doc, created_at FROM (FROM newest UNION ALL SELECT doc, created_at FROM turns_new) "  # noqa: S608
        f"QUALIFY row_number() OVER (PARTITION BY doc >> {_USER_SHIFT} ORDER BY created_at DESC, doc DESC) <= {MAX_NEWEST_TURNS}"
    )
    _append_tier(db, "_new", "_mid")
    if _count_rows(db, "post_mid") >= MAX_MIDDLE_POSTINGS:
        _append_tier(db, "_mid", "")
    db.execute(
        "CREATE OR REPLACE TABLE speakers AS SELECT no, speaker, sum(messages)::BIGINT AS messages, sum(length)::BIGINT AS length "
        "FROM speakers GROUP BY ALL HAVING sum(messages) > 0"
    )


def _append_tier(db: duckdb.DuckDBPyConnection, source_tier: str, target_tier: str) -> None:
    """Append the tables of a tier to those of the next, each as one sorted run; its cost depends on the smaller tier alone."""
    for name, order in (("turns", "doc"), ("messages", "doc"), ("post", "key, doc")):
        db.execute(f"INSERT INTO {name}{target_tier} SELECT * FROM {name}{source_tier} ORDER BY {order}")  # noqa: S608 - fixed names
        db.execute(f"TRUNCATE {name}{source_tier}")


def _count_rows(db: duckdb.DuckDBPyConnection, table: str) -> int:
    row = db.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 - fixed names
    return row[0] if row else 0


def row_from(values: tuple[Any, ...]) -> TurnRow:
    """The TurnRow of the columns that `TURN_COLUMN_NAMES` selects."""
    return TurnRow.model_validate(dict(zip(_TURN_COLUMNS, values, strict=True)))
