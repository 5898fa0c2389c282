"""The tables that a search reads, in one SQLite file: postings of terms, columns of documents, texts; how turns go in and out of them.

A document is a turn or one of its messages. Its number is its user's, its turn's and its place in the turn (0 is the turn itself): message
2 of turn 7 of user 3 is `3 << 44 | 7 << 20 | 2`. Within a block it is counted from the block's first.

`postings` has a row for each term and block of 1,024 turns of a user: an array of documents, each with the term's frequency and its own
length, so that a first score needs no join. `columns` has a row for each block of 64 turns: an array of what ranking needs of a document.
Every key begins with the user's number, so the rows of one user are adjacent, and a search reads no other user's.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pandora_dagster.contracts.turns import IndexedMessage
from pandora_dagster.language.terms import PREFIX_SIGN, prefix_of
from pandora_dagster.retrieval.messages.document_numbers import NUMBER_BITS, PLACE_BITS, document_number, turn_number
from pandora_dagster.stores.disk.duckdb_file import Schema, batches
from pandora_dagster.stores.disk.sqlite_file import SqliteFile
from pandora_dagster.stores.search.search_documents import SearchDocument

SEARCH_SCHEMA = Schema(
    version=1,
    statements=(
        "CREATE TABLE users (no INTEGER PRIMARY KEY, user_id TEXT UNIQUE)",
        "CREATE TABLE speakers (no INTEGER, id INTEGER, speaker TEXT, messages INTEGER, length INTEGER, "
        "PRIMARY KEY (no, id)) WITHOUT ROWID",
        "CREATE TABLE postings (no INTEGER, term TEXT, block INTEGER, docs BLOB, PRIMARY KEY (no, term, block)) WITHOUT ROWID",
        "CREATE TABLE columns (block INTEGER PRIMARY KEY, docs BLOB)",
        "CREATE TABLE messages (doc INTEGER PRIMARY KEY, message_id TEXT, role TEXT, speaker TEXT, created_at TEXT, text TEXT, terms TEXT)",
        "CREATE TABLE turns (no INTEGER, created_at TEXT, doc INTEGER, PRIMARY KEY (no, created_at, doc)) WITHOUT ROWID",
    ),
)
POSTING_BITS, COLUMN_BITS = PLACE_BITS + 10, PLACE_BITS + 6
"""Bits of a document's number within its block."""
USER_BITS = NUMBER_BITS + PLACE_BITS
"""Bits of a document's number below its user's."""
POSTING = np.dtype([("doc", "<u4"), ("count", "<u2"), ("length", "<u2")])
COLUMNS = np.dtype([("doc", "<u4"), ("speaker", "<u4"), ("session", "<i8"), ("length", "<u4"), ("manner", "u1")])
_MAX_COUNT = 65_535
Rows = npt.NDArray[Any]
"""An array of POSTING or COLUMNS."""
_MAX_PARAMETERS = 500
_OWNERS = {
    **dict.fromkeys(("users", "speakers", "postings", "turns"), "no"),
    "columns": f"block >> {USER_BITS - COLUMN_BITS}",
    "messages": f"doc >> {USER_BITS}",
}
"""Table -> SQL of the number of the user whose row it is."""
_APPEND_POSTINGS = """
    INSERT INTO postings VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET docs = CAST(docs || excluded.docs AS BLOB)
"""


def search_path(index_path: Path) -> Path:
    """The file of these tables that belongs to a DuckDB file of turns."""
    return index_path.with_name(f"{index_path.name}.sqlite")


def user_base(db: sqlite3.Connection, user: str) -> int | None:
    """The number from which a user's documents count; None for a user without documents."""
    row = db.execute("SELECT no FROM users WHERE user_id = ?", [user]).fetchone()
    return int(row[0]) << USER_BITS if row else None


def allocate_base(db: sqlite3.Connection, user: str) -> int:
    """The `user_base` of a user, who gets the next number where he has none."""
    db.execute("INSERT OR IGNORE INTO users (user_id) VALUES (?)", [user])
    return user_base(db, user) or 0


