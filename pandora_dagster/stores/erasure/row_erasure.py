"""Removes a user's rows from the indexes and from SQLite files of records.

An index is copied without the rows, because the bytes of a deleted row would stay in its file. A table whose rows cannot be assigned to
users stops the erasure.
"""

import os
import sqlite3
import zlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.ports.user_storage import TraceScrubber
from pandora_dagster.contracts.retention import SearchedObject
from pandora_dagster.errors import DamagedIndexError, OldIndexError, StoreError
from pandora_dagster.stores.disk.duckdb_file import DUCKDB_CONFIG, DuckDBFile, Schema
from pandora_dagster.stores.disk.files import disk_errors, sync
from pandora_dagster.stores.disk.sqlite_file import SqliteFile
from pandora_dagster.stores.erasure.content_search import search_files
from pandora_dagster.stores.erasure.file_erasure import files_below
from pandora_dagster.stores.search.search_tables import SEARCH_SCHEMA, copy_without_user, search_path
from pandora_dagster.stores.search.turn_tables import USER_NUMBER_SQL, user_base, user_number

_TABLES_WITHOUT_USERS = frozenset({"schema_version", "model", "whole"})
"""Tables without rows of users."""
_INDEX_SUFFIX, _LOCK_SUFFIX = ".duckdb", ".lock"
_KEPT_SUFFIXES = (_INDEX_SUFFIX, _LOCK_SUFFIX, f"{_INDEX_SUFFIX}.wal", str(search_path(Path(_INDEX_SUFFIX))))


def index_files(root: Path) -> tuple[Path, ...]:
    """The indexes of a store."""
    folder = root / "indexes"
    return tuple(sorted(p for p in folder.glob(f"*{_INDEX_SUFFIX}") if p.is_file() and not p.is_symlink())) if folder.is_dir() else ()


def erase_rows(path: Path, user: str, *, wait_s: float) -> bool:
    """Replace an index, and the file that belongs to it, by a copy without the user's rows, the others in their order.

    False where one was damaged: it is deleted, because an index can be rebuilt. Raises StoreError where another process holds it.
    """
    with DuckDBFile(path, Schema(0, ()), wait_s).locked(), disk_errors(path, "cannot erase"):
        search_file = SqliteFile(search_path(path), SEARCH_SCHEMA, wait_s)
        is_sound = not search_file.exists() or _erase_search_rows(search_file, user)
        return _erase_duckdb_rows(path, user) and is_sound


def _erase_search_rows(file: SqliteFile, user: str) -> bool:
    """Replace the file of a search; one that is damaged, or of another version, is deleted."""
    fresh = replace(file, path=file.path.with_name(file.path.name + ".making"))
    fresh.discard()
    try:
        copy_without_user(file, fresh, user)
    except DamagedIndexError as error:
        fresh.discard()
        file.discard()
        return isinstance(error, OldIndexError)
    sync(fresh.path)
    file.replace_by(fresh.path)
    sync(file.path.parent)
    return True


def _erase_duckdb_rows(path: Path, user: str) -> bool:
    fresh = path.with_name(path.name + ".making")
    _remove_file(fresh)
    try:
        _copy_without_user(path, fresh, user)
    except duckdb.Error as error:
        _remove_file(fresh)
        if "lock" in str(error).lower():
            raise StoreError(
                f"{path}: open in another program: expected it to be free", hint="end that program, then run it again"
            ) from error
        _remove_file(path)
        return False
    sync(fresh)
    path.with_name(path.name + ".wal").unlink(missing_ok=True)
    os.replace(fresh, path)  # noqa: PTH105 - one primitive, the same that the kill tests count
    sync(path.parent)
    return True


def remove_leftovers(root: Path, *, wait_s: float) -> int:
    """Delete kept damaged indexes, leftovers of rebuilds and spill files of killed processes, which are all derived; returns their number.

    A process spills only under the lock of an index, so while all locks are held no process uses DuckDB's temporary files. The folders
    stay, and the empty files that running instances need to spill again. Raises StoreError where another process holds an index.
    """
    folder = root / "indexes"
    deleted = 0
    with disk_errors(folder, "cannot erase"), ExitStack() as locks:
        for path in sorted(folder.glob(f"*{_LOCK_SUFFIX}")):
            locks.enter_context(DuckDBFile(path.with_name(path.name.removesuffix(_LOCK_SUFFIX)), Schema(0, ()), wait_s).locked())
        for path in files_below(folder):
            is_index = path.parent == folder and path.name.endswith(_KEPT_SUFFIXES)
            is_instance_marker = path.parent != folder and not path.lstat().st_size
            if not is_index and not is_instance_marker:
                path.unlink()
                deleted += 1
    return deleted


@dataclass(frozen=True, slots=True)
class IndexEraser:
    """The Eraser of the indexes of one store. `wait_s`: how long to wait for another process that holds an index."""

    root: Path
    wait_s: float
    step: str = "indexes"

    def count(self, user: UserId) -> Mapping[str, int]:
        """Nothing: an index holds no more than the documents do."""
        return {}

    def erase(self, user: UserId, traces: TraceScrubber) -> Sequence[str]:
        damaged = [path for path in index_files(self.root) if not erase_rows(path, user, wait_s=self.wait_s)]
        remove_leftovers(self.root, wait_s=self.wait_s)
        return tuple(f"{path}: it was damaged and is deleted: pandora index rebuild builds it again" for path in damaged)

    def search(self, traces: TraceScrubber) -> Iterator[SearchedObject]:
        yield from search_files(files_below(self.root / "indexes"), traces, wait_s=self.wait_s)


