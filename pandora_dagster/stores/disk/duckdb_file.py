"""One DuckDB file that several processes share: connections, locks, schema and damage.

While one process has a DuckDB file open for writing, no other can open it, not even for reading. So a connection is short, and an OS lock
is held from opening to closing. The wait for the lock is bounded. Such a file is an index: it can be rebuilt from the documents.
"""

import os
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count, islice
from pathlib import Path
from threading import Lock
from typing import TypeVar

import duckdb
from filelock import FileLock, Timeout

from pandora_dagster.errors import DamagedIndexError, OldIndexError, StoreError
from pandora_dagster.stores.disk.files import disk_errors

T = TypeVar("T")

# The process keeps one DuckDB instance for each folder and attaches a file to it for each connection: a new instance takes ten times as
# long. An instance cannot read or write outside its folder.

DUCKDB_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,  # nothing is ever downloaded
    "autoload_known_extensions": False,
    "threads": 2,
}
_MAX_INSTANCES = 8
"""Instances that are kept; the least recently used idle one is closed first."""


@dataclass(eq=False)
class _Instance:
    """An instance and the number of its users: closing its connection closes their cursors, so only the last user may close it."""

    connection: duckdb.DuckDBPyConnection
    users: int = 0


_instances: OrderedDict[Path, _Instance] = OrderedDict()
_parent_instances: list[OrderedDict[Path, _Instance]] = []
"""In a forked process, the instances of its parent: they are never used, because their threads do not exist here."""
_file_numbers = count()
_instances_lock = Lock()


@contextmanager
def attached_connection(path: Path, *, read_only: bool) -> Generator[duckdb.DuckDBPyConnection]:
    """A connection to the file at `path`, which is created where it is missing.

    At the end an uncommitted transaction is rolled back and the file is closed. Raises duckdb.Error.
    """
    folder, name = path.absolute().parent, f"file{next(_file_numbers)}"
    with _instance_connection(folder) as connection:
        connection.execute(f"ATTACH {_quote_path(path.absolute())} AS {name}{' (READ_ONLY)' if read_only else ''}")
        try:
            connection.execute(f"USE {name}")
            yield connection
        finally:
            _detach(connection, name, folder)


@contextmanager
def _instance_connection(folder: Path) -> Generator[duckdb.DuckDBPyConnection]:
    """A connection to the folder's instance; afterwards idle instances beyond the limit are closed."""
    with _instances_lock:
        if folder not in _instances:
            _instances[folder] = _Instance(_open_instance(folder))
        _instances.move_to_end(folder)
        instance = _instances[folder]
        connection = instance.connection.cursor()
        instance.users += 1
    try:
        yield connection
    finally:
        connection.close()
        with _instances_lock:
            instance.users -= 1
            if not instance.users and _instances.get(folder) is not instance:  # it was discarded after an error
                instance.connection.close()
            idle_folders = [other for other, candidate in _instances.items() if not candidate.users]
            for idle_folder in idle_folders[: max(0, len(_instances) - _MAX_INSTANCES)]:
                _instances.pop(idle_folder).connection.close()


def _open_instance(folder: Path) -> duckdb.DuckDBPyConnection:
    instance = duckdb.connect(":memory:", config=DUCKDB_CONFIG)
    instance.execute(f"SET allowed_directories = [{_quote_path(folder)}]")
    instance.execute(f"SET temp_directory = {_quote_path(folder / '.duckdb.tmp')}")
    instance.execute("SET enable_external_access = false")
    return instance


def _detach(connection: duckdb.DuckDBPyConnection, name: str, folder: Path) -> None:
    """Detach a file; an instance that cannot, after a fatal error, is discarded."""
    try:
        with suppress(duckdb.TransactionException):  # no transaction is open
            connection.execute("ROLLBACK")
        connection.execute("USE memory")
        connection.execute(f"DETACH {name}")
    except duckdb.Error:
        with _instances_lock:
            _instances.pop(folder, None)