def insert_documents(db: sqlite3.Connection, base: int, documents: Sequence[SearchDocument]) -> None:
    """Add the documents of turns of one user that are not stored."""
    no = base >> USER_BITS
    postings: dict[tuple[str, int], bytearray] = defaultdict(bytearray)
    columns: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    speakers = _count_speakers(db, no, documents)
    for document in documents:
        block, offset = divmod(document.doc, 1 << POSTING_BITS)
        length = min(document.length, _MAX_COUNT).to_bytes(2, "little")
        for term, count in document.term_counts.items():
            postings[term, block] += b"".join((offset.to_bytes(4, "little"), min(count, _MAX_COUNT).to_bytes(2, "little"), length))
        block, offset = divmod(document.doc, 1 << COLUMN_BITS)
        values = (offset, speakers[document.speaker], _session_number(document.session_id), document.length, document.manner)
        columns[block].append(values)
    db.executemany(_APPEND_POSTINGS, [(no, term, block, bytes(postings[term, block])) for term, block in sorted(postings)])
    for block, rows in columns.items():
        key = _column_block(base, block)
        _write_columns(db, key, np.concatenate((_read_columns(db, key), np.array(rows, dtype=COLUMNS))))
    db.executemany(
        "INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(base + d.doc, d.message_id, d.role, d.speaker, d.created_at, d.text, _stored_terms(d.term_counts)) for d in documents],
    )
    turns = [(no, d.created_at, d.doc) for d in documents if d.doc == document_number(turn_number(d.doc))]
    db.executemany("INSERT INTO turns VALUES (?, ?, ?)", turns)


def drop_documents(db: sqlite3.Connection, base: int, numbers: Iterable[int]) -> None:
    """Delete the turns of a user with their messages and postings; numbers that are not stored are ignored."""
    no = base >> USER_BITS
    docs: list[int] = []
    dropped: dict[tuple[str, int], list[int]] = defaultdict(list)
    for number in numbers:
        first, end = base + document_number(number), base + document_number(number + 1)
        for doc, created_at, terms in db.execute("SELECT doc, created_at, terms FROM messages WHERE doc >= ? AND doc < ?", [first, end]):
            docs.append(doc - base)
            for term in _read_terms(terms):
                dropped[term, (doc - base) >> POSTING_BITS].append((doc - base) & ((1 << POSTING_BITS) - 1))
            if doc == first:
                db.execute("DELETE FROM turns WHERE no = ? AND created_at = ? AND doc = ?", [no, created_at, doc - base])
        db.execute("DELETE FROM messages WHERE doc >= ? AND doc < ?", [first, end])
    for key in sorted(dropped):
        _drop_postings(db, (no, *key), dropped[key])
    for block in sorted({doc >> COLUMN_BITS for doc in docs}):
        _drop_columns(db, no, _column_block(base, block), [doc & ((1 << COLUMN_BITS) - 1) for doc in docs if doc >> COLUMN_BITS == block])


