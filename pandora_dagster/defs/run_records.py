"""Dagster's records of runs, and how a run is taken out of all of them. Knows where the parts of a run lie."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import dagster as dg

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.defs.partitions import TURNS
from pandora_dagster.errors import BadIdError

_FINISHED = (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class RunDeletion:
    """What one clearing of runs did."""

    deleted: int
    needed: int
    """Old runs that stay: a partition shows as materialised by them."""


def delete_old_runs(instance: dg.DagsterInstance, *, before: datetime) -> RunDeletion:
    """Delete runs that finished before this moment, with their events and logs.

    With a run Dagster 1.13 deletes its materialisations, and what was materialised by it alone shows as missing: so the newest run of
    every asset and of every partition that still is one stays. The partition of an archived turn is none any more.
    """
    needed = needed_runs(instance)
    deleted = kept = 0
    for run_id in list(_finished(instance, before)):
        if run_id in needed:
            kept += 1
        else:
            delete_run(instance, run_id)
            deleted += 1
    return RunDeletion(deleted, kept)


def needed_runs(instance: dg.DagsterInstance) -> frozenset[str]:
    """The runs of the newest materialisation of each asset, and of each of its partitions."""
    turns = set(instance.get_dynamic_partitions(str(TURNS.name)))
    needed: set[str] = set()
    for asset in instance.all_asset_keys():
        newest = instance.get_latest_materialization_event(asset)
        needed |= {newest.run_id} if newest else set()
        latest = instance.event_log_storage.get_latest_storage_id_by_partition(asset, dg.DagsterEventType.ASSET_MATERIALIZATION)
        ids = [storage_id for partition, storage_id in latest.items() if partition in turns or not _is_turn(partition)]
        for start in range(0, len(ids), _AT_ONCE):
            some = dg.AssetRecordsFilter(asset_key=asset, storage_ids=ids[start : start + _AT_ONCE])
            needed |= {record.run_id for record in instance.fetch_materializations(some, limit=_AT_ONCE).records}
    return frozenset(needed)


def delete_run(instance: dg.DagsterInstance, run_id: str) -> None:
    """A run's record, its events, what it printed, and the files that held them; a second time is none."""
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


def _finished(instance: dg.DagsterInstance, before: datetime) -> Iterator[str]:
    cursor: str | None = None
    wanted = dg.RunsFilter(statuses=list(_FINISHED), updated_before=before)
    while records := instance.get_run_records(filters=wanted, limit=_AT_ONCE, cursor=cursor):
        yield from (record.dagster_run.run_id for record in records)
        cursor = records[-1].dagster_run.run_id


def _is_turn(partition: str | None) -> bool:
    try:
        return partition is not None and bool(TurnKey.parse(partition))
    except BadIdError:
        return False
