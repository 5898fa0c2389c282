# pyright: reportUnknownMemberType=false
"""Batches in Dagster: the asset of a day's queries with its table and check, and the sensor that starts a run for each inbox file."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, cast

import dagster as dg
from pydantic import Field

from pandora_dagster.app.batch_service import BatchService
from pandora_dagster.contracts.batches import Batch, BatchRow
from pandora_dagster.defs.checked_asset import checked_asset, failure
from pandora_dagster.defs.instance import add_turn_partitions, days
from pandora_dagster.defs.resources import BatchResource
from pandora_dagster.defs.turn.missing_runs import record_stored_turns
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.errors import PandoraError
from pandora_dagster.language.word_forms import counted
from pandora_dagster.settings import Settings

ASSET, CHECK, JOB = "turn_batch", "batch_complete", "batch"
BATCH_JOB = dg.define_asset_job(JOB, selection=[ASSET], description="The queries that wait in the inbox, on one day.")
_MAX_TABLE_ROWS = 500
"""Rows of the table; all of them are in the files of `<root>/batches`."""
_MAX_LISTED_LINES = 20
_PROGRESS_INTERVAL_LINES = 25
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

    @checked_asset(ASSET, _DESCRIPTION, group="batch", checks={CHECK: _CHECK_DESCRIPTION}, partitions=days(settings))
    def turn_batch(
        context: dg.AssetExecutionContext, config: BatchConfig, batches: dg.ResourceParam[BatchResource]
    ) -> Iterator[dg.MaterializeResult[Any]]:
        day, service = context.partition_key, batches.open()
        try:
            for name in (config.file,) if config.file else service.waiting(day):
                _run_file(name, day, context, service)
            day_batches = service.of_day(day)
        except PandoraError as error:
            raise failure(ASSET, error) from error
        yield dg.MaterializeResult(asset_key=ASSET, metadata=_metadata(day_batches), check_results=[_completeness_check(day_batches)])

    return turn_batch


def _run_file(name: str, day: str, context: dg.AssetExecutionContext, batches: BatchService) -> None:
    """Run the queries of one inbox file: add their partitions first, and log the progress."""
    finished: list[BatchRow] = []

    def on_begin(batch: Batch) -> None:
        add_turn_partitions(context.instance, [query.key for query in batch.queries])
        context.log.info(f"{name}: {counted(len(batch.queries), 'query', 'queries')}, {counted(len(batch.rejected), 'line')} rejected")

    def on_row(row: BatchRow) -> None:
        finished.append(row)
        if len(finished) % _PROGRESS_INTERVAL_LINES == 0:
            context.log.info(f"{name}: {counted(len(finished), 'line')} finished")

    run = batches.run_waiting(name, day, on_begin=on_begin, on_row=on_row)
    record_stored_turns(batches.app, context.instance, [query.key for query in run.batch.queries])


DayBatches = Sequence[tuple[Batch, Sequence[BatchRow]]]
"""The batches that began on a day, each with the state of its lines."""


def _metadata(day_batches: DayBatches) -> dict[str, dg.MetadataValue[Any]]:
    """The table, halted and rejected lines first, and the counts as numbers, which the UI plots."""
    rows = [(batch.file, row) for batch, rows in day_batches for row in rows]
    rows.sort(key=lambda file_and_row: not file_and_row[1].reason)
    states = Counter(str(row.state) for _, row in rows)
    table_rows = [dg.TableRecord(_table_row(file, row)) for file, row in rows[:_MAX_TABLE_ROWS]]
    counts = {
        "queries": sum(bool(row.turn) for _, row in rows),
        **{state: states[state] for state in ("saved", "clarify", "halted", "rejected")},
    }
    durations_ms = [row.ms for _, row in rows if row.turn and row.is_finished]
    return {
        "lines": dg.MetadataValue.table(table_rows, dg.TableSchema(_COLUMNS)),
        **{name: dg.MetadataValue.int(count) for name, count in counts.items()},
        "files": dg.MetadataValue.int(len(day_batches)),
        "tokens": dg.MetadataValue.int(sum(row.tokens for _, row in rows)),
        "ms_a_turn": dg.MetadataValue.float(sum(durations_ms) / len(durations_ms) if durations_ms else 0.0),
    }


def _table_row(file: str, row: BatchRow) -> dict[str, str | int | float | bool]:
    texts = {"id": row.id, "turn": row.turn, "state": str(row.state), "intervention": row.intervention, "reason": redact(row.reason)}
    return {"file": file, "line": row.line, **texts, "tokens": row.tokens, "ms": row.ms}


def _completeness_check(day_batches: DayBatches) -> dg.AssetCheckResult:
    """The check that every line is finished; the metadata name the first lines that are not."""
    open_lines = [f"{batch.file}:{row.line}" for batch, rows in day_batches for row in rows if not row.is_finished]
    listed = ", ".join(open_lines[:_MAX_LISTED_LINES])
    metadata: dict[str, Any] = {"unsettled": len(open_lines), **({"lines": listed} if listed else {})}
    return dg.AssetCheckResult(asset_key=ASSET, check_name=CHECK, passed=not open_lines, metadata=metadata)


_INBOX_INTERVAL_S = 10
_MAX_RUNS_PER_FILE = 3
"""A killed run leaves its file in the inbox, and the next run continues it."""
_UNFINISHED_STATUSES = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def inbox_sensor() -> dg.SensorDefinition:
    """`inbox_files`: starts one run for each complete inbox file, one run at a time; complete means unchanged between two ticks."""

    @dg.sensor(
        name="inbox_files",
        job_name=JOB,
        minimum_interval_seconds=_INBOX_INTERVAL_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Starts turn_batch for each file in <root>/inbox that is no longer written; the key of its run is its digest.",
    )
    def inbox_files(context: dg.SensorEvaluationContext, batches: dg.ResourceParam[BatchResource]) -> dg.SensorResult | dg.SkipReason:
        last_fingerprints = cast("dict[str, str]", json.loads(context.cursor)) if context.cursor else {}
        fingerprints = {file.name: file.fingerprint for file in batches.inbox.files()}
        cursor = json.dumps(fingerprints, sort_keys=True)
        complete_files = [name for name, fingerprint in fingerprints.items() if last_fingerprints.get(name) == fingerprint]
        requests = list(_run_requests(complete_files, context.instance, batches))
        if not requests:
            context.update_cursor(cursor)
            return dg.SkipReason(f"{counted(len(fingerprints), 'file')} in the inbox, none to start now")
        return dg.SensorResult(run_requests=requests[:1], cursor=cursor)

    return inbox_files


def _run_requests(names: list[str], instance: dg.DagsterInstance, batches: BatchResource) -> Iterator[dg.RunRequest]:
    """A request for each file that has runs left; none while another batch runs, which would compete for the same servers."""
    if instance.get_runs_count(dg.RunsFilter(job_name=JOB, statuses=_UNFINISHED_STATUSES)):
        return
    for name in names:
        digest, day = batches.open().digest_and_day(name)
        earlier_runs = instance.get_runs_count(dg.RunsFilter(tags={"pandora/batch": digest}))
        if earlier_runs < _MAX_RUNS_PER_FILE:
            key = f"{digest}:{earlier_runs + 1}" if earlier_runs else digest
            config = dg.RunConfig(ops={ASSET: {"config": {"file": name}}})
            yield dg.RunRequest(run_key=key, partition_key=day, run_config=config, tags={"pandora/batch": digest, "pandora/file": name})