def postings_of(db: sqlite3.Connection, base: int, term: str) -> tuple[npt.NDArray[np.int64], Rows]:
    """The documents of a user that have a term, and their postings."""
    rows = db.execute("SELECT block, docs FROM postings WHERE no = ? AND term = ?", [base >> USER_BITS, term]).fetchall()
    if not rows:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=POSTING)
    blocks, blobs = zip(*rows, strict=True)
    found = np.frombuffer(b"".join(blobs), dtype=POSTING)
    firsts = np.repeat(np.array(blocks, dtype=np.int64) << POSTING_BITS, [len(blob) // POSTING.itemsize for blob in blobs])
    return firsts + found["doc"], found


def columns_of_turns(db: sqlite3.Connection, base: int, numbers: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], Rows]:
    """The documents of these turns of a user by rising number, and their columns."""
    shift = COLUMN_BITS - PLACE_BITS
    keys = [_column_block(base, block) for block in np.unique(numbers >> shift).tolist()]
    docs, found = _joined_columns(base, _select_columns(db, keys))
    kept = np.isin(docs >> PLACE_BITS, numbers)
    docs, found = docs[kept], found[kept]
    order = np.argsort(docs, kind="stable")
    return docs[order], found[order]


def newest_columns(db: sqlite3.Connection, base: int) -> Iterator[tuple[npt.NDArray[np.int64], Rows]]:
    """The documents of a user and their columns, block by block, the newest block first."""
    bounds = [_column_block(base, 0), _column_block(base + (1 << USER_BITS), 0)]
    for row in db.execute("SELECT block, docs FROM columns WHERE block >= ? AND block < ? ORDER BY block DESC", bounds):
        docs, found = _joined_columns(base, [row])
        order = np.argsort(-docs, kind="stable")
        yield docs[order], found[order]


def speakers_of(db: sqlite3.Connection, base: int) -> tuple[dict[int, str], int, int]:
    """The speakers in a user's messages by their numbers, the number of messages, and the sum of their lengths."""
    rows = db.execute("SELECT id, speaker, messages, length FROM speakers WHERE no = ? AND messages > 0", [base >> USER_BITS]).fetchall()
    return {row[0]: row[1] for row in rows}, sum(row[2] for row in rows), sum(row[3] for row in rows)


def texts_of(db: sqlite3.Connection, base: int, docs: Sequence[int]) -> dict[int, tuple[str, str, str, str, str]]:
    """Document of a user -> id, role, speaker, time and text of the message."""
    found: dict[int, tuple[str, str, str, str, str]] = {}
    for some in batches(docs, _MAX_PARAMETERS):
        marks = ", ".join("?" * len(some))
        statement = f"SELECT doc, message_id, role, speaker, created_at, text FROM messages WHERE doc IN ({marks})"  # noqa: S608
        found |= {row[0] - base: row[1:] for row in db.execute(statement, [base + doc for doc in some])}
    return found


def messages_of(db: sqlite3.Connection, base: int) -> Iterator[tuple[int, IndexedMessage]]:
    """The messages of a user, each with the number of its turn."""
    rows = db.execute(
        "SELECT doc, message_id, role, speaker, text, created_at FROM messages WHERE doc >= ? AND doc < ? ORDER BY doc",
        [base, base + (1 << USER_BITS)],
    )
    for doc, name, role, speaker, text, created_at in rows:
        if doc & (document_number(1) - 1):
            yield turn_number(doc - base), IndexedMessage(id=name, role=role, name=speaker, text=text, created_at=created_at)


def newest_turns(db: sqlite3.Connection, base: int, end: int, limit: int) -> list[int]:
    """The numbers of a user's newest turns among the documents below `end`."""
    statement = "SELECT doc FROM turns WHERE no = ? AND doc < ? ORDER BY created_at DESC, doc DESC LIMIT ?"
    return [turn_number(doc) for (doc,) in db.execute(statement, [base >> USER_BITS, end, limit])]


def latest_day(db: sqlite3.Connection, base: int, day: str, *, end: int, until: str) -> str:
    """The latest `2026-01-08` (or `2026-01`), before the day `until`, that has a turn of the user and ends with `01-08` (or is of month
    `01`); "" for none. The term of a day is that of a turn, or of a message that mentions the day."""
    terms = db.execute(
        "SELECT DISTINCT term FROM postings WHERE no = ? AND term >= '@0' AND term < ? AND length(term) = 11 AND substr(term, 7, ?) = ? "
        "ORDER BY term DESC",
        [base >> USER_BITS, f"@{until}", len(day), day],
    )
    for (term,) in terms.fetchall():
        docs = postings_of(db, base, term)[0]
        if np.any((docs < end) & (docs & (document_number(1) - 1) == 0)):
            return term[1 : 6 + len(day)]
    return ""


def copy_without_user(file: SqliteFile, fresh: SqliteFile, user: str) -> None:
    """Write the rows of all other users to a new file, in their order. Raises StoreError."""
    fresh.create()
    with file.reading() as old, fresh.writing() as new:
        no = (user_base(old, user) or -1) >> USER_BITS
        for table, owner in _OWNERS.items():
            rows = old.execute(f"SELECT * FROM {table} WHERE {owner} <> ?", [no])  # noqa: S608 - constants
            new.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows.description))})", rows)  # noqa: S608


