# pyright: reportUnknownMemberType=false
# (signatures of dg.schedule and dg.define_asset_job name a bare PathLike)
"""The retention assets: deletion of old originals in cold storage, and of Dagster's records of old runs, each with a job of its own."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg

from pandora_dagster.app.adapters.erasure_adapters import open_record_folder
from pandora_dagster.contracts.retention import PrunedTurn, PruneReport
from pandora_dagster.defs.archival.archive_assets import GROUP
from pandora_dagster.defs.checked_asset import OWNER, checked_asset, failure
from pandora_dagster.defs.resources import ArchiveResource
from pandora_dagster.defs.run_records import delete_old_runs
from pandora_dagster.errors import ConfigurationError, PandoraError
from pandora_dagster.settings import Settings

COLD_ASSET, RUNS_ASSET, SCHEDULE, CHECK = "cold_retention", "run_retention", "daily_run_retention", "nothing_missing"
_MAX_TABLE_ROWS = 500
_MAX_LISTED_FAULTS = 50
_COLUMNS = [
    dg.TableColumn("turn", "string"),
    dg.TableColumn("day", "string"),
    dg.TableColumn("outcome", "string", description="deleted, or what keeps it"),
    dg.TableColumn("reason", "string"),
    dg.TableColumn("cold", "string", description="the cold object, below the store root; its tombstone is beside it"),
    dg.TableColumn("size", "int"),
]

COLD_JOB = dg.define_asset_job(
    "prune_cold", selection=[COLD_ASSET], description="Deletes originals after PANDORA_COLD_KEEP_DAYS. Never starts by itself."
)
RUNS_JOB = dg.define_asset_job("clear_runs", selection=[RUNS_ASSET], description="Deletes Dagster's records of old runs.")


def cold_asset() -> dg.AssetsDefinition:
    """`cold_retention`: deletes old originals; only users start it."""

    @checked_asset(
        COLD_ASSET,
        "Permanently deletes the originals of turns archived over PANDORA_COLD_KEEP_DAYS ago; each leaves a tombstone. "
        "Originals that a pin, an open intervention or a live turn refers to stay.",
        group=GROUP,
        checks={CHECK: "No original was found damaged, or missing without a tombstone."},
        deps=["archived_turns"],
    )
    def cold_retention(
        context: dg.AssetExecutionContext, retention: dg.ResourceParam[ArchiveResource]
    ) -> Iterator[dg.MaterializeResult[Any]]:
        try:
            report = retention.open().prune(by=f"Dagster run {context.run.run_id}")
        except PandoraError as error:
            raise failure(COLD_ASSET, error) from error
        faults = "\n".join(f"- {fault}" for fault in report.faults[:_MAX_LISTED_FAULTS])
        check = dg.AssetCheckResult(
            asset_key=COLD_ASSET,
            check_name=CHECK,
            passed=not report.faults,
            metadata={"faults": dg.MetadataValue.md(faults)} if faults else {},
        )
        yield dg.MaterializeResult(asset_key=COLD_ASSET, metadata=_prune_metadata(report), check_results=[check])

    return cold_retention


def runs_asset(settings: Settings) -> dg.AssetsDefinition:
    """`run_retention`: deletes the records of old runs."""

    @dg.asset(
        name=RUNS_ASSET,
        description="Deletes Dagster's records of runs that finished over PANDORA_RUNS_KEEP_DAYS ago: runs, events and captured output. "
        "Unfinished runs stay, and those that show an asset or a partition as materialized.",
        group_name=GROUP,
        kinds={"python"},
        code_version="1",
        owners=[OWNER],
    )
    def run_retention(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
        days = settings.runs_keep_days
        if not days:
            message = "PANDORA_RUNS_KEEP_DAYS: 0: runs are kept for ever: expected days"
            raise failure(RUNS_ASSET, ConfigurationError(message, hint="set PANDORA_RUNS_KEEP_DAYS, e.g. to 90"))
        files = open_record_folder(settings.dagster_home)
        deleted, needed = delete_old_runs(context.instance, files, before=datetime.now(UTC) - timedelta(days=days))
        return dg.MaterializeResult(metadata={"deleted": deleted, "needed": needed, "days": days})

    return run_retention


def runs_schedule(settings: Settings) -> dg.ScheduleDefinition:
    """`daily_run_retention`: enabled where PANDORA_RUNS_KEEP_DAYS is not 0, as by default."""
    status = dg.DefaultScheduleStatus.RUNNING if settings.runs_keep_days else dg.DefaultScheduleStatus.STOPPED
    return dg.ScheduleDefinition(
        name=SCHEDULE,
        job=RUNS_JOB,
        cron_schedule="30 4 * * *",
        execution_timezone=settings.timezone,
        default_status=status,
        description="Deletes records of runs older than PANDORA_RUNS_KEEP_DAYS; stopped where that is 0.",
    )


def _prune_metadata(report: PruneReport) -> dict[str, dg.MetadataValue[Any]]:
    rows = [dg.TableRecord(_table_row(turn)) for turn in (*report.pruned, *report.kept)[:_MAX_TABLE_ROWS]]
    counts = {
        "deleted": len(report.pruned),
        "kept": len(report.kept),
        "young": report.within_retention,
        "deleted_before": report.deleted_earlier,
    }
    return {
        "turns": dg.MetadataValue.table(rows, dg.TableSchema(_COLUMNS)),
        **{name: dg.MetadataValue.int(count) for name, count in counts.items()},
        "bytes_freed": dg.MetadataValue.int(report.bytes_freed),
        "older_than_days": dg.MetadataValue.int(report.older_than_days),
    }


def _table_row(turn: PrunedTurn) -> dict[str, str | int | float | bool]:
    outcome = turn.kept_because.value if turn.kept_because else "deleted"
    return {"turn": str(turn.key), "day": turn.day, "outcome": outcome, "reason": turn.reason, "cold": turn.cold, "size": turn.size}
