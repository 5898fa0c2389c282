"""`ColumnTable`: a table of a DuckDB file by its columns. Rows are inserted in one statement with one list of values for each column."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import get_annotations
from typing import Any

import duckdb

_SQL_TYPES = {int: "BIGINT", int | None: "BIGINT", float: "DOUBLE", bool: "BOOLEAN", tuple[str, ...]: "VARCHAR[]"}


@dataclass(frozen=True, slots=True)
class ColumnTable:
    """The name of a table and its columns, each with its type in DuckDB."""

    name: str
    columns: Mapping[str, str]

    @property
    def creation(self) -> str:
        """SQL that creates the table."""
        columns = (f"{column} {sql_type}" for column, sql_type in self.columns.items())
        return f"CREATE TABLE {self.name} ({', '.join(columns)})"

    def insert(self, db: duckdb.DuckDBPyConnection, rows: Iterable[Sequence[Any]], *, unique: str = "") -> None:
        """Add rows, each with the values of all columns; with `unique` only those whose value in that column is not in the table."""
        if column_values := list(zip(*rows, strict=True)):
            new = f" ANTI JOIN {self.name} USING ({unique})" if unique else ""
            selection = f"SELECT {', '.join(self.columns)} FROM ({self._rows_sql(self.columns)}){new}"  # noqa: S608 - names of columns
            db.execute(f"INSERT INTO {self.name} ({', '.join(self.columns)}) {selection}", column_values)

    def delete(self, db: duckdb.DuckDBPyConnection, **values: Sequence[object]) -> None:
        """Delete the rows with one of the values of a column; for several columns, with all the values at one position of the lists."""
        db.execute(f"DELETE FROM {self.name} WHERE ({', '.join(values)}) IN ({self._rows_sql(values)})", list(values.values()))  # noqa: S608

    def _rows_sql(self, columns: Iterable[str]) -> str:
        """SQL that selects rows from one list parameter for each column."""
        return f"SELECT {', '.join(f'unnest(?::{self.columns[column]}[]) AS {column}' for column in columns)}"


def columns_of(record_type: type, *, without: Collection[str] = ()) -> dict[str, str]:
    """Field -> SQL type of a record class, VARCHAR where no other type fits."""
    return {name: _SQL_TYPES.get(annotation, "VARCHAR") for name, annotation in get_annotations(record_type).items() if name not in without}
