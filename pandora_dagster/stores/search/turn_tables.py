"""The tables of the turn index and how rows go in and out of them.

Every document has one number: its user's, then its turn's, then its place in the turn. A posting's key is its user's number,
then a digest of its term, so that one user's rows lie together in every run, and no other user's are ever read with them.

What is new goes into small tables. Full ones are appended to the larger ones, sorted by key and document: first as short runs
in middle tables, then as long runs in the large ones, of which a search reads only the blocks that can hold its user's rows.
So one turn's arrival touches small tables only, in an index of any size, and no merge touches what was merged before.
A posting carries its document's length, so that a first score needs no join.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from operator import attrgetter
from typing import Any, overload

import duckdb

from pandora_dagster.contracts.turns import IndexedMessage, TurnRow
from pandora_dagster.errors import StoreError
from pandora_dagster.language.dates import date_terms, has_date_words, has_relative_date_words, relative_date_terms
from pandora_dagster.language.terms import TermReader, prefix_of
from pandora_dagster.retrieval.messages.document_numbers import NUMBER_BITS, PLACE_BITS, document_number
from pandora_dagster.stores.disk.column_table import ColumnTable, columns_of
from pandora_dagster.stores.disk.duckdb_file import Schema

# A turn as the documents that the index holds: the turn itself, then each of its messages, with their terms. Knows no SQL.

ASKS, OWN_WORDS, STATES_DATE = 1, 2, 4
"""Bits of `Posted.manner`: a question; a statement in the first person; a statement with a date."""
_OWN = frozenset({"i", "me", "my", "mine", "we", "us", "our", "ours"})


@dataclass(frozen=True, slots=True)
class SearchDocument:
    """One document: what is kept of it, and its terms with their counts in `bag`, separated by spaces. `doc` is the user's own."""

    doc: int
    session_id: str
    message_id: str
    role: str
    speaker: str
    created_at: str
    length: int
    manner: int
    text: str
    bag: str


def search_documents(row: TurnRow, reader: TermReader) -> Iterator[SearchDocument]:
    """The documents of a turn. A recorded turn's summary is made of its messages' own words and is not searched again."""
    texts = () if row.messages else (row.text,)
    text = "" if row.recorded and row.messages else "\n".join((row.summary, " ".join(row.topics), *texts))
    turn = IndexedMessage(id="", role="", text=text, created_at=row.created_at)
    yield _message_document(row, 0, turn, (*date_terms(row.created_at), session_term(row.session_id)), reader)
    for place, message in enumerate(row.messages, 1):
        yield _message_document(row, place, message, (), reader)


def session_term(session: str) -> str:
    """The term under which the turns of a session are listed."""
    return f"&{sha256(session.encode(errors='surrogatepass')).hexdigest()[:16]}"


def _message_document(row: TurnRow, place: int, message: IndexedMessage, marks: tuple[str, ...], reader: TermReader) -> SearchDocument:
    reading = reader.read(message.text)
    counts = reading.counts
    for term, count in [*counts.items()]:
        if prefix := prefix_of(term):
            counts[prefix] += count
    if place and has_relative_date_words(reading.words):
        marks = relative_date_terms(message.text, message.created_at)
    manner = ASKS * message.text.rstrip().endswith("?")
    manner |= OWN_WORDS * (not _OWN.isdisjoint(reading.words)) | STATES_DATE * has_date_words(reading.words)
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
        bag=" ".join([f"{term} {count}" for term, count in counts.items()] + [f"{mark} 1" for mark in marks]),
    )


