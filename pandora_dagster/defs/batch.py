# pyright: reportUnknownMemberType=false
"""Batches in Dagster: the asset of a day's queries with its table and check, and the sensor of the inbox."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, cast

import dagster as dg
from pydantic import Field

from pandora_dagster.app.batch_service import BatchService
from pandora_dagster.contracts.batches import Batch, BatchRow
from pandora_dagster.defs.checked_asset import checked_asset, failure
from pandora_dagster.defs.instance import add_keys, days
from pandora_dagster.defs.resources import BatchResource
from pandora_dagster.errors import PandoraError
from pandora_dagster.settings import Settings

ASSET, CHECK, JOB = "turn_batch", "batch_complete", "batch"
_SHOWN = 500
"""Rows of the table; all of them are in the files of `<root>/batches`."""
_EVERY = 25
_COLUMNS = [
    dg.TableColumn("file", "string"),
    dg.TableColumn("line", "int"),
    dg.TableColumn("id", "string"),
    dg.TableColumn("turn", "string"),
    dg.TableColumn("state", "string"),
    dg.TableColumn("intervention", "string"),
    dg.TableColumn("tokens", "int"),
    dg.TableColumn("ms", "float"),
    dg.TableColumn("reason", "string", description="why it was rejected, or the message of its halt"),
]
_DESCRIPTION = (
    "The queries of the files in `<root>/inbox/` that began on this day, each a turn of its own. A run whose configuration names no file "
    "processes the waiting files that were started on its day; for today, also files not started yet."
)
_CHECK_DESCRIPTION = "Each line has a turn that is saved, asks for clarification, or halted with an intervention."


class BatchConfig(dg.Config):
    """The file of the inbox to run; the sensor names it."""

    file: str = Field("", description="A file of <root>/inbox; empty: all waiting files of this day.")


def batch_asset(settings: Settings) -> dg.AssetsDefinition:
    """`turn_batch`, partitioned by day."""

    @checked_asset(ASSET, _DESCRIPTION, group="batch", checks={CHECK: _CHECK_DESCRIPTION}, days=days(settings))
    def turn_batch(
        context: dg.AssetExecutionContext, config: BatchConfig, night: dg.ResourceParam[BatchResource]
    ) -> Iterator[dg.MaterializeResult[Any]]:
        day, batches = context.partition_key, night.open()
        try:
            for name in (config.file,) if config.file else batches.waiting(day):
                _run(name, day, context, batches)
            found = batches.of_day(day)
        except PandoraError as error:
            raise failure(ASSET, error) from error
        yield dg.MaterializeResult(asset_key=ASSET, metadata=_metadata(found), check_results=[_complete(found)])

    return turn_batch


def _run(name: str, day: str, context: dg.AssetExecutionContext, batches: BatchService) -> None:
    """Run one file; log its progress."""
    finished: list[BatchRow] = []

    def on_begin(batch: Batch) -> None:
        add_keys(context.instance, [query.key for query in batch.queries])
        context.log.info(f"{name}: {len(batch.queries)} queries, {len(batch.rejected)} lines rejected")

    def on_row(row: BatchRow) -> None:
        finished.append(row)
        if len(finished) % _EVERY == 0:
            context.log.info(f"{name}: {len(finished)} lines finished")

    batches.run_waiting(name, day, on_begin=on_begin, on_row=on_row)


Found = Sequence[tuple[Batch, Sequence[BatchRow]]]


def _metadata(found: Found) -> dict[str, dg.MetadataValue[Any]]:
    """The table, halted and rejected lines first, and the counts as numbers, which the UI plots."""
    rows = [(batch.file, row) for batch, rows in found for row in rows]
    rows.sort(key=lambda named: not named[1].reason)
    states = Counter(str(row.state) for _, row in rows)
    records = [dg.TableRecord(_record(file, row)) for file, row in rows[:_SHOWN]]
    counts = {
        "queries": sum(bool(row.turn) for _, row in rows),
        **{state: states[state] for state in ("saved", "clarify", "halted", "rejected")},
    }
    times = [row.ms for _, row in rows if row.turn and row.is_finished]
    return {
        "lines": dg.MetadataValue.table(records, dg.TableSchema(_COLUMNS)),
        **{name: dg.MetadataValue.int(count) for name, count in counts.items()},
        "files": dg.MetadataValue.int(len(found)),
        "tokens": dg.MetadataValue.int(sum(row.tokens for _, row in rows)),
        "ms_a_turn": dg.MetadataValue.float(sum(times) / len(times) if times else 0.0),
    }


def _record(file: str, row: BatchRow) -> dict[str, str | int | float | bool]:
    texts = {"id": row.id, "turn": row.turn, "state": str(row.state), "intervention": row.intervention, "reason": row.reason}
    return {"file": file, "line": row.line, **texts, "tokens": row.tokens, "ms": row.ms}


def _complete(found: Found) -> dg.AssetCheckResult:
    open_lines = [f"{batch.file}:{row.line}" for batch, rows in found for row in rows if not row.is_finished]
    shown: dict[str, Any] = {"unsettled": len(open_lines), **({"lines": ", ".join(open_lines[:20])} if open_lines else {})}
    return dg.AssetCheckResult(asset_key=ASSET, check_name=CHECK, passed=not open_lines, metadata=shown)


_EVERY_S = 10
_TRIES = 3
"""Runs of one file: a killed run leaves its file in the inbox, and the next run continues it."""
_UNDER_WAY = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def inbox_sensor() -> dg.SensorDefinition:
    """`inbox_files`: one run for each complete file of the inbox, one at a time. Complete: unchanged between two ticks."""

    @dg.sensor(
        name="inbox_files",
        job_name=JOB,
        minimum_interval_seconds=_EVERY_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Starts turn_batch for each file in <root>/inbox that is no longer written; the key of its run is its digest.",
    )
    def inbox_files(context: dg.SensorEvaluationContext, night: dg.ResourceParam[BatchResource]) -> dg.SensorResult | dg.SkipReason:
        before = cast("dict[str, str]", json.loads(context.cursor)) if context.cursor else {}
        now = {file.name: file.fingerprint for file in night.inbox.files()}
        cursor = json.dumps(now, sort_keys=True)
        complete = [name for name, stamp in now.items() if before.get(name) == stamp]
        requests = list(_requests(complete, context.instance, night))
        if not requests:
            context.update_cursor(cursor)
            return dg.SkipReason(f"{len(now)} files in the inbox, none to start now")
        return dg.SensorResult(run_requests=requests[:1], cursor=cursor)

    return inbox_files


def _requests(names: list[str], instance: dg.DagsterInstance, night: BatchResource) -> Iterator[dg.RunRequest]:
    """The first file without a run, unless another batch runs: two would compete for the same servers."""
    if instance.get_runs_count(dg.RunsFilter(job_name=JOB, statuses=_UNDER_WAY)):
        return
    for name in names:
        digest, day = night.open().identity(name)
        tries = instance.get_runs_count(dg.RunsFilter(tags={"pandora/batch": digest}))
        if tries < _TRIES:
            key = f"{digest}:{tries + 1}" if tries else digest
            config = dg.RunConfig(ops={ASSET: {"config": {"file": name}}})
            yield dg.RunRequest(run_key=key, partition_key=day, run_config=config, tags={"pandora/batch": digest, "pandora/file": name})
