"""The table of turns in the turn index, and how rows go in and out of it.

A turn has a number, `doc`, that begins with its user's: turn 7 of user 3 is `3 << 44 | 7 << 20`. `user_base` is the number from which a
user's turns count. New rows go into a small table, which is appended to the large one where it is full: DuckDB writes the last rows of a
table again when one is added.
"""

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import duckdb

from pandora_dagster.contracts.turns import TurnRow
from pandora_dagster.retrieval.messages.document_numbers import NUMBER_BITS, PLACE_BITS, document_number
from pandora_dagster.stores.disk.column_table import ColumnTable, columns_of
from pandora_dagster.stores.disk.duckdb_file import Schema

TIERS = ("", "_new")
"""Suffixes of the tables' names: large, small."""
_TURN_COLUMNS = {"user_id": "VARCHAR", "number": "BIGINT"} | columns_of(TurnRow, without=("messages",))
_TURNS = ColumnTable("turns", {"doc": "BIGINT"} | _TURN_COLUMNS)
_NEW_TURNS = replace(_TURNS, name="turns_new")
_USERS = ColumnTable("users", {"user_id": "VARCHAR", "no": "BIGINT"})
_TURN_VALUES = attrgetter(*_TURN_COLUMNS)
TURN_COLUMN_NAMES = ", ".join(_TURN_COLUMNS)
_USER_SHIFT = NUMBER_BITS + PLACE_BITS
"""The bits of a turn's number below its user's."""
MAX_NEW_TURNS = 4_096
"""Rows in the small table from which on they are appended to the large one."""
TURN_SCHEMA = Schema(version=9, statements=(_TURNS.creation, _NEW_TURNS.creation, _USERS.creation))
ALL_TURNS = "(FROM turns UNION ALL FROM turns_new)"
_GIVEN_DOCS = "(SELECT unnest(?::BIGINT[]) AS doc)"


def user_base(db: duckdb.DuckDBPyConnection, user: str) -> int | None:
    """The number from which a user's turns count; None for a user without turns."""
    row = db.execute("SELECT no FROM users WHERE user_id = ?", [user]).fetchone()
    return int(row[0]) << _USER_SHIFT if row else None


def user_number(doc: int) -> int:
    """The number of the user whose turn this is."""
    return doc >> _USER_SHIFT


USER_NUMBER_SQL = f"doc >> {_USER_SHIFT}"
"""SQL of the number of the user whose turn the column `doc` names."""


def user_end(base: int) -> int:
    """The first number above those of the user's turns."""
    return base + (1 << _USER_SHIFT)


def allocate_bases(db: duckdb.DuckDBPyConnection, users: Sequence[str]) -> dict[str, int]:
    """The `user_base` of each user; a user without a number gets the next one."""
    numbers = dict(
        db.execute("SELECT user_id, no FROM users SEMI JOIN (SELECT unnest(?::VARCHAR[]) AS user_id) USING (user_id)", [users]).fetchall()
    )
    if new_users := [user for user in users if user not in numbers]:
        row = db.execute("SELECT coalesce(max(no), 0) FROM users").fetchone()
        first = (row[0] if row else 0) + 1
        numbers |= {user: first + place for place, user in enumerate(new_users)}
        _USERS.insert(db, [(user, numbers[user]) for user in new_users])
    return {user: int(no) << _USER_SHIFT for user, no in numbers.items()}


def insert_turns(db: duckdb.DuckDBPyConnection, turns: Sequence[tuple[int, TurnRow]]) -> None:
    """Add rows that are not stored, each with its `user_base`."""
    _NEW_TURNS.insert(db, [(base + document_number(row.number), *_TURN_VALUES(row)) for base, row in turns])


def drop_turns(db: duckdb.DuckDBPyConnection, docs: Sequence[int]) -> None:
    """Delete turns by their numbers."""
    for tier in TIERS:
        db.execute(f"DELETE FROM turns{tier} WHERE doc IN {_GIVEN_DOCS}", [docs])  # noqa: S608 - fixed names


def merge_full_table(db: duckdb.DuckDBPyConnection) -> None:
    """Append the small table to the large one where it is full, as one sorted run."""
    row = db.execute("SELECT count(*) FROM turns_new").fetchone()
    if row and row[0] >= MAX_NEW_TURNS:
        db.execute("INSERT INTO turns SELECT * FROM turns_new ORDER BY doc")
        db.execute("TRUNCATE turns_new")


def row_from(values: tuple[Any, ...]) -> TurnRow:
    """The TurnRow of the columns that `TURN_COLUMN_NAMES` selects."""
    return TurnRow.model_validate(dict(zip(_TURN_COLUMNS, values, strict=True)))
