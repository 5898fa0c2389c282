"""The RecordFolder port: a folder of SQLite files and captured output, such as Dagster's."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from pandora_dagster.contracts.ports.user_storage import TraceScrubber
from pandora_dagster.contracts.retention import SearchedObject
from pandora_dagster.stores.erasure.content_search import search_files
from pandora_dagster.stores.erasure.file_erasure import files_below, remove
from pandora_dagster.stores.erasure.row_erasure import erase_sqlite_rows, open_sqlite

_INDEX_WAIT_S = 60.0
"""Seconds to wait for an index that another process holds."""
_DATABASE_FILES = (".db", ".db-wal", ".db-shm", ".lock")


@dataclass(frozen=True, slots=True)
class SqliteRecordFolder:
    """The records below one folder. Links are not followed."""

    folder: Path

    def databases(self) -> Iterator[AbstractContextManager[sqlite3.Connection]]:
        return (open_sqlite(path) for path in self._database_paths())

    def erase_rows(self, traces: TraceScrubber) -> None:
        for path in self._database_paths():
            erase_sqlite_rows(path, traces)

    def erase_texts(self, traces: TraceScrubber) -> None:
        for path in files_below(self.folder):
            if path.name.endswith(_DATABASE_FILES) or path.is_symlink() or not path.is_file():
                continue
            data = path.read_bytes()
            if traces.found_in(os.fsencode(path.name)):
                remove(path)
            elif traces.found_in(data):
                path.write_bytes(b"".join(line for line in data.splitlines(keepends=True) if not traces.found_in(line)))

    def search(self, traces: TraceScrubber) -> Iterator[SearchedObject]:
        yield from search_files(files_below(self.folder), traces, wait_s=_INDEX_WAIT_S)

    def _database_paths(self) -> list[Path]:
        return [path for path in files_below(self.folder) if path.name.endswith(".db") and path.is_file() and not path.is_symlink()]
