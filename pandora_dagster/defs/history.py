"""How firmly Dagster's SQLite records are written. Knows one pragma; the documents, which are the truth, are always synced.

A turn commits to Dagster's records some hundreds of times. Where an fsync takes 4 ms a turn needs 9.6 s with SQLite's
default, 5.1 s with `synchronous=NORMAL` and 0.9 s with `OFF`; where fsync is free, all three need 0.9 s. With `OFF` the
records survive a killed process, but not a machine that loses power while writing: then `<root>/dagster` may have to be
deleted, which loses what the UI shows and no document.
"""

from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Engine


def disable_sqlite_sync() -> None:
    """Let every SQLite connection that SQLAlchemy opens in this process skip its fsyncs; calling it again changes nothing."""
    if not event.contains(Engine, "connect", _set_synchronous_off):
        event.listen(Engine, "connect", _set_synchronous_off)


def _set_synchronous_off(connection: Any, _record: object) -> None:
    """`connection` is a driver's own object: only its module tells SQLite from another database."""
    if type(connection).__module__.startswith("sqlite3"):
        connection.execute("PRAGMA synchronous=OFF")
