"""Records of another program in memory: SQLite databases and captured output."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from sqlite3 import Connection

from pandora_dagster.contracts.ports.user_storage import TraceScrubber
from pandora_dagster.contracts.retention import SearchedObject

_OWNERS = {"partition", "value"}


@dataclass
class MemoryRecordFolder:
    """`RecordFolder` over open databases and texts by name. Whoever opened the databases closes them."""

    open: list[Connection] = field(default_factory=list[Connection])
    texts: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def databases(self) -> Iterator[AbstractContextManager[Connection]]:
        for db in self.open:
            db.execute("PRAGMA secure_delete = ON").fetchall()
            yield nullcontext(db)

    def erase_rows(self, traces: TraceScrubber) -> None:
        for db in self.open:
            for table in _tables(db):
                for rowid, row in _rows(db, table):
                    if any(str(row[name]).startswith(f"{traces.user}:turn_") or row[name] == traces.user for name in _OWNERS & set(row)):
                        db.execute(f'DELETE FROM "{table}" WHERE rowid = ?', [rowid])
                        continue
                    for name, value in row.items():
                        if isinstance(value, str) and traces.found_in(value.encode()):
                            db.execute(f'UPDATE "{table}" SET "{name}" = ? WHERE rowid = ?', [traces.scrub(value), rowid])
            db.commit()

    def erase_texts(self, traces: TraceScrubber) -> None:
        for name, data in list(self.texts.items()):
            if traces.found_in(name.encode()):
                del self.texts[name]
            else:
                self.texts[name] = b"".join(line for line in data.splitlines(keepends=True) if not traces.found_in(line))

    def search(self, traces: TraceScrubber) -> Iterator[SearchedObject]:
        for number, db in enumerate(self.open):
            content = "\n".join(str(value) for table in _tables(db) for _, row in _rows(db, table) for value in row.values()).encode()
            yield _searched(f"memory:/{number}.db", content, traces)
        for name, data in self.texts.items():
            yield _searched(f"memory:/{name}", name.encode() + b"\n" + data, traces)


def _tables(db: Connection) -> list[str]:
    return [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]


def _rows(db: Connection, table: str) -> list[tuple[int, dict[str, object]]]:
    cursor = db.execute(f'SELECT rowid, * FROM "{table}"')
    columns = [about[0] for about in cursor.description[1:]]
    return [(rowid, dict(zip(columns, cells, strict=True))) for rowid, *cells in cursor]


def _searched(place: str, data: bytes, traces: TraceScrubber) -> SearchedObject:
    return SearchedObject(len(data), place if traces.found_in(data) else "")
