"""Dagster's records skip fsync; other databases are left alone."""

import sqlite3

import pytest
from sqlalchemy import create_engine, text

from pandora_dagster.defs.instance import _set_synchronous_off, disable_sqlite_sync


def test_sqlite_connections_skip_fsync(tmp_path):
    """Asking twice is asking once; 0 is OFF."""
    disable_sqlite_sync()
    disable_sqlite_sync()
    engine = create_engine(f"sqlite:///{tmp_path / 'runs.db'}")
    with engine.connect() as connection:
        assert connection.execute(text("PRAGMA synchronous")).scalar() == 0
    engine.dispose()


@pytest.mark.parametrize(("driver", "expected"), [(sqlite3.Connection, ["PRAGMA synchronous=OFF"]), (object, [])])
def test_only_sqlite_is_reported(driver, expected):
    """A Postgres driver never hears of the pragma."""
    messages = []
    connection = type("Connection", (), {"__module__": driver.__module__, "execute": lambda _, sql: messages.append(sql)})()
    _set_synchronous_off(connection, None)
    assert messages == expected
