"""Rows of a column table: many at once, of several types, replaced by their keys."""

from dataclasses import dataclass

import duckdb
import pytest

from pandora_dagster.stores.disk.column_table import ColumnTable, columns_of


@dataclass(frozen=True, slots=True)
class Lamp:
    """A record with every type that a column is derived from."""

    name: str
    price: float
    stock: int | None
    rooms: tuple[str, ...]
    sold: bool
    note: str | None = None


LAMPS = ColumnTable("lamps", columns_of(Lamp, without=("note",)))
OAK, BRASS = ("oak", 70.5, 3, ("hall", "study"), False), ("brass", 20.0, None, (), True)


@pytest.fixture
def db():
    with duckdb.connect() as connection:
        connection.execute(LAMPS.creation)
        yield connection


def stored(db):
    return [
        (name, price, stock, tuple(rooms), sold) for name, price, stock, rooms, sold in db.execute("FROM lamps ORDER BY name").fetchall()
    ]


def test_a_column_has_the_type_of_its_field():
    assert LAMPS.columns == {"name": "VARCHAR", "price": "DOUBLE", "stock": "BIGINT", "rooms": "VARCHAR[]", "sold": "BOOLEAN"}


def test_rows_come_back_as_they_were_given(db):
    LAMPS.insert(db, [OAK, BRASS])
    LAMPS.insert(db, [])
    assert stored(db) == [BRASS, OAK]


def test_values_go_to_their_columns_by_name(db):
    db.execute("CREATE OR REPLACE TABLE lamps (sold BOOLEAN, rooms VARCHAR[], name VARCHAR, stock BIGINT, price DOUBLE)")
    LAMPS.insert(db, [OAK])
    assert db.execute("SELECT name, price, sold FROM lamps").fetchall() == [("oak", 70.5, False)]


def test_a_row_whose_unique_value_is_there_is_not_added(db):
    LAMPS.insert(db, [OAK])
    LAMPS.insert(db, [("oak", 1.0, 1, (), True), BRASS], unique="name")
    assert stored(db) == [BRASS, OAK]


def test_rows_are_deleted_by_values_that_stand_together(db):
    LAMPS.insert(db, [OAK, BRASS])
    LAMPS.delete(db, name=["oak", "brass"], price=[20.0, 20.0])
    assert stored(db) == [OAK]
    LAMPS.delete(db, name=[])
    LAMPS.delete(db, name=["oak"])
    assert stored(db) == []
