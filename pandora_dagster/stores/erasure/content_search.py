"""The content of a file in pieces that can be searched: stored bytes, decompressed bytes, cells of tables."""

import gzip
import os
import sqlite3
import sys
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

_CHUNK_BYTES, _OVERLAP_BYTES = 8 * 1024 * 1024, 4_096
"""Pieces overlap so that a fact is found across their border."""
_MAX_UNPACKED_BYTES, _MAX_CELL_BYTES = 1024 * 1024 * 1024, 64 * 1024 * 1024
"""A file or a cell that unpacks to more cannot be searched: a few kilobytes can state any size. Objects of cold storage have half of it."""
_BATCH_ROWS = 2_000
_SIGNATURE_BYTES = 64
_ZSTD_SIGNATURE, _GZIP_SIGNATURE, _SQLITE_SIGNATURE, _DUCKDB_SIGNATURE = b"\x28\xb5\x2f\xfd", b"\x1f\x8b", b"SQLite format 3\x00", b"DUCK"
_ZLIB_SIGNATURE, _CELL_SEPARATOR = b"\x78", b"\x1f"
_DUCKDB_CONFIG: dict[str, str | bool | int | float | list[str]] = {"enable_external_access": False, "autoload_known_extensions": False}


def searchable_contents(path: Path, *, wait_s: float) -> Iterator[tuple[str, bytes]]:
    """The pieces of a file, each with its kind: `name`, `bytes`, then `unpacked` or `table <name>` for what is packed in them.

    Raises StoreError for a file that cannot be read or unpacked, because its content is unknown.
    """
    yield "name", os.fsencode(path)
    if path.is_symlink():
        yield "link", os.fsencode(os.readlink(path))  # noqa: PTH115 - as bytes
        return
    try:
        head = b""
        with path.open("rb") as stored:
            for chunk in _pieces(stored):
                head = head or chunk[:_SIGNATURE_BYTES]
                yield "bytes", chunk
        if head.startswith(_ZSTD_SIGNATURE):
            yield from (("unpacked", data) for data in _zstd_pieces(path))
        elif head.startswith(_GZIP_SIGNATURE):
            with gzip.open(path) as file:
                yield from (("unpacked", data) for data in _pieces(file, limit=_MAX_UNPACKED_BYTES))
        elif head.startswith(_SQLITE_SIGNATURE):
            yield from _sqlite_rows(path)
        elif head[8:12] == _DUCKDB_SIGNATURE:
            yield from _duckdb_rows(path, wait_s)
    except FileNotFoundError:
        return  # a temporary file that was deleted meanwhile
    except (OSError, zstandard.ZstdError, sqlite3.Error, duckdb.Error, EOFError, zlib.error) as error:
        raise StoreError(
            f"{path}: cannot be searched: {str(error).splitlines()[0][:200] if str(error) else type(error).__name__}"
        ) from error


def search_files(paths: Iterable[Path], traces: TraceScrubber, *, wait_s: float) -> Iterator[SearchedObject]:
    """Search each file up to its first trace of the user. `wait_s`: how long to wait for an index that another process holds."""
    for path in paths:
        size, hit = 0, ""
        try:
            for kind, data in searchable_contents(path, wait_s=wait_s):
                size += len(data) if kind == "bytes" else 0
                if traces.found_in(data):
                    hit = f"{path}: {kind}" if kind != "name" else f"{path.parent}: a name"
                    break
        except StoreError as error:
            hit = str(error)
        yield SearchedObject(size, hit)


def _pieces(file: Any, *, limit: int = sys.maxsize) -> Iterator[bytes]:  # anything with `read`: a file, the stream of a decompressor
    """The bytes of a stream in overlapping pieces; raises EOFError for more than `limit` bytes."""
    overlap, size = b"", 0
    while data := file.read(_CHUNK_BYTES):
        size += len(data)
        if size > limit:
            raise EOFError(f"it unpacks to over {limit:,} bytes")
        yield overlap + data
        overlap = data[-_OVERLAP_BYTES:]


def _zstd_pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as packed, zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True) as reader:
        yield from _pieces(reader, limit=_MAX_UNPACKED_BYTES)


def _sqlite_rows(path: Path) -> Iterator[tuple[str, bytes]]:
    with closing(sqlite3.connect(path, timeout=30.0)) as db:
        db.text_factory = bytes
        tables = [name.decode() for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            cursor = db.execute(f'SELECT * FROM "{table}"')  # noqa: S608 - the file's own names
            columns = [column[0] for column in cursor.description]
            while rows := cursor.fetchmany(_BATCH_ROWS):
                cells = (_cell(column, value) for row in rows for column, value in zip(columns, row, strict=True))
                yield f"table {table}", _CELL_SEPARATOR.join(cells)


def _duckdb_rows(path: Path, wait_s: float) -> Iterator[tuple[str, bytes]]:
    with DuckDBFile(path, Schema(0, ()), wait_s).locked(), duckdb.connect(path, read_only=True, config=_DUCKDB_CONFIG) as db:
        for (table,) in db.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            cursor = db.execute(f'SELECT * FROM "{table}"')  # noqa: S608 - the file's own names
            columns = [column[0] for column in cursor.description or ()]
            text_columns = [
                position
                for position, column in enumerate(cursor.description or ())
                if any(name in str(column[1]) for name in ("CHAR", "STRING", "LIST"))
            ]
            while text_columns and (rows := cursor.fetchmany(_BATCH_ROWS)):
                cells = (_cell(columns[position], row[position]) for row in rows for position in text_columns)
                yield f"table {table}", _CELL_SEPARATOR.join(cells)


def _cell(column: str, value: object) -> bytes:
    """A cell as `"column": "value"`, so that an id is recognized by the name of its column; a compressed cell also unpacked."""
    if value is None or isinstance(value, int | float):
        return b""
    if isinstance(value, list):
        return _CELL_SEPARATOR.join(_cell(column, item) for item in cast("list[object]", value))
    data = value if isinstance(value, bytes) else str(value).encode(errors="surrogatepass")
    if data[:1] == _ZLIB_SIGNATURE and len(data) > 2:
        unpacker = zlib.decompressobj()
        with suppress(zlib.error):
            data += _CELL_SEPARATOR + unpacker.decompress(data, _MAX_CELL_BYTES)
        if unpacker.unconsumed_tail:
            raise EOFError(f"a cell unpacks to over {_MAX_CELL_BYTES:,} bytes")
    return b'"' + column.encode() + b'": "' + data + b'"'