TIERS = ("", "_mid", "_new")
"""What a table's name ends with: the large one, the middle one, the small one."""
_TURN_COLUMNS = {"user_id": "VARCHAR", "number": "BIGINT"} | columns_of(TurnRow, without=("messages",))
_TURNS = ColumnTable("turns", {"doc": "BIGINT"} | _TURN_COLUMNS)
_MESSAGES = ColumnTable("messages", columns_of(SearchDocument, without=("bag",)) | {"length": "INTEGER", "manner": "UTINYINT"})
_POSTINGS = ColumnTable("post", {"key": "BIGINT", "doc": "BIGINT", "tf": "USMALLINT", "length": "USMALLINT"})
_TIERED = {(table.name, tier): replace(table, name=table.name + tier) for table in (_TURNS, _MESSAGES, _POSTINGS) for tier in TIERS}
_USERS = ColumnTable("users", {"user_id": "VARCHAR", "no": "BIGINT"})
_TURN_VALUES, _MESSAGE_VALUES = attrgetter(*_TURN_COLUMNS), attrgetter(*_MESSAGES.columns)
TURN_NAMES = ", ".join(_TURN_COLUMNS)
_MOST = 65_535
_USER_SHIFT = NUMBER_BITS + PLACE_BITS
NEW_MESSAGES, MIDDLE_POSTINGS = 8_192, 4_000_000
"""Messages that the small tables take, and postings that the middle ones take, before they are merged."""
NEWEST = 100
"""Turns of a user that are listed apart in the order of time, so that the last ones are found at once."""

TURN_SCHEMA = Schema(
    version=5,
    statements=(
        *(table.creation for table in (*_TIERED.values(), _USERS)),
        "CREATE TABLE speakers (no BIGINT, speaker VARCHAR, messages BIGINT, length BIGINT)",
        "CREATE TABLE newest (doc BIGINT, created_at VARCHAR)",
    ),
)
ALL_TURNS, ALL_MESSAGES, ALL_POSTINGS = (
    f"({' UNION ALL '.join(f'SELECT * FROM {table}{tier}' for tier in TIERS)})"  # noqa: S608 - fixed names
    for table in ("turns", "messages", "post")
)
KEY = f"({{base}} | (md5_number_lower({{term}}) & {(1 << _USER_SHIFT) - 1})::BIGINT)"
"""SQL of a posting's key, from what a user's documents are counted from and a term. Of a million terms, two share one by a chance
of 3 %."""
_LISTED = " UNION ALL ".join(f"SELECT doc, '{tier}' AS tier FROM turns{tier}" for tier in TIERS)  # noqa: S608 - fixed names
_TURN_OF = f"doc >> {PLACE_BITS} << {PLACE_BITS}"
_GIVEN = "(SELECT unnest(?::BIGINT[]) AS doc)"
_INSERT_POSTINGS = f"""
    INSERT INTO post_new
    SELECT {KEY.format(base=f"(doc >> {_USER_SHIFT} << {_USER_SHIFT})", term="bag[2 * i + 1]")}, doc,
        least(bag[2 * i + 2]::INTEGER, {_MOST}), least(length, {_MOST})
    FROM (SELECT *, unnest(range(len(bag) // 2)) AS i FROM (
        SELECT unnest(?::BIGINT[]) AS doc, unnest(?::INTEGER[]) AS length, string_split(unnest(?::VARCHAR[]), ' ') AS bag))
"""  # noqa: S608 - constants of this module
_COUNT_SPEAKERS = f"""
    INSERT INTO speakers SELECT doc >> {_USER_SHIFT}, speaker, {{sign}} * count(*), {{sign}} * sum(length)
    FROM {{table}} WHERE {_TURN_OF} IN {_GIVEN} GROUP BY ALL
"""  # noqa: S608


def user_base(db: duckdb.DuckDBPyConnection, user: str) -> int | None:
    """The number that a user's documents are counted from; None for a user who has none."""
    found = db.execute("SELECT no FROM users WHERE user_id = ?", [user]).fetchone()
    return int(found[0]) << _USER_SHIFT if found else None


@overload
def user_of(doc: int) -> int: ...
@overload
def user_of(doc: str) -> str: ...
def user_of(doc: int | str) -> int | str:
    """The number of the user whose document this is; of a column's name, the SQL of it."""
    return doc >> _USER_SHIFT if isinstance(doc, int) else f"{doc} >> {_USER_SHIFT}"


def end_of(base: int) -> int:
    """The first number that is no longer the user's."""
    return base + (1 << _USER_SHIFT)


def allocate_bases(db: duckdb.DuckDBPyConnection, users: Sequence[str]) -> dict[str, int]:
    """The `user_base` of each user; a user without a number is given one."""
    known = dict(
        db.execute("SELECT user_id, no FROM users SEMI JOIN (SELECT unnest(?::VARCHAR[]) AS user_id) USING (user_id)", [users]).fetchall()
    )
    if new := [user for user in users if user not in known]:
        found = db.execute("SELECT coalesce(max(no), 0) FROM users").fetchone()
        first = (found[0] if found else 0) + 1
        known |= {user: first + place for place, user in enumerate(new)}
        _USERS.insert(db, [(user, known[user]) for user in new])
    return {user: int(no) << _USER_SHIFT for user, no in known.items()}


