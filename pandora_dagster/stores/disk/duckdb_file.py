"""One DuckDB file that several processes share: connections, locks, schema and damage.

DuckDB lets one process write, and while it does no other may even read. So a connection is short, and an OS lock is held around open, use
and close. The wait is bounded. Such a file is an index: it can be made again from the documents.
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

# A file is attached to an instance of DuckDB that the process keeps, one per folder of files: making an instance takes ten times as long.
# An instance cannot reach anything outside of its folder.

DUCKDB_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,  # nothing is ever downloaded
    "autoload_known_extensions": False,
    "threads": 2,
}
_MOST = 8
"""Unused instances that are kept, one per folder; the least recently used one is closed first."""


@dataclass(eq=False)
class _Instance:
    """Closing its connection closes all cursors made from it, so that only the last user may close it."""

    connection: duckdb.DuckDBPyConnection
    users: int = 0


_instances: OrderedDict[Path, _Instance] = OrderedDict()
_inherited: list[OrderedDict[Path, _Instance]] = []
"""In a forked process, those of its parent: their threads do not exist here, and they are never used."""
_numbers = count()
_lock = Lock()


@contextmanager
def attached_connection(path: Path, *, read_only: bool) -> Generator[duckdb.DuckDBPyConnection]:
    """A connection whose tables are those of the file at `path`, made where it is missing; an uncommitted transaction is rolled back at
    the end, and the file is closed. Raises duckdb.Error."""
    folder, name = path.absolute().parent, f"file{next(_numbers)}"
    with _connection(folder) as connection:
        connection.execute(f"ATTACH {_text(path.absolute())} AS {name}{' (READ_ONLY)' if read_only else ''}")
        try:
            connection.execute(f"USE {name}")
            yield connection
        finally:
            _detach(connection, name, folder)


@contextmanager
def _connection(folder: Path) -> Generator[duckdb.DuckDBPyConnection]:
    with _lock:
        if folder not in _instances:
            _instances[folder] = _Instance(_opened(folder))
        _instances.move_to_end(folder)
        instance = _instances[folder]
        connection = instance.connection.cursor()
        instance.users += 1
    try:
        yield connection
    finally:
        connection.close()
        with _lock:
            instance.users -= 1
            if not instance.users and _instances.get(folder) is not instance:  # it was given up
                instance.connection.close()
            idle = [kept for kept, one in _instances.items() if not one.users]
            for oldest in idle[: max(0, len(_instances) - _MOST)]:
                _instances.pop(oldest).connection.close()


def _opened(folder: Path) -> duckdb.DuckDBPyConnection:
    instance = duckdb.connect(":memory:", config=DUCKDB_CONFIG)
    instance.execute(f"SET allowed_directories = [{_text(folder)}]")
    instance.execute(f"SET temp_directory = {_text(folder / '.duckdb.tmp')}")
    instance.execute("SET enable_external_access = false")
    return instance


def _detach(connection: duckdb.DuckDBPyConnection, name: str, folder: Path) -> None:
    """An instance that cannot detach a file, after a fatal error, is discarded together with the file."""
    try:
        with suppress(duckdb.TransactionException):  # there is none
            connection.execute("ROLLBACK")
        connection.execute("USE memory")
        connection.execute(f"DETACH {name}")
    except duckdb.Error:
        with _lock:
            _instances.pop(folder, None)


def _text(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _forked() -> None:
    global _instances, _lock  # locks of the parent's threads have no owner in this process
    _inherited.append(_instances)
    _instances, _lock = OrderedDict[Path, _Instance](), Lock()


os.register_at_fork(after_in_child=_forked)


_POLL_S = 0.005
_REMEDY = "run `pandora index rebuild`: it keeps this file under another name and makes the index again from the documents"
_DAMAGE = (duckdb.IOException, duckdb.SerializationException, duckdb.InternalException, duckdb.FatalException, duckdb.CatalogException)
_VERSION_TABLE = "CREATE TABLE schema_version (version INTEGER)"


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in lists of `size`, the last one shorter: rows that a rebuild writes or compares together."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables of a file and the number of their design; a file of another design is rebuilt, not migrated."""

    version: int
    statements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DuckDBFile:
    """A DuckDB file with its lock file beside it. `wait_s` bounds how long another process is waited for."""

    path: Path
    schema: Schema
    wait_s: float = 30.0
    remake: Callable[[], object] | None = None
    """Rebuilds a file of an older design; None: such a file cannot be used."""

    @contextmanager
    def writing(self) -> Generator[duckdb.DuckDBPyConnection]:
        """A connection inside one transaction: all of it is stored, or nothing where an error leaves the block."""
        with self._current(read_only=False) as connection:
            connection.execute("BEGIN TRANSACTION")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def reading(self) -> Generator[duckdb.DuckDBPyConnection]:
        """A connection that only reads; a file that is not there yet is made first."""
        with self._current(read_only=True) as connection:
            yield connection

    @contextmanager
    def _current(self, *, read_only: bool) -> Generator[duckdb.DuckDBPyConnection]:
        """A connection to a file of this design, an older one is rebuilt before."""
        with ExitStack() as stack:
            try:
                connection = stack.enter_context(self._made_and_opened(read_only=read_only))
            except OldIndexError:
                if self.remake is None:
                    raise
                with FileLock(self.path.with_name(self.path.name + ".remake.lock"), thread_local=False):
                    if isinstance(replace(self, remake=None).fault(), OldIndexError):  # no other process has made it meanwhile
                        self.remake()
                connection = stack.enter_context(self._made_and_opened(read_only=read_only))
            yield connection

    @contextmanager
    def _made_and_opened(self, *, read_only: bool) -> Generator[duckdb.DuckDBPyConnection]:
        with self.locked():
            self._made()
            with self._opened(read_only=read_only) as connection:
                yield connection

    @contextmanager
    def locked(self) -> Generator[None]:
        """Held by one process and thread at a time; raises StoreError after `wait_s` seconds."""
        lock = self._lock()
        try:
            lock.acquire(timeout=self.wait_s, poll_interval=_POLL_S)
        except Timeout as error:  # before OSError, which it is too
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
        number = 1
        while (damaged_file := self.path.with_name(f"{self.path.name}.damaged-{number}")).exists():
            number += 1
        self.path.rename(damaged_file)
        if log.exists():
            log.rename(_log_of(damaged_file))
        return damaged_file

    def discard(self) -> None:
        """Take the file away, as nothing in it is the only copy. Call it under `locked`."""
        for path in (self.path, _log_of(self.path)):
            path.unlink(missing_ok=True)

    def make(self) -> None:
        """Make the file with empty tables where it is not there."""
        with self.locked():
            self._made()

    def rebuild(self, fill: Callable[["DuckDBFile"], T]) -> tuple[T, Path | None]:
        """Let `fill` write to an empty file beside this one, then put that in its place: what `fill` returned, and where a damaged file
        is kept. No process waits meanwhile."""
        fresh = DuckDBFile(self.path.with_name(self.path.name + ".rebuilt"), self.schema, self.wait_s)
        with fresh.locked():
            fresh.discard()
        result = fill(fresh)
        fresh.make()
        with self.locked():
            fault = self._current_fault()
            damaged_file = self.rename_damaged() if fault and not isinstance(fault, OldIndexError) else None
            _log_of(self.path).unlink(missing_ok=True)
            fresh.path.replace(self.path)
        return result, damaged_file

    def exists(self) -> bool:
        return self.path.exists()

    def fault(self) -> StoreError | None:
        """Why an existing file cannot be used: damaged, another schema, refused; None where it can."""
        if not self.path.exists():
            return None
        try:
            with self.locked():
                return self._current_fault()
        except StoreError as error:
            return error

    def _current_fault(self) -> StoreError | None:
        try:
            if self.path.exists():
                with self._opened(read_only=True):
                    pass
        except OldIndexError as error:
            return None if self.remake else error
        except StoreError as error:
            return error
        return None

    def _lock(self) -> FileLock:
        with disk_errors(self.path.parent, "cannot make the folder"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(self.path.with_name(self.path.name + ".lock"), thread_local=False)

    def _made(self) -> None:
        """Make the file where it is not there, beside its place first: a file that exists has its tables."""
        if self.path.exists():
            return
        fresh = self.path.with_name(self.path.name + ".making")
        for left in (fresh, _log_of(fresh), _log_of(self.path)):
            left.unlink(missing_ok=True)
        try:
            with attached_connection(fresh, read_only=False) as connection:
                for statement in (*self.schema.statements, _VERSION_TABLE):
                    connection.execute(statement)
                connection.execute("INSERT INTO schema_version VALUES (?)", [self.schema.version])
            fresh.replace(self.path)
        except duckdb.Error as error:
            raise self._fault(error) from error

    @contextmanager
    def _opened(self, *, read_only: bool) -> Generator[duckdb.DuckDBPyConnection]:
        try:
            with attached_connection(self.path, read_only=read_only) as connection:
                self._check(connection)
                yield connection
        except duckdb.Error as error:
            raise self._fault(error) from error

    def _check(self, connection: duckdb.DuckDBPyConnection) -> None:
        found = connection.execute("SELECT max(version) FROM schema_version").fetchone()
        if not found or found[0] != self.schema.version:
            kind = OldIndexError if found and found[0] is not None and found[0] < self.schema.version else DamagedIndexError
            raise kind(f"{self.path}: index design {found and found[0]}, expected {self.schema.version}", hint=_REMEDY)

    def _fault(self, error: duckdb.Error) -> StoreError:
        reason = str(error).splitlines()[0][:200]
        if "lock" in reason.lower() and isinstance(error, duckdb.IOException):
            return StoreError(f"{self.path}: open in another program: {reason}", hint="close the program that holds the file open")
        if any(word in reason for word in ("No space left", "Permission denied", "Read-only file system", "Disk quota")):
            return StoreError(f"{self.path}: the disk refused: {reason}", hint="free some space or make the folder writable")
        if isinstance(error, _DAMAGE):
            return DamagedIndexError(f"{self.path}: damaged or not an index: {reason}", hint=_REMEDY)
        return StoreError(f"{self.path}: the index refused: {reason}")


def _log_of(path: Path) -> Path:
    return path.with_name(path.name + ".wal")
