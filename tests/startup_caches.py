"""What opening an application reads or makes anew is kept for the life of a test process: the vocabulary, Alembic's revisions of Dagster's
tables, the engines of Dagster's SQLite files and empty indexes. Processes that a test starts have none of it."""

from collections.abc import Callable
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any

import sqlalchemy
import tiktoken
from alembic.config import Config
from alembic.script import ScriptDirectory
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from dagster._core.storage.runs.sqlite import sqlite_run_storage
from dagster._core.storage.schedules.sqlite import sqlite_schedule_storage

from pandora_dagster.runtime import token_counter
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile, Schema

ENGINES = 32


def install() -> None:
    """Keep all of it from now on."""
    token_counter._encoding = _vocabulary(token_counter._encoding)
    ScriptDirectory.from_config = staticmethod(_revisions(ScriptDirectory.from_config))
    for storage in (sqlite_event_log, sqlite_run_storage, sqlite_schedule_storage):
        storage.create_engine = _create_engine
    DuckDBFile._create_if_missing = _empty_index(DuckDBFile._create_if_missing)


def _vocabulary(read: Callable[[Path], tiktoken.Encoding]) -> Callable[[Path], tiktoken.Encoding]:
    """By path, size and time of change: 0.13 s each time. A file that cannot be read is not remembered."""
    kept: dict[tuple[Path, int, int], tiktoken.Encoding] = {}

    @wraps(read)
    def encoding(vocabulary: Path) -> tiktoken.Encoding:
        if not vocabulary.is_file():
            return read(vocabulary)
        found = vocabulary.stat()
        key = (vocabulary, found.st_size, found.st_mtime_ns)
        if key not in kept:
            kept[key] = read(vocabulary)
        return kept[key]

    return encoding


def _revisions(read: Callable[[Config], ScriptDirectory]) -> Callable[[Config], ScriptDirectory]:
    """Dagster's migrations: 88 modules, loaded two to six times for each instance and run."""
    kept: dict[tuple[str | None, str | None], ScriptDirectory] = {}

    @wraps(read)
    def from_config(config: Config) -> ScriptDirectory:
        key = (config.config_file_name, config.get_main_option("script_location"))
        if key not in kept:
            kept[key] = read(config)
        return kept[key]

    return from_config


def _create_engine(url: str, *, poolclass: type[sqlalchemy.Pool], connect_args: dict[str, Any] | None = None) -> sqlalchemy.Engine:
    """Dagster makes an engine for each statement. With `NullPool` one holds no connection, only the statements that it has compiled."""
    return _engine(url, poolclass, tuple((connect_args or {}).items()))


@lru_cache(ENGINES)
def _engine(url: str, poolclass: type[sqlalchemy.Pool], arguments: tuple[tuple[str, Any], ...]) -> sqlalchemy.Engine:
    return sqlalchemy.create_engine(url, poolclass=poolclass, connect_args=dict(arguments))


def _empty_index(make: Callable[[DuckDBFile], None]) -> Callable[[DuckDBFile], None]:
    """A copy of the first file that was made with the same schema: a tenth of the time."""
    kept: dict[Schema, bytes] = {}

    @wraps(make)
    def made(file: DuckDBFile) -> None:
        if file.path.exists():
            return
        if file.schema not in kept:
            make(file)
            kept[file.schema] = file.path.read_bytes()
            return
        fresh = file.path.with_name(file.path.name + ".making")
        fresh.write_bytes(kept[file.schema])
        fresh.replace(file.path)

    return made
