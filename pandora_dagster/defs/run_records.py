"""Dagster's records of runs: deletion of old runs, and erasure of a user from all records.

The eraser implements the port `Eraser`. It is here because only this package imports Dagster; `open_run_eraser` constructs it.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from sqlite3 import Connection
from typing import cast

import dagster as dg

from pandora_dagster.app.adapters.erasure_adapters import open_record_folder
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.ports.user_storage import Eraser, RecordFolder, TraceScrubber
from pandora_dagster.contracts.retention import SearchedObject
from pandora_dagster.defs.dagster_internals import RunsTable, SqlRunStorage, copy  # pyright: ignore[reportUnknownVariableType]
from pandora_dagster.defs.instance import TURNS, open_instance
from pandora_dagster.documents.redaction.credentials import redact_values
from pandora_dagster.documents.redaction.user_traces import ERASED
from pandora_dagster.errors import BadIdError
from pandora_dagster.settings import Settings

_FINISHED_STATUSES = (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)
_PAGE_SIZE = 500
_TABLES_WITH_RUN_IDS = frozenset({"run_tags", "asset_check_executions"})
"""The tables whose rows stay when a run is deleted."""


def delete_old_runs(instance: dg.DagsterInstance, files: RecordFolder, *, before: datetime) -> tuple[int, int]:
    """Delete runs that finished before this moment, with their events and logs; return the numbers of deleted and of needed runs.

    Dagster 1.13 deletes the materializations of a run with it, and then shows as missing what only that run materialized. So the newest
    run of every asset and of every existing partition stays. An archived turn has no partition. `files`: the folder of the records; Dagster
    leaves rows of deleted runs in its tables.
    """
    needed = needed_runs(instance)
    finished = [run.run_id for run in _runs(instance, dg.RunsFilter(statuses=list(_FINISHED_STATUSES), updated_before=before))]
    deleted = [run_id for run_id in finished if run_id not in needed]
    for run_id in deleted:
        delete_run(instance, run_id)
    for database in files.databases() if deleted else ():
        _delete_rows_of_runs(database, deleted)
    return len(deleted), len(finished) - len(deleted)


def _delete_rows_of_runs(database: AbstractContextManager[Connection], run_ids: Sequence[str]) -> None:
    """Delete the rows that Dagster 1.13 leaves of these runs: their tags, and the results of their checks."""
    with database as db:
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table in sorted(_TABLES_WITH_RUN_IDS & tables):
            db.executemany(f"DELETE FROM {table} WHERE run_id = ?", [(run_id,) for run_id in run_ids])  # noqa: S608 - two fixed names
        db.commit()


def needed_runs(instance: dg.DagsterInstance) -> frozenset[str]:
    """The runs of the newest materialization of each asset, and of each of its partitions."""
    turn_partitions = set(instance.get_dynamic_partitions(str(TURNS.name)))
    needed: set[str] = set()
    for asset in instance.all_asset_keys():
        newest = instance.get_latest_materialization_event(asset)
        needed |= {newest.run_id} if newest else set()
        latest = instance.event_log_storage.get_latest_storage_id_by_partition(asset, dg.DagsterEventType.ASSET_MATERIALIZATION)
        storage_ids = [storage_id for key, storage_id in latest.items() if key in turn_partitions or not _is_turn(key)]
        for start in range(0, len(storage_ids), _PAGE_SIZE):
            record_filter = dg.AssetRecordsFilter(asset_key=asset, storage_ids=storage_ids[start : start + _PAGE_SIZE])
            needed |= {record.run_id for record in instance.fetch_materializations(record_filter, limit=_PAGE_SIZE).records}
    return frozenset(needed)


def delete_run(instance: dg.DagsterInstance, run_id: str) -> None:
    """Delete a run's record, events, captured output and their files; idempotent."""
    instance.compute_log_manager.delete_logs(prefix=[run_id])
    instance.delete_run(run_id)
    shard = getattr(instance.event_log_storage, "path_for_shard", None)
    if shard is not None:
        for ending in ("", "-wal", "-shm"):
            Path(str(shard(run_id)) + ending).unlink(missing_ok=True)
    storage = Path(instance.storage_directory()) / run_id
    for folder in (storage / "compute_logs", storage):
        with suppress(OSError):
            folder.rmdir()


