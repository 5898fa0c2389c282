"""Dagster's instance: its folder, its configuration, and the partitions of turns and days. The documents do not depend on it."""

import os
import shutil
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.instance import InstanceRef
from filelock import FileLock
from sqlalchemy import event
from sqlalchemy.engine import Engine

from pandora_dagster.app.store_adapters import first_day
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.settings import Settings
from pandora_dagster.shipped import shipped_folder

TURNS = dg.DynamicPartitionsDefinition(name="turns")
"""One key per live turn, `<user>:turn_000811` (DECISIONS 15). Imported turns have keys too, but no materializations."""


def days(settings: Settings) -> dg.DailyPartitionsDefinition:
    """One key per day in the configured time zone, from the first day up to and including today."""
    return _daily(settings, end_offset=1)


def due_days(settings: Settings) -> dg.DailyPartitionsDefinition:
    """One key per day whose turns are due for archival: on day D the last key is D - 31 (with the default of 30 days)."""
    return _daily(settings, end_offset=-settings.archive_after_days)


def _daily(settings: Settings, *, end_offset: int) -> dg.DailyPartitionsDefinition:
    """Days from the first day of the store on."""
    return dg.DailyPartitionsDefinition(start_date=first_day(settings).isoformat(), timezone=settings.timezone, end_offset=end_offset)


# SQLite synchronisation of Dagster's records. A turn commits to them some hundreds of times. Where an fsync takes 4 ms, a turn needs
# 9.6 s with SQLite's default, 5.1 s with `synchronous=NORMAL` and 0.9 s with `OFF`; where fsync is free, all three need 0.9 s. With
# `OFF` the records survive a killed process, but not a power failure during a write: then `<root>/dagster` may have to be deleted,
# which loses what the UI shows and no document. Documents are always synced.


def disable_sqlite_sync() -> None:
    """Switch fsync off for every SQLite connection that SQLAlchemy opens in this process; idempotent."""
    if not event.contains(Engine, "connect", _set_synchronous_off):
        event.listen(Engine, "connect", _set_synchronous_off)


def _set_synchronous_off(connection: Any, _record: object) -> None:
    """`connection` is an object of the driver, whose module distinguishes SQLite from other databases."""
    if type(connection).__module__.startswith("sqlite3"):
        connection.execute("PRAGMA synchronous=OFF")


_FILE = "dagster.yaml"
_NO_COMPUTE_LOGS = {"compute_logs": {"module": "dagster._core.storage.noop_compute_log_manager", "class": "NoOpComputeLogManager"}}
_KEYS_AT_ONCE = 10_000
"""SQLite accepts 32,766 values in one statement."""


@contextmanager
def open_instance(settings: Settings, *, listens: bool = True) -> Generator[dg.DagsterInstance]:
    """The instance that `pandora ui` shows, created where it does not exist. Its folder is DAGSTER_HOME (DECISIONS 31)."""
    with instance_at(settings.dagster_home, shipped_folder() / "data" / _FILE, listens=listens) as instance:
        yield instance


@contextmanager
def instance_at(home: Path, shipped: Path, *, listens: bool = True) -> Generator[dg.DagsterInstance]:
    """The instance of the folder `home`; a missing `dagster.yaml` is copied from `shipped`.

    `listens`: whether runs in this process capture its output into files; a terminal then shows the output late. One process at a time
    opens the instance: two that create the same SQLite tables concurrently fail.
    """
    disable_sqlite_sync()
    home.mkdir(parents=True, exist_ok=True)
    with FileLock(home / "opening.lock"):
        _copy_config(home, shipped)
        instance = dg.DagsterInstance.from_ref(InstanceRef.from_dir(str(home), overrides={} if listens else _NO_COMPUTE_LOGS))
        instance.get_runs_count()
        instance.has_dynamic_partition(str(TURNS.name), "")
    with instance:
        yield instance


def add_keys(instance: dg.DagsterInstance, keys: Iterable[TurnKey]) -> None:
    """Add the partitions of turns; existing ones stay unchanged."""
    names = map(str, keys)
    while batch := list(islice(names, _KEYS_AT_ONCE)):
        instance.add_dynamic_partitions(str(TURNS.name), batch)


def remove_keys(instance: dg.DagsterInstance, keys: Iterable[TurnKey]) -> int:
    """Delete the partitions of archived turns; their events stay, and reappear with the partition. Returns the number deleted."""
    known = set(instance.get_dynamic_partitions(str(TURNS.name)))
    gone = [name for key in keys if (name := str(key)) in known]
    for name in gone:
        instance.delete_dynamic_partition(str(TURNS.name), name)
    return len(gone)


def _copy_config(home: Path, shipped: Path) -> None:
    if (home / _FILE).exists():
        return
    fresh = home / f".{_FILE}.{os.getpid()}"
    shutil.copyfile(shipped, fresh)
    fresh.replace(home / _FILE)