def _quote_path(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _reset_after_fork() -> None:
    """Start a forked process without instances, and with a lock that no thread of its parent holds."""
    global _instances, _instances_lock
    _parent_instances.append(_instances)
    _instances, _instances_lock = OrderedDict[Path, _Instance](), Lock()


os.register_at_fork(after_in_child=_reset_after_fork)


_LOCK_POLL_S = 0.005
_MAX_REASON_CHARACTERS = 200
REBUILD_HINT = "run `pandora index rebuild`: it keeps this file under another name and makes the index again from the documents"
_DAMAGE_ERRORS = (
    duckdb.IOException,
    duckdb.SerializationException,
    duckdb.InternalException,
    duckdb.FatalException,
    duckdb.CatalogException,
)
_VERSION_TABLE = "CREATE TABLE schema_version (version INTEGER)"


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in lists of `size`, of which the last one may be shorter."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


@dataclass(frozen=True, slots=True)
class Schema:
    """The SQL that creates the tables of a file, and their version; a file of another version is rebuilt, not migrated."""

    version: int
    statements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DuckDBFile:
    """A DuckDB file with its lock file beside it. `wait_s`: how long to wait for another process."""

    path: Path
    schema: Schema
    wait_s: float = 30.0
    remake: Callable[[], object] | None = None
    """Rebuilds a file of an older version; None: such a file cannot be used."""

    @contextmanager
    def writing(self) -> Generator[duckdb.DuckDBPyConnection]:
        """A connection inside one transaction: all of it is stored, or nothing where an error leaves the block."""
        with self._connect(read_only=False) as connection:
            connection.execute("BEGIN TRANSACTION")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def reading(self) -> Generator[duckdb.DuckDBPyConnection]:
        """A read-only connection; a missing file is created first."""
        with self._connect(read_only=True) as connection:
            yield connection

    @contextmanager
    def _connect(self, *, read_only: bool) -> Generator[duckdb.DuckDBPyConnection]:
        """A connection to a file of this version; a file of an older version is rebuilt first, by one process."""
        with ExitStack() as stack:
            try:
                connection = stack.enter_context(self._open_locked(read_only=read_only))
            except OldIndexError:
                if self.remake is None:
                    raise
                self.remake_if(lambda: isinstance(replace(self, remake=None).fault(), OldIndexError))
                connection = stack.enter_context(self._open_locked(read_only=read_only))
            yield connection

    def remake_if(self, is_outdated: Callable[[], bool]) -> None:
        """Rebuild the index where it still is outdated when no other process rebuilds it."""
        with FileLock(self.path.with_name(self.path.name + ".remake.lock"), thread_local=False):
            if self.remake and is_outdated():
                self.remake()

    @contextmanager
    def _open_locked(self, *, read_only: bool) -> Generator[duckdb.DuckDBPyConnection]:
        with self.locked():
            self._create_if_missing()
            with self._open(read_only=read_only) as connection:
                yield connection

    @contextmanager
    def locked(self) -> Generator[None]:
        """Hold the file's lock, which one thread of one process has at a time; raises StoreError after `wait_s` seconds."""
        lock = self._file_lock()
        try:
            lock.acquire(timeout=self.wait_s, poll_interval=_LOCK_POLL_S)
        except Timeout as error:  # Timeout is an OSError, so it comes first
            raise StoreError(
                f"{self.path}: in use by another process for over {self.wait_s:g} s, expected it to be free",
                hint="try again when the other command has finished",
            ) from error
        except OSError as error:
            with disk_errors(self.path, "cannot lock"):
                raise error
        try:
            yield
        finally:
            lock.release()

    def rename_damaged(self) -> Path | None:
        """Rename the file and its log to the next free `.damaged-N`; None where there is no file. Call it under `locked`."""
        log = _log_of(self.path)
        if not self.path.exists():
            log.unlink(missing_ok=True)
            return None
        damaged_file = next_damaged_path(self.path)
        self.path.rename(damaged_file)
        if log.exists():
            log.rename(_log_of(damaged_file))
        return damaged_file

    def discard(self) -> None:
        """Delete the file, which can be rebuilt. Call it under `locked`."""
        for path in (self.path, _log_of(self.path)):
            path.unlink(missing_ok=True)

    def create(self) -> None:
        """Create the file with empty tables where it is missing."""
        with self.locked():
            self._create_if_missing()

    def rebuild(
        self, fill: Callable[["DuckDBFile"], T], replace_companion: Callable[[], Path | None] = lambda: None
    ) -> tuple[T, Path | None]:
        """Let `fill` write to an empty file beside this one, then replace this file by it. No other process waits while `fill` works.

        `replace_companion`: does the same, before and under the lock, for a file that belongs to this one: a process that is killed in
        between leaves it ahead of this one, never behind. Returns what `fill` returned, and the new path of a damaged file.
        """
        fresh = DuckDBFile(self.path.with_name(self.path.name + ".rebuilt"), self.schema, self.wait_s)
        with fresh.locked():
            fresh.discard()
        result = fill(fresh)
        fresh.create()
        with self.locked():
            damaged_companion = replace_companion()
            fault = self._current_fault()
            damaged_file = self.rename_damaged() if fault and not isinstance(fault, OldIndexError) else None
            _log_of(self.path).unlink(missing_ok=True)
            fresh.path.replace(self.path)
        return result, damaged_file or damaged_companion

    def exists(self) -> bool:
        return self.path.exists()

    def fault(self) -> StoreError | None:
        """Why an existing file cannot be used: damaged, of another version, unreadable; None where it can or is missing."""
        if not self.path.exists():
            return None
        try:
            with self.locked():
                return self._current_fault()
        except StoreError as error:
            return error

    def _current_fault(self) -> StoreError | None:
        """The fault of the file. Call it under `locked`."""
        try:
            if self.path.exists():
                with self._open(read_only=True):
                    pass
        except OldIndexError as error:
            return None if self.remake else error
        except StoreError as error:
            return error
        return None

    def _file_lock(self) -> FileLock:
        with disk_errors(self.path.parent, "cannot make the folder"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(self.path.with_name(self.path.name + ".lock"), thread_local=False)

    def _create_if_missing(self) -> None:
        """Create the file where it is missing; it is renamed into place when it is complete, so that an existing file has its tables."""
        if self.path.exists():
            return
        fresh = self.path.with_name(self.path.name + ".making")
        for leftover in (fresh, _log_of(fresh), _log_of(self.path)):
            leftover.unlink(missing_ok=True)
        try:
            with attached_connection(fresh, read_only=False) as connection:
                for statement in (*self.schema.statements, _VERSION_TABLE):
                    connection.execute(statement)
                connection.execute("INSERT INTO schema_version VALUES (?)", [self.schema.version])
            fresh.replace(self.path)
        except duckdb.Error as error:
            raise self._fault(error) from error

    @contextmanager
    def _open(self, *, read_only: bool) -> Generator[duckdb.DuckDBPyConnection]:
        try:
            with attached_connection(self.path, read_only=read_only) as connection:
                self._check_version(connection)
                yield connection
        except duckdb.Error as error:
            raise self._fault(error) from error

    def _check_version(self, connection: duckdb.DuckDBPyConnection) -> None:
        row = connection.execute("SELECT max(version) FROM schema_version").fetchone()
        if not row or row[0] != self.schema.version:
            error_class = OldIndexError if row and row[0] is not None and row[0] < self.schema.version else DamagedIndexError
            raise error_class(f"{self.path}: index version {row and row[0]}, expected {self.schema.version}", hint=REBUILD_HINT)

    def _fault(self, error: duckdb.Error) -> StoreError:
        """The StoreError for an error of DuckDB, by its class and words."""
        reason = str(error).splitlines()[0][:_MAX_REASON_CHARACTERS]
        if "lock" in reason.lower() and isinstance(error, duckdb.IOException):
            return StoreError(f"{self.path}: open in another program: {reason}", hint="close the program that holds the file open")
        if any(word in reason for word in ("No space left", "Permission denied", "Read-only file system", "Disk quota")):
            return StoreError(f"{self.path}: cannot be written: {reason}", hint="free some space or make the folder writable")
        if isinstance(error, _DAMAGE_ERRORS):
            return DamagedIndexError(f"{self.path}: damaged or not an index: {reason}", hint=REBUILD_HINT)
        return StoreError(f"{self.path}: DuckDB failed: {reason}")


def next_damaged_path(path: Path) -> Path:
    """The next free name `.damaged-N` beside a file."""
    return next(free for number in count(1) if not (free := path.with_name(f"{path.name}.damaged-{number}")).exists())


def _log_of(path: Path) -> Path:
    """The write-ahead log of a DuckDB file."""
    return path.with_name(path.name + ".wal")