def insert_turns(db: duckdb.DuckDBPyConnection, turns: Sequence[tuple[int, TurnRow, Sequence[SearchDocument]]]) -> None:
    """Add turns that are not there, each with its user's base, and the documents that it is made of."""
    for _, row, documents in turns:
        if row.number >> NUMBER_BITS or len(documents) >> PLACE_BITS:
            limits = f"expected a number below 2^{NUMBER_BITS} and less than 2^{PLACE_BITS} messages"
            raise StoreError(f"{row.user_id}:{row.turn_id}: {len(documents)} documents do not fit the index: {limits}")
    docs = [base + document_number(row.number) for base, row, _ in turns]
    every = [replace(document, doc=base + document.doc) for base, _, documents in turns for document in documents]
    _TIERED["turns", "_new"].insert(db, [(doc, *_TURN_VALUES(row)) for doc, (_, row, _) in zip(docs, turns, strict=True)])
    _TIERED["messages", "_new"].insert(db, map(_MESSAGE_VALUES, every))
    db.execute(_INSERT_POSTINGS, [[d.doc for d in every], [d.length for d in every], [d.bag for d in every]])
    db.execute(_COUNT_SPEAKERS.format(sign=1, table="messages_new"), [docs])


def drop_turns(db: duckdb.DuckDBPyConnection, turns: Sequence[int]) -> None:
    """Take turns out by their documents. The rest is looked for only in the tables of the tier where a turn is known to be."""
    known = db.execute(f"SELECT tier, list(doc) FROM ({_LISTED}) SEMI JOIN {_GIVEN} USING (doc) GROUP BY tier", [turns]).fetchall()  # noqa: S608
    for tier, docs in known:
        db.execute(_COUNT_SPEAKERS.format(sign=-1, table=f"messages{tier}"), [docs])
        for table in (*(f"{name}{tier}" for name in ("turns", "messages", "post")), *(() if tier == "_new" else ("newest",))):
            db.execute(f"DELETE FROM {table} WHERE {_TURN_OF} IN {_GIVEN}", [docs])  # noqa: S608 - fixed names


def merge_full_tables(db: duckdb.DuckDBPyConnection) -> None:
    """Merge the small tables where they are full, then the middle ones where they are."""
    if _count(db, "messages_new") < NEW_MESSAGES:
        return
    db.execute(
        "CREATE OR REPLACE TABLE newest AS SELECT doc, created_at FROM (FROM newest UNION ALL SELECT doc, created_at FROM turns_new) "  # noqa: S608
        f"QUALIFY row_number() OVER (PARTITION BY doc >> {_USER_SHIFT} ORDER BY created_at DESC, doc DESC) <= {NEWEST}"
    )
    _append(db, "_new", "_mid")
    if _count(db, "post_mid") >= MIDDLE_POSTINGS:
        _append(db, "_mid", "")
    db.execute(
        "CREATE OR REPLACE TABLE speakers AS SELECT no, speaker, sum(messages)::BIGINT AS messages, sum(length)::BIGINT AS length "
        "FROM speakers GROUP BY ALL HAVING sum(messages) > 0"
    )


def _append(db: duckdb.DuckDBPyConnection, small: str, large: str) -> None:
    """Append a tier to the next as one sorted run each: no merge costs more than the small tables, however large the index is."""
    for name, order in (("turns", "doc"), ("messages", "doc"), ("post", "key, doc")):
        db.execute(f"INSERT INTO {name}{large} SELECT * FROM {name}{small} ORDER BY {order}")  # noqa: S608 - fixed names
        db.execute(f"TRUNCATE {name}{small}")


def _count(db: duckdb.DuckDBPyConnection, table: str) -> int:
    found = db.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 - fixed names
    return found[0] if found else 0


def row_from(values: tuple[Any, ...]) -> TurnRow:
    """A row as `TURN_NAMES` selects it."""
    return TurnRow.model_validate(dict(zip(_TURN_COLUMNS, values, strict=True)))
