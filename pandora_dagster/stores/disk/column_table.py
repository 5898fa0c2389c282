"""`ColumnTable`: a table of a DuckDB file by its columns; rows are written column by column, all of them in one statement."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import get_annotations
from typing import Any

import duckdb

_TYPES = {int: "BIGINT", int | None: "BIGINT", float: "DOUBLE", bool: "BOOLEAN", tuple[str, ...]: "VARCHAR[]"}


@dataclass(frozen=True, slots=True)
class ColumnTable:
    """The name of a table and its columns, each with its type in DuckDB."""

    name: str
    columns: Mapping[str, str]

    @property
    def creation(self) -> str:
        """SQL that makes the table."""
        return f"CREATE TABLE {self.name} ({', '.join(f'{column} {kind}' for column, kind in self.columns.items())})"

    def insert(self, db: duckdb.DuckDBPyConnection, rows: Iterable[Sequence[Any]], *, unique: str = "") -> None:
        """Add rows, each with the values of all columns; with `unique` only those whose value in that column is not in the table."""
        if given := list(zip(*rows, strict=True)):
            new = f" ANTI JOIN {self.name} USING ({unique})" if unique else ""
            selection = f"SELECT {', '.join(self.columns)} FROM ({self._given(self.columns)}){new}"  # noqa: S608 - names of columns
            db.execute(f"INSERT INTO {self.name} ({', '.join(self.columns)}) {selection}", given)

    def delete(self, db: duckdb.DuckDBPyConnection, **values: Sequence[object]) -> None:
        """Delete the rows that have one of the values; of several columns, the values that are at the same place together."""
        db.execute(f"DELETE FROM {self.name} WHERE ({', '.join(values)}) IN ({self._given(values)})", list(values.values()))  # noqa: S608

    def _given(self, columns: Iterable[str]) -> str:
        return f"SELECT {', '.join(f'unnest(?::{self.columns[column]}[]) AS {column}' for column in columns)}"


def columns_of(shape: type, *, without: Collection[str] = ()) -> dict[str, str]:
    """A column for each field of a record, with the type that holds its values; text where no other type does."""
    return {name: _TYPES.get(kind, "VARCHAR") for name, kind in get_annotations(shape).items() if name not in without}
