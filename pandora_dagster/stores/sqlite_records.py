"""Records of a user taken out of SQLite files that are also other people's. Knows SQL and which columns say whose a row is.

What is deleted is overwritten (`secure_delete`), and the file is written anew (VACUUM) so that no freed page is left.
"""

import sqlite3
import zlib
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

from pandora_dagster.contracts.erasure import TraceScrubber
from pandora_dagster.errors import StoreError

_OWNERS = ("partition", "value")
"""Columns whose value, where it is a turn of the user or the user, says that the row is theirs alone."""
_BODY = 262_144


def erase_sqlite_rows(path: Path, traces: TraceScrubber, *, wait_s: float = 30.0) -> None:
    """Rows of the user's go; in all others every trace is replaced. Raises StoreError where another process holds the file too long."""
    with open_sqlite(path, wait_s) as db:
        for table, columns in _tables(db):
            _delete_own(db, table, columns, traces.user)
            _scrub(db, table, columns, traces)
        db.commit()
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


@contextmanager
def open_sqlite(path: Path, wait_s: float = 30.0) -> Generator[sqlite3.Connection]:
    """A connection that overwrites what it deletes."""
    try:
        with closing(sqlite3.connect(path, timeout=wait_s)) as db:
            db.execute("PRAGMA secure_delete = ON").fetchall()
            yield db
    except sqlite3.Error as error:
        hint = "end the programs that use it (pandora ui), then run it again"
        raise StoreError(f"{path}: cannot erase: {error}: expected records that can be written", hint=hint) from error


def _tables(db: sqlite3.Connection) -> list[tuple[str, list[str]]]:
    names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
    return [(name, [row[1] for row in db.execute(f'PRAGMA table_info("{name}")')]) for name in names]


def _delete_own(db: sqlite3.Connection, table: str, columns: list[str], user: str) -> None:
    for column in _OWNERS:
        if column in columns:
            starts = f"{user}:turn_"
            own = f'substr("{column}", 1, {len(starts)}) = ? OR "{column}" = ?'
            db.execute(f'DELETE FROM "{table}" WHERE {own}', [starts, user])  # noqa: S608 - the file's own names


def _scrub(db: sqlite3.Connection, table: str, columns: list[str], traces: TraceScrubber) -> None:
    changed: list[tuple[int, str, object]] = []
    cursor = db.execute(f'SELECT rowid, * FROM "{table}"')  # noqa: S608 - the file's own names
    while rows := cursor.fetchmany(500):
        for rowid, *cells in rows:
            for column, value in zip(columns, cells, strict=True):
                if (clean := _cleaned(column, value, traces)) is not None:
                    changed.append((rowid, column, clean))
    for rowid, column, clean in changed:
        db.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', [clean, rowid])  # noqa: S608


def _cleaned(column: str, value: object, traces: TraceScrubber) -> object:
    """The cell without traces; None where it has none."""
    if isinstance(value, str):
        return _text(column, value, traces)
    if not isinstance(value, bytes):
        return None
    try:
        plain = zlib.decompress(value)
    except zlib.error:
        plain = None
    data = value if plain is None else plain
    if not traces.found_in(data):
        return None
    clean = traces.scrub(data.decode(errors="surrogateescape")).encode(errors="surrogateescape")
    return clean if plain is None else zlib.compress(clean)


def _text(column: str, value: str, traces: TraceScrubber) -> str | None:
    shown = f'"{column}": "{value}"' if len(value) <= _BODY else value
    if not traces.found_in(shown.encode(errors="surrogatepass")):
        return None
    if value == traces.user:
        return "erased"
    return traces.scrub(value)
