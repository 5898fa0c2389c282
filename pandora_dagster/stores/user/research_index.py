"""The research index: rows of cached research and of visits in one DuckDB file (004 section 3)."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, cast

from pandora_dagster.contracts.user.sources import ResearchRow, VisitRow
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile, Schema

Row = TypeVar("Row", bound=ResearchRow | VisitRow)
_KINDS = {"quality_score": "DOUBLE", "source_turn": "BIGINT", "webpage_cache": "VARCHAR[]", "fields": "VARCHAR[]"}
_TABLES: dict[type, str] = {ResearchRow: "research", VisitRow: "visits"}
_NEWEST: dict[type, str] = {ResearchRow: "created_at DESC, cache_key", VisitRow: "visited_at DESC, visit_id"}


def _columns(shape: type[ResearchRow] | type[VisitRow]) -> dict[str, str]:
    return {field.name: _KINDS.get(field.name, "VARCHAR") for field in fields(shape)}


SCHEMA = Schema(
    version=1,
    statements=tuple(
        f"CREATE TABLE {table} ({', '.join(f'{name} {kind}' for name, kind in _columns(shape).items())})"
        for shape, table in ((ResearchRow, "research"), (VisitRow, "visits"))
    ),
)


@dataclass(frozen=True, slots=True)
class DuckResearchIndex:
    """Rows by user and file. Every method opens, works and closes; raises StoreError."""

    file: DuckDBFile

    @classmethod
    def at(cls, path: Path, *, wait_s: float = 30.0) -> "DuckResearchIndex":
        return cls(DuckDBFile(path, SCHEMA, wait_s))

    def put(self, rows: Sequence[ResearchRow | VisitRow]) -> None:
        """Store rows, each in the place of an older one of the same file; all of them or none."""
        with self.file.writing() as db:
            for row in rows:
                table = _TABLES[type(row)]
                values = [_stored(value) for value in astuple(row)]
                db.execute(f"DELETE FROM {table} WHERE user_id = ? AND file = ?", [row.user_id, row.file])  # noqa: S608 - a fixed name
                db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)  # noqa: S608 - a fixed name

    def rows(self, shape: type[Row], user: str | None = None) -> tuple[Row, ...]:
        """The newest first; all users' where `user` is None; none where no index was made yet."""
        if not self.file.path.exists():
            return ()
        with self.file.reading() as db:
            found = db.execute(
                f"SELECT * FROM {_TABLES[shape]} WHERE (? IS NULL OR user_id = ?) ORDER BY user_id, {_NEWEST[shape]}",  # noqa: S608 - fixed names
                [user, user],
            ).fetchall()
        return tuple(shape(*map(_plain, values)) for values in found)


def _stored(value: Any) -> Any:
    return list(cast("tuple[str, ...]", value)) if isinstance(value, tuple) else value


def _plain(value: Any) -> Any:  # what DuckDB gives: str, int, float, None or a list of str
    return tuple(cast("list[str]", value)) if isinstance(value, list) else value