def _copy_without_user(path: Path, fresh: Path, user: str) -> None:
    """Write the tables of an index to the file `fresh`, without the user's rows; raises duckdb.Error, StoreError."""
    with duckdb.connect(path, config=DUCKDB_CONFIG) as old:  # writes the log into the file
        old.execute("CHECKPOINT")
        base = user_base(old, user) if _has_user_numbers(old) else None
    with duckdb.connect(fresh, config=DUCKDB_CONFIG) as db:
        db.execute(f"ATTACH '{str(path).replace(chr(39), chr(39) * 2)}' AS old (READ_ONLY)")
        tables = db.execute("SELECT table_name, sql FROM duckdb_tables() WHERE database_name = 'old' ORDER BY table_oid").fetchall()
        db.execute("BEGIN TRANSACTION")
        for table, statement in tables:
            db.execute(statement)
            columns = [row[0] for row in db.execute(f'DESCRIBE old."{table}"').fetchall()]
            condition, values = _kept_rows_condition(path, table, columns, user, base)
            db.execute(f'INSERT INTO main."{table}" SELECT * FROM old."{table}" WHERE {condition}', values)  # noqa: S608 - the file's own names
        db.execute("COMMIT")
        db.execute("CHECKPOINT")


def _has_user_numbers(db: duckdb.DuckDBPyConnection) -> bool:
    """Whether the index is one whose rows have numbers of users: the turn index."""
    row = db.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'users'").fetchone()
    return bool(row and row[0])


def _kept_rows_condition(path: Path, table: str, columns: Sequence[str], user: str, base: int | None) -> tuple[str, list[object]]:
    """SQL that holds for the rows of other users in a table, and its parameters; raises StoreError where the table has no owners."""
    if "user_id" in columns:
        return "user_id IS DISTINCT FROM ?", [user]
    if table == "files_read":
        return "NOT contains('/' || path, ?)", [f"/users/{user}/"]
    if table in _TABLES_WITHOUT_USERS:
        return "TRUE", []
    number = -1 if base is None else user_number(base)
    if "doc" in columns:
        return f"{USER_NUMBER_SQL} <> ?", [number]
    if "no" in columns:
        return "no <> ?", [number]
    raise StoreError(
        f"{path}: table {table}: it has no user column: its rows cannot be assigned to a user",
        hint="move the file out of the store; pandora index rebuild makes a new one",
    )


def _remove_file(path: Path) -> None:
    for file in (path, path.with_name(path.name + ".wal")):
        file.unlink(missing_ok=True)


# SQLite files hold records of several users. Deleted rows are overwritten (`secure_delete`), and the file is written again (VACUUM), so
# that no freed page is left.

_OWNER_COLUMNS = ("partition", "value")
"""Columns that make a row the user's alone where they have a turn of the user or the user id."""
_BATCH_ROWS = 500
_MAX_ID_CELL_CHARACTERS = 262_144
"""A longer cell is no id, and is searched without the name of its column."""


def erase_sqlite_rows(path: Path, traces: TraceScrubber, *, wait_s: float = 30.0) -> None:
    """Delete the user's rows, and remove traces of the user from all others. Raises StoreError where another process holds the file."""
    with open_sqlite(path, wait_s) as db:
        for table, columns in _table_columns(db):
            _delete_own_rows(db, table, columns, traces.user)
            _scrub_table(db, table, columns, traces)
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


def _table_columns(db: sqlite3.Connection) -> list[tuple[str, list[str]]]:
    names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
    return [(name, [row[1] for row in db.execute(f'PRAGMA table_info("{name}")')]) for name in names]


def _delete_own_rows(db: sqlite3.Connection, table: str, columns: list[str], user: str) -> None:
    for column in _OWNER_COLUMNS:
        if column in columns:
            turn_prefix = f"{user}:turn_"
            is_own = f'substr("{column}", 1, {len(turn_prefix)}) = ? OR "{column}" = ?'
            db.execute(f'DELETE FROM "{table}" WHERE {is_own}', [turn_prefix, user])  # noqa: S608 - the file's own names


def _scrub_table(db: sqlite3.Connection, table: str, columns: list[str], traces: TraceScrubber) -> None:
    changes: list[tuple[int, str, object]] = []
    cursor = db.execute(f'SELECT rowid, * FROM "{table}"')  # noqa: S608 - the file's own names
    while rows := cursor.fetchmany(_BATCH_ROWS):
        for rowid, *cells in rows:
            for column, value in zip(columns, cells, strict=True):
                if (scrubbed := _scrub_cell(column, value, traces)) is not None:
                    changes.append((rowid, column, scrubbed))
    for rowid, column, scrubbed in changes:
        db.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', [scrubbed, rowid])  # noqa: S608


def _scrub_cell(column: str, value: object, traces: TraceScrubber) -> object:
    """The cell without traces of the user, decompressed and compressed where necessary; None where it has no trace."""
    if isinstance(value, str):
        return _scrub_text(column, value, traces)
    if not isinstance(value, bytes):
        return None
    try:
        decompressed = zlib.decompress(value)
    except zlib.error:
        decompressed = None
    data = value if decompressed is None else decompressed
    if not traces.found_in(data):
        return None
    scrubbed = traces.scrub(data.decode(errors="surrogateescape")).encode(errors="surrogateescape")
    return scrubbed if decompressed is None else zlib.compress(scrubbed)


def _scrub_text(column: str, value: str, traces: TraceScrubber) -> str | None:
    searched = f'"{column}": "{value}"' if len(value) <= _MAX_ID_CELL_CHARACTERS else value
    if not traces.found_in(searched.encode(errors="surrogatepass")):
        return None
    if value == traces.user:
        return "erased"
    return traces.scrub(value)