def redact_run_config(instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    """Replace the credentials in the stored configuration of a run, which Dagster otherwise keeps as it was typed, by `[redacted]`."""
    config, storage = redact_values(run.run_config), instance.run_storage
    if config == run.run_config or not isinstance(storage, SqlRunStorage):
        return
    with storage.connect() as connection:
        body = dg.serialize_value(copy(run, run_config=config))
        connection.execute(RunsTable.update().where(RunsTable.c.run_id == run.run_id).values(run_body=body))


def _runs(instance: dg.DagsterInstance, run_filter: dg.RunsFilter | None = None) -> Iterator[dg.DagsterRun]:
    """All runs, or those that match a filter, read page by page."""
    cursor: str | None = None
    while records := instance.get_run_records(filters=run_filter, limit=_PAGE_SIZE, cursor=cursor):
        yield from (record.dagster_run for record in records)
        cursor = records[-1].dagster_run.run_id


def _is_turn(partition: str | None) -> bool:
    try:
        return partition is not None and bool(TurnKey.parse(partition))
    except BadIdError:
        return False


# Erasure of a user from Dagster: partitions, runs with events and logs, and mentions in the records of other users.

_MAX_RUN_WAIT_S, _RECORD_WAIT_S = 10.0, 1.0
"""Wait for unfinished runs, and then for their processes to read their own records."""
_POLL_INTERVAL_S = 0.2
_PARTITION_TAG = "dagster/partition"
_RANGE_START_TAG, _RANGE_END_TAG = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"


def open_run_eraser(settings: Settings) -> Eraser:
    """The eraser of the records in DAGSTER_HOME."""
    return DagsterRunEraser(settings, open_record_folder(settings.dagster_home))


@dataclass(frozen=True, slots=True)
class DagsterRunEraser:
    """The Eraser port over the instance of DAGSTER_HOME; without an instance there is nothing to erase. `files`: that folder."""

    settings: Settings
    files: RecordFolder
    step: str = "runs"

    def count(self, user: UserId) -> Mapping[str, int]:
        if not self.settings.dagster_home.is_dir():
            return {"partitions": 0, "runs": 0}
        with open_instance(self.settings) as instance:
            return {"partitions": len(_user_partitions(instance, user)), "runs": len(_user_runs(instance, user))}

    def erase(self, user: UserId, traces: TraceScrubber) -> Sequence[str]:
        """Delete partitions and runs through Dagster, then every record in its files. Raises StoreError where another program holds one."""
        if not self.settings.dagster_home.is_dir():
            return ()
        with open_instance(self.settings) as instance:
            for key in _user_partitions(instance, user):
                instance.delete_dynamic_partition(str(TURNS.name), key)
            _await_runs(instance, user)
            for run in _user_runs(instance, user):
                delete_run(instance, run.run_id)
            existing_runs = {run.run_id for run in _runs(instance)}
            self.files.erase_rows(traces)
            for database in self.files.databases():
                _delete_orphan_rows(database, existing_runs)
            _restore_newest_events(instance, self.files)
        self.files.erase_texts(traces)
        return ()

    def search(self, traces: TraceScrubber) -> Iterator[SearchedObject]:
        return self.files.search(traces)


def _user_partitions(instance: dg.DagsterInstance, user: str) -> list[str]:
    """The keys of the user's turns."""
    return [key for key in instance.get_dynamic_partitions(str(TURNS.name)) if _is_partition_of(key, user)]


def _await_runs(instance: dg.DagsterInstance, user: str) -> None:
    """Wait until the user's runs are finished, as they fail without their turns; a killed process never finishes its run: bounded."""
    deadline = time.monotonic() + _MAX_RUN_WAIT_S
    while time.monotonic() < deadline and any(not run.is_finished for run in _user_runs(instance, user)):
        time.sleep(_POLL_INTERVAL_S)
        if not any(not run.is_finished for run in _user_runs(instance, user)):
            time.sleep(_RECORD_WAIT_S)


def _user_runs(instance: dg.DagsterInstance, user: str) -> list[dg.DagsterRun]:
    """The runs in which no turn of another user took part."""
    return [run for run in _runs(instance) if _is_of_user(run, user)]


def _is_of_user(run: dg.DagsterRun, user: str) -> bool:
    """Whether the tags or the configuration of a run name this user."""
    tags = run.tags
    if tags.get("pandora/user") == user or _is_partition_of(tags.get(_PARTITION_TAG, ""), user):
        return True
    if _is_partition_of(tags.get(_RANGE_START_TAG, ""), user) and _is_partition_of(tags.get(_RANGE_END_TAG, ""), user):
        return True
    return _starts_turn_of(run.run_config, user)


def _starts_turn_of(config: object, user: str) -> bool:
    """Whether the configuration of a run, at any depth, has the user in a field `user`."""
    if not isinstance(config, Mapping):
        return False
    fields = cast("Mapping[str, object]", config)
    return fields.get("user") == user or any(_starts_turn_of(value, user) for value in fields.values())


def _is_partition_of(partition: str, user: str) -> bool:
    return partition.startswith(f"{user}:turn_")


def _delete_orphan_rows(database: AbstractContextManager[Connection], existing_runs: Collection[str]) -> None:
    """Delete the rows that Dagster 1.13 leaves of deleted runs: tags, checks, and tags of events."""
    with database as db:
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        db.execute("CREATE TEMP TABLE existing_runs (run_id TEXT PRIMARY KEY)")
        db.executemany("INSERT INTO existing_runs VALUES (?)", [(run_id,) for run_id in existing_runs])
        for table in sorted(_TABLES_WITH_RUN_IDS & tables):
            db.execute(f"DELETE FROM {table} WHERE run_id <> '' AND run_id NOT IN (SELECT run_id FROM existing_runs)")  # noqa: S608 - two fixed names
        if {"asset_event_tags", "event_logs"} <= tables:
            db.execute("DELETE FROM asset_event_tags WHERE event_id NOT IN (SELECT id FROM event_logs)")
        db.commit()


def _restore_newest_events(instance: dg.DagsterInstance, files: RecordFolder) -> None:
    """Replace the newest event that Dagster stores for each asset, where it was erased, by the newest remaining one."""
    newest = {asset.to_string(): instance.fetch_materializations(asset, limit=1).records for asset in instance.all_asset_keys()}
    existing_runs = {run.run_id for run in _runs(instance)}
    for database in files.databases():
        with database as db:
            if not db.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'asset_keys'").fetchone():
                continue
            asset_rows = db.execute("SELECT id, asset_key, last_materialization, last_run_id FROM asset_keys").fetchall()
            for row_id, asset, event, run_id in asset_rows:
                if not (event and f'"{ERASED}' in event) and (not run_id or run_id in existing_runs):
                    continue
                records = newest.get(asset, ())
                replacement = (dg.serialize_value(records[0]), records[0].run_id) if records else (None, None)
                db.execute("UPDATE asset_keys SET last_materialization = ?, last_run_id = ? WHERE id = ?", (*replacement, row_id))
            db.execute("UPDATE asset_keys SET cached_status_data = NULL")
            db.commit()
