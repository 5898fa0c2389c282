"""A DuckDB file open for a moment, inside an instance of DuckDB that the process keeps: making an instance takes ten times as long.

Knows instances, one for each folder of files, which reach nothing outside of it; knows nothing of locks, schemas and tables.
"""

import os
from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from threading import Lock

import duckdb

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,  # nothing is ever downloaded
    "autoload_known_extensions": False,
    "threads": 2,
}
_MOST = 8
"""Folders whose instances are kept when nobody uses them; the one that was used longest ago goes first."""


@dataclass(eq=False)
class _Instance:
    """Closing its connection closes those that others use, whatever they are about: so that only the last of its users may."""

    connection: duckdb.DuckDBPyConnection
    users: int = 0


_instances: OrderedDict[Path, _Instance] = OrderedDict()
_inherited: list[OrderedDict[Path, _Instance]] = []
"""In a forked process, those of its parent: their threads are not here, and they are never touched."""
_numbers = count()
_lock = Lock()


@contextmanager
def attached_connection(path: Path, *, read_only: bool) -> Generator[duckdb.DuckDBPyConnection]:
    """A connection whose tables are those of the file at `path`, made where it is not there; what was begun and not committed is undone at
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
    instance = duckdb.connect(":memory:", config=_CONFIG)
    instance.execute(f"SET allowed_directories = [{_text(folder)}]")
    instance.execute(f"SET temp_directory = {_text(folder / '.duckdb.tmp')}")
    instance.execute("SET enable_external_access = false")
    return instance


def _detach(connection: duckdb.DuckDBPyConnection, name: str, folder: Path) -> None:
    """An instance that can not let go of a file, after a fatal error, is given up, and the file with it."""
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
    global _instances, _lock  # what a parent's threads held is nobody's here
    _inherited.append(_instances)
    _instances, _lock = OrderedDict[Path, _Instance](), Lock()


os.register_at_fork(after_in_child=_forked)
