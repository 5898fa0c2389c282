"""One SQLite file of an index: connections, schema and damage. It can be rebuilt from the documents.

SQLite itself locks the file and rolls back what a killed process has not finished, so readers need no lock of their own. The file has a
rollback journal, which exists during a write alone, and no other file beside it.
"""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pandora_dagster.errors import DamagedIndexError, OldIndexError, StoreError
from pandora_dagster.stores.disk.duckdb_file import REBUILD_HINT, Schema, next_damaged_path

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_UNWRITABLE = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR})


@dataclass(frozen=True, slots=True)
class SqliteFile:
    """A SQLite file with its schema. `wait_s`: how long to wait for another process. Raises StoreError."""

    path: Path
    schema: Schema
    wait_s: float = 30.0

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection]:
        """A connection inside one transaction: all of it is stored, or nothing where an error leaves the block."""
        with self._transaction("BEGIN IMMEDIATE") as db:
            yield db
            db.execute("COMMIT")

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """A connection that sees one state of the file."""
        with self._transaction("BEGIN") as db:
            yield db

    def exists(self) -> bool:
        return self.path.exists()

    def create(self) -> None:
        """Create the tables in a file that is missing or empty."""
        with self._connection("rwc") as db:
            db.execute("BEGIN IMMEDIATE")
            if not _version(db):
                for statement in self.schema.statements:
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {self.schema.version}")
            db.execute("COMMIT")

    def is_current(self) -> bool:
        """Whether the file exists and has this version; raises DamagedIndexError."""
        try:
            with self.reading():
                return True
        except OldIndexError:
            return False

    def fault(self) -> StoreError | None:
        """Why an existing file cannot be used; None where it can, or is missing."""
        try:
            if self.path.exists():
                with self.reading():
                    pass
        except StoreError as error:
            return error
        return None

    def discard(self) -> None:
        """Delete the file, then what a killed process left to roll back, which must never reach another file of this name."""
        self.path.unlink(missing_ok=True)
        self.path.with_name(self.path.name + "-journal").unlink(missing_ok=True)

    def replace_by(self, fresh: Path) -> Path | None:
        """Put `fresh` in the place of the file, in one step where that is sound; returns the new path of a damaged one."""
        fault = self.fault()  # to look, SQLite rolls back what a killed process left
        damaged_file = None
        if fault and not isinstance(fault, OldIndexError):
            damaged_file = self.path.rename(next_damaged_path(self.path))
        if fault or not self.path.exists():
            self.discard()
        fresh.replace(self.path)
        return damaged_file

    @contextmanager
    def _transaction(self, begin: str) -> Generator[sqlite3.Connection]:
        if not self.path.exists():
            raise OldIndexError(f"{self.path}: missing, expected an index", hint=REBUILD_HINT)
        with self._connection("rw") as db:
            db.execute(begin)
            if (version := _version(db)) != self.schema.version:
                error_class = OldIndexError if version < self.schema.version else DamagedIndexError
                raise error_class(f"{self.path}: index version {version}, expected {self.schema.version}", hint=REBUILD_HINT)
            yield db

    @contextmanager
    def _connection(self, mode: str) -> Generator[sqlite3.Connection]:
        """A connection, closed at the end, which rolls back what was not committed."""
        try:
            uri = f"{self.path.absolute().as_uri()}?mode={mode}"
            with closing(sqlite3.connect(uri, uri=True, timeout=self.wait_s, isolation_level=None)) as db:
                db.execute("PRAGMA temp_store = MEMORY")
                yield db
        except sqlite3.Error as error:
            raise self._fault(error) from error

    def _fault(self, error: sqlite3.Error) -> StoreError:
        """The StoreError for an error of SQLite, by its code."""
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # the lower bits are the primary code
        if code in _BUSY:
            hint = "try again when the other command has finished"
            return StoreError(f"{self.path}: in use by another process for over {self.wait_s:g} s, expected it to be free", hint=hint)
        if code in _UNWRITABLE:
            return StoreError(f"{self.path}: cannot be used: {error}", hint="free some space or make the folder writable")
        return DamagedIndexError(f"{self.path}: damaged or not an index: {error}", hint=REBUILD_HINT)


def _version(db: sqlite3.Connection) -> int:
    """The version of the schema; 0 in a file without tables."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])
