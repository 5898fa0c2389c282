"""Every byte of a folder, opened as far as this program can: compressed files unpacked, tables read through their engines.

Knows containers; knows nothing of what is looked for.
"""

import gzip
import os
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, cast

import duckdb
import zstandard

from pandora_dagster.errors import StoreError
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile, Schema

_CHUNK, _OVERLAP = 8 * 1024 * 1024, 4_096
_ROWS = 2_000
_ZSTD, _GZIP, _SQLITE, _DUCKDB = b"\x28\xb5\x2f\xfd", b"\x1f\x8b", b"SQLite format 3\x00", b"DUCK"
_READ_ONLY: dict[str, str | bool | int | float | list[str]] = {"enable_external_access": False, "autoload_known_extensions": False}


def searchable_contents(path: Path, *, wait_s: float) -> Iterator[tuple[str, bytes]]:
    """Pieces of a file, each with where it is: its name, its bytes as they lie, then what is packed in it.

    Pieces overlap. Raises StoreError for a file that can not be read, or whose container can not be opened: nobody knows what is in it.
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


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from _pieces(file)


def _pieces(file: Any) -> Iterator[bytes]:  # whatever has `read`: a file, a decompressor's stream
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
    """A cell as JSON would have it, so that an id in a column named for it shows as that; a packed one unpacked too."""
    if value is None or isinstance(value, int | float):
        return b""
    if isinstance(value, list):
        return b"\x1f".join(_cell(column, one) for one in cast("list[object]", value))
    data = value if isinstance(value, bytes) else str(value).encode(errors="surrogatepass")
    if data[:1] == b"\x78" and len(data) > 2:
        with suppress(zlib.error):
            data += b"\x1f" + zlib.decompress(data)
    return b'"' + column.encode() + b'": "' + data + b'"'
