"""Dagster's own records. Knows where they lie and how they are set up; the documents do not depend on them."""

import os
import shutil
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import dagster as dg
from dagster._core.instance import InstanceRef
from filelock import FileLock

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.defs.history import disable_sqlite_sync
from pandora_dagster.defs.partitions import TURNS
from pandora_dagster.settings import Settings
from pandora_dagster.shipped import shipped_folder

_FILE = "dagster.yaml"
_NO_COMPUTE_LOGS = {"compute_logs": {"module": "dagster._core.storage.noop_compute_log_manager", "class": "NoOpComputeLogManager"}}
_KEYS_AT_ONCE = 10_000
"""SQLite takes 32,766 values in one statement."""


@contextmanager
def open_instance(settings: Settings, *, listens: bool = True) -> Generator[dg.DagsterInstance]:
    """The instance that `make ui` shows, made where it does not exist yet. Its folder is DAGSTER_HOME (DECISIONS 31)."""
    with instance_at(settings.dagster_home, shipped_folder() / "data" / _FILE, listens=listens) as instance:
        yield instance


@contextmanager
def instance_at(home: Path, shipped: Path, *, listens: bool = True) -> Generator[dg.DagsterInstance]:
    """The instance of the folder `home`; a missing `dagster.yaml` is copied from `shipped`.

    `listens`: whether runs in this process write what it prints into files; what a person sees in a terminal then comes by way of another
    process, late. One process at a time opens it: two that make the same SQLite tables at once would stumble over each other.
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
    """Make turns known to Dagster; one that is known already stays as it is."""
    names = map(str, keys)
    while batch := list(islice(names, _KEYS_AT_ONCE)):
        instance.add_dynamic_partitions(str(TURNS.name), batch)


def remove_keys(instance: dg.DagsterInstance, keys: Iterable[TurnKey]) -> int:
    """Take archived turns out of the partitions that the UI lists; their events stay, and come back with the key. Returns how many."""
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
