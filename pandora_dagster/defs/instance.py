"""Dagster's instance: its folder, its configuration, and the partitions of turns and days. The documents do not depend on it."""

import os
import shutil
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any

import dagster as dg
from filelock import FileLock
from sqlalchemy import event
from sqlalchemy.engine import Engine

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.defs.dagster_internals import NO_COMPUTE_LOGS, InstanceRef
from pandora_dagster.settings import Settings
from pandora_dagster.shipped import shipped_folder

TURNS = dg.DynamicPartitionsDefinition(name="turns")
"""One key per live turn, `<user>:turn_000811` (decision 15: docs/decisions/15-sessions-and-turn-ids.md).

Imported turns have none: no phase runs for them."""


ARCHIVAL_DAYS = dg.DynamicPartitionsDefinition(name="archival_days")
"""One key per day that has turns due for archival or archived ones, `2026-01-31`. A day without turns has none."""


def days(settings: Settings) -> dg.DailyPartitionsDefinition:
    """The partitions of one day each, in the configured time zone, from PANDORA_FIRST_DAY up to and including today."""
    return dg.DailyPartitionsDefinition(start_date=settings.first_day.isoformat(), timezone=settings.timezone, end_offset=1)


# SQLite synchronization of Dagster's records. A turn commits to them some hundreds of times. Where an fsync takes 4 ms, a turn needs
# 9.6 s with SQLite's default, 5.1 s with `synchronous=NORMAL` and 0.9 s with `OFF`; where fsync is free, all three need 0.9 s. With
# `OFF` the records survive a killed process, but not a power failure during a write: then `<root>/dagster` may have to be deleted,
# which loses what the UI shows and no document. Documents are always synced.


def disable_sqlite_sync() -> None:
    """Switch fsync off for every SQLite connection that SQLAlchemy opens in this process; idempotent."""
    if not event.contains(Engine, "connect", _set_synchronous_off):
        event.listen(Engine, "connect", _set_synchronous_off)


def _set_synchronous_off(connection: Any, _record: object) -> None:
    """Switch fsync off for a new SQLite connection; the module of the driver's object distinguishes it from other databases."""
    if type(connection).__module__.startswith("sqlite3"):
        connection.execute("PRAGMA synchronous=OFF")


_CONFIG_FILE = "dagster.yaml"
_EVENT_MODULE, EVENT_STORAGE = "dagster.core.storage.event_log", "ConsolidatedSqliteEventLogStorage"
_MAX_KEYS_PER_STATEMENT = 10_000
"""SQLite accepts 32,766 values in one statement."""


@contextmanager
def open_instance(settings: Settings, *, captures_output: bool = True) -> Generator[dg.DagsterInstance]:
    """The instance that `pandora ui` shows, created where it does not exist.

    Its folder is DAGSTER_HOME (decision 31: docs/decisions/31-dagster-home.md).
    """
    with open_instance_at(settings.dagster_home, shipped_folder() / "data" / _CONFIG_FILE, captures_output=captures_output) as instance:
        yield instance


@contextmanager
def open_instance_at(home: Path, shipped_config: Path, *, captures_output: bool = True) -> Generator[dg.DagsterInstance]:
    """The instance of the folder `home`; a missing `dagster.yaml` is copied from `shipped_config`.

    `captures_output`: whether runs in this process capture its output into files; a terminal then shows the output late. A lock lets
    one process at a time open the instance: two that create the same SQLite tables concurrently fail.
    """
    disable_sqlite_sync()
    home.mkdir(parents=True, exist_ok=True)
    with FileLock(home / "opening.lock"):
        _copy_config(home, shipped_config)
        overrides = {**_event_storage(home), **({} if captures_output else {"compute_logs": NO_COMPUTE_LOGS})}
        instance = dg.DagsterInstance.from_ref(InstanceRef.from_dir(str(home), overrides=overrides))
        instance.get_runs_count()  # this query and the next one create the tables of runs and of partitions
        instance.has_dynamic_partition(str(TURNS.name), "")
    with instance:
        yield instance


def _event_storage(home: Path) -> dict[str, Any]:
    """The event storage of `dagster.yaml` with its folder, where that is the variable DAGSTER_HOME: this process may have none."""
    if not has_event_file(home):
        return {}
    return {"event_log_storage": {"module": _EVENT_MODULE, "class": EVENT_STORAGE, "config": {"base_dir": str(home)}}}


def has_event_file(home: Path) -> bool:
    """Whether the configuration of `home` keeps all events in one file; older ones keep a file for each run."""
    try:
        return EVENT_STORAGE in (home / _CONFIG_FILE).read_text(encoding="utf-8")
    except OSError:
        return False


def add_turn_partitions(instance: dg.DagsterInstance, keys: Iterable[TurnKey]) -> None:
    """Add a partition for each of these turns; existing ones stay unchanged."""
    remaining_names = map(str, keys)
    while name_batch := list(islice(remaining_names, _MAX_KEYS_PER_STATEMENT)):
        instance.add_dynamic_partitions(str(TURNS.name), name_batch)


def add_archival_days(instance: dg.DagsterInstance, archival_days: Iterable[date]) -> Sequence[str]:
    """Add a partition for each of these days that has none, oldest first; return the keys of all days in the order of Dagster's ranges."""
    name = str(ARCHIVAL_DAYS.name)
    existing_keys = instance.get_dynamic_partitions(name)
    if new_keys := sorted({day.isoformat() for day in archival_days}.difference(existing_keys)):
        instance.add_dynamic_partitions(name, new_keys)
    return [*existing_keys, *new_keys]


def remove_turn_partitions(instance: dg.DagsterInstance, keys: Iterable[TurnKey]) -> int:
    """Delete the partitions of these turns and return their number; the events stay, and reappear if the partition is added again."""
    existing_names = set(instance.get_dynamic_partitions(str(TURNS.name)))
    removed_names = [name for key in keys if (name := str(key)) in existing_names]
    for name in removed_names:
        instance.delete_dynamic_partition(str(TURNS.name), name)
    return len(removed_names)


def _copy_config(home: Path, shipped_config: Path) -> None:
    """Copy the shipped `dagster.yaml` where `home` has none; other processes see no half-written file."""
    if (home / _CONFIG_FILE).exists():
        return
    temporary = home / f".{_CONFIG_FILE}.{os.getpid()}"
    shutil.copyfile(shipped_config, temporary)
    temporary.replace(home / _CONFIG_FILE)
