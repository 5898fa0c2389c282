"""Every byte of a file for a search: compressed files unpacked, tables read through their engines."""

import gzip
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, cast

import duckdb
import zstandard

from pandora_dagster.contracts.ports.user_storage import TraceScrubber
from pandora_dagster.contracts.retention import SearchedObject
from pandora_dagster.errors import StoreError
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile, Schema

_CHUNK, _OVERLAP = 8 * 1024 * 1024, 4_096
_ROWS = 2_000
_ZSTD, _GZIP, _SQLITE, _DUCKDB = b"\x28\xb5\x2f\xfd", b"\x1f\x8b", b"SQLite format 3\x00", b"DUCK"
_READ_ONLY: dict[str, str | bool | int | float | list[str]] = {"enable_external_access": False, "autoload_known_extensions": False}


def searchable_contents(path: Path, *, wait_s: float) -> Iterator[tuple[str, bytes]]:
    """Pieces of a file, each with its place: the name, the stored bytes, then what is packed in them.

    Pieces overlap. Raises StoreError for a file that cannot be read, or whose container cannot be opened: its content is unknown.
    """
    yield "name", os.fsencode(path)
    if path.is_symlink():
        yield "link", os.fsencode(os.readlink(path))  # noqa: PTH115 - as bytes
        return
    try:
        head = b""
        for chunk in _chunks(path):
            head = head or chunk[:64]
            yield "bytes", chunk
        if head.startswith(_ZSTD):
            yield from (("unpacked", data) for data in _unpacked(path))
        elif head.startswith(_GZIP):
            with gzip.open(path) as file:
                yield from (("unpacked", data) for data in _pieces(file))
        elif head.startswith(_SQLITE):
            yield from _sqlite(path)
        elif head[8:12] == _DUCKDB:
            yield from _duckdb(path, wait_s)
    except FileNotFoundError:
        return  # a temporary file that is gone by now
    except (OSError, zstandard.ZstdError, sqlite3.Error, duckdb.Error, EOFError, zlib.error) as error:
        raise StoreError(
            f"{path}: cannot be searched: {str(error).splitlines()[0][:200] if str(error) else type(error).__name__}"
        ) from error


def search_files(paths: Iterable[Path], traces: TraceScrubber, *, wait_s: float) -> Iterator[SearchedObject]:
    """Each file searched up to its first trace. `wait_s`: how long a table that another process holds is waited for."""
    for path in paths:
        size, hit = 0, ""
        try:
            for place, data in searchable_contents(path, wait_s=wait_s):
                size += len(data) if place == "bytes" else 0
                if traces.found_in(data):
                    hit = f"{path}: {place}" if place != "name" else f"{path.parent}: a name"
                    break
        except StoreError as error:
            hit = str(error)
        yield SearchedObject(size, hit)


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from _pieces(file)


def _pieces(file: Any) -> Iterator[bytes]:  # anything with `read`: a file, the stream of a decompressor
    rest = b""
    while data := file.read(_CHUNK):
        yield rest + data
        rest = data[-_OVERLAP:]


def _unpacked(path: Path) -> Iterator[bytes]:
    with path.open("rb") as packed, zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True) as reader:
        yield from _pieces(reader)


def _sqlite(path: Path) -> Iterator[tuple[str, bytes]]:
    with closing(sqlite3.connect(path, timeout=30.0)) as db:
        db.text_factory = bytes
        tables = [name.decode() for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            cursor = db.execute(f'SELECT * FROM "{table}"')  # noqa: S608 - the file's own names
            columns = [about[0] for about in cursor.description]
            while rows := cursor.fetchmany(_ROWS):
                yield (
                    f"table {table}",
                    b"\x1f".join(_cell(column, value) for row in rows for column, value in zip(columns, row, strict=True)),
                )


def _duckdb(path: Path, wait_s: float) -> Iterator[tuple[str, bytes]]:
    with DuckDBFile(path, Schema(0, ()), wait_s).locked(), duckdb.connect(path, read_only=True, config=_READ_ONLY) as db:
        for (table,) in db.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            cursor = db.execute(f'SELECT * FROM "{table}"')  # noqa: S608 - the file's own names
            columns = [about[0] for about in cursor.description or ()]
            texts = [
                n
                for n, about in enumerate(cursor.description or ())
                if "CHAR" in str(about[1]) or "STRING" in str(about[1]) or "LIST" in str(about[1])
            ]
            while texts and (rows := cursor.fetchmany(_ROWS)):
                yield f"table {table}", b"\x1f".join(_cell(columns[n], row[n]) for row in rows for n in texts)


def _cell(column: str, value: object) -> bytes:
    """A cell with its column as in JSON, so that an id is recognized by the name of its column; a compressed cell also unpacked."""
    if value is None or isinstance(value, int | float):
        return b""
    if isinstance(value, list):
        return b"\x1f".join(_cell(column, one) for one in cast("list[object]", value))
    data = value if isinstance(value, bytes) else str(value).encode(errors="surrogatepass")
    if data[:1] == b"\x78" and len(data) > 2:
        with suppress(zlib.error):
            data += b"\x1f" + zlib.decompress(data)
    return b'"' + column.encode() + b'": "' + data + b'"'