def _count_speakers(db: sqlite3.Connection, no: int, documents: Sequence[SearchDocument]) -> dict[str, int]:
    """Count the documents for their speakers; returns the number of each speaker."""
    ids: dict[str, int] = {speaker: id_ for id_, speaker in db.execute("SELECT id, speaker FROM speakers WHERE no = ?", [no])}
    totals: dict[str, list[int]] = {}
    for document in documents:
        total = totals.setdefault(document.speaker, [0, 0])
        total[0] += 1
        total[1] += document.length
        ids.setdefault(document.speaker, len(ids) + 1)
    db.executemany(
        "INSERT INTO speakers VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET messages = messages + excluded.messages, length = length + excluded.length",
        [(no, ids[speaker], speaker, *total) for speaker, total in totals.items()],
    )
    return ids


def _session_number(session: str) -> int:
    return int.from_bytes(sha256(session.encode(errors="surrogatepass")).digest()[:8], "little", signed=True)


def _stored_terms(counts: Mapping[str, int]) -> str:
    """The terms of a document that are no prefixes of others, separated by spaces, by which its postings are found again."""
    return " ".join(term for term in counts if not term.startswith(PREFIX_SIGN))


def _read_terms(stored: str) -> set[str]:
    terms = stored.split()
    return {*terms, *(prefix for term in terms if (prefix := prefix_of(term)))}


def _drop_postings(db: sqlite3.Connection, key: tuple[int, str, int], offsets: Sequence[int]) -> None:
    row = db.execute("SELECT docs FROM postings WHERE no = ? AND term = ? AND block = ?", key).fetchone()
    if row is None:
        return
    rows = np.frombuffer(row[0], dtype=POSTING)
    kept = rows[~np.isin(rows["doc"], offsets)]
    if len(kept):
        db.execute("UPDATE postings SET docs = ? WHERE no = ? AND term = ? AND block = ?", [kept.tobytes(), *key])
    else:
        db.execute("DELETE FROM postings WHERE no = ? AND term = ? AND block = ?", key)


def _drop_columns(db: sqlite3.Connection, no: int, key: int, offsets: Sequence[int]) -> None:
    rows = _read_columns(db, key)
    dropped = np.isin(rows["doc"], offsets)
    for speaker, length in rows[dropped][["speaker", "length"]].tolist():
        db.execute("UPDATE speakers SET messages = messages - 1, length = length - ? WHERE no = ? AND id = ?", [length, no, speaker])
    _write_columns(db, key, rows[~dropped])


def _column_block(base: int, block: int) -> int:
    """The key of a row of `columns`."""
    return (base >> COLUMN_BITS) + block


def _read_columns(db: sqlite3.Connection, key: int) -> Rows:
    row = db.execute("SELECT docs FROM columns WHERE block = ?", [key]).fetchone()
    return np.frombuffer(row[0] if row else b"", dtype=COLUMNS)


def _write_columns(db: sqlite3.Connection, key: int, rows: Rows) -> None:
    if len(rows):
        db.execute("INSERT OR REPLACE INTO columns VALUES (?, ?)", [key, rows.tobytes()])
    else:
        db.execute("DELETE FROM columns WHERE block = ?", [key])


def _select_columns(db: sqlite3.Connection, keys: Sequence[int]) -> list[tuple[int, bytes]]:
    rows: list[tuple[int, bytes]] = []
    for some in batches(keys, _MAX_PARAMETERS):
        rows += db.execute(f"SELECT block, docs FROM columns WHERE block IN ({', '.join('?' * len(some))})", some).fetchall()  # noqa: S608
    return rows


def _joined_columns(base: int, rows: Sequence[tuple[int, bytes]]) -> tuple[npt.NDArray[np.int64], Rows]:
    found = np.frombuffer(b"".join(row[1] for row in rows), dtype=COLUMNS)
    firsts = np.array([(row[0] - _column_block(base, 0)) << COLUMN_BITS for row in rows], dtype=np.int64)
    return np.repeat(firsts, [len(row[1]) // COLUMNS.itemsize for row in rows]) + found["doc"], found
