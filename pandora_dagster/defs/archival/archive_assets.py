"""The asset `archived_turns` by day: its partitions, metadata and checks. The package `archive` archives the turns."""

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

import dagster as dg

from pandora_dagster.app.archive_service import ArchiveService
from pandora_dagster.contracts.archive_records import ArchivedDay, ArchivedDayRow, ArchivedTurn, ArchiveReport, DayCheck
from pandora_dagster.contracts.lineage import document_id
from pandora_dagster.contracts.user.summary_levels import LevelReport
from pandora_dagster.defs.checked_asset import checked_asset, failure
from pandora_dagster.defs.imported_turns import ASSET as IMPORTED_TURNS
from pandora_dagster.defs.instance import ARCHIVAL_DAYS, remove_turn_partitions
from pandora_dagster.defs.resources import ArchiveResource
from pandora_dagster.errors import PandoraError
from pandora_dagster.language.word_forms import counted
from pandora_dagster.phases.flow.phase_spec import PhaseRole
from pandora_dagster.phases.flow.phase_table import phase_in_role

ASSET, GROUP = "archived_turns", "archive"
_PROGRESS_INTERVAL_TURNS = 100
_MAX_LINKED_DOCUMENTS = 50
"""Links to lineage in the metadata of a day; the page of the day links all documents."""
_MAX_LISTED_TURNS, _MAX_LISTED_FAULTS = 50, 50
_COLUMNS = [
    dg.TableColumn("turn", "string"),
    dg.TableColumn("document", "string"),
    dg.TableColumn("tokens_before", "int"),
    dg.TableColumn("tokens_after", "int"),
    dg.TableColumn("ratio", "float"),
    dg.TableColumn("facts_kept", "int"),
    dg.TableColumn("facts", "int"),
    dg.TableColumn("runtime", "string", description="the runtime that compressed it; empty where it is stored whole"),
    dg.TableColumn("original", "string", description="its name inside the cold object"),
    dg.TableColumn("cold", "string", description="the cold object, below the store root"),
    dg.TableColumn("whole", "string", description="why it is stored whole"),
]
_VERDICT_COUNTS = ("judged", "faulty", "by_rule")
_DESCRIPTION = (
    "The turns last active on this day, 30 days after its end (PANDORA_ARCHIVE_AFTER_DAYS): documents compressed and verified, originals "
    "in cold storage. A run over archived days archives turns whose hold ended, and verifies all of them."
)
_CHECKS: dict[str, str] = {
    DayCheck.NO_FACT_CHANGED: "Every compressed document is as it was verified: no fact changed or invented; lost facts are counted.",
    DayCheck.ORIGINALS_RESTORABLE: "Every cold object opens, and each original in it has its hash; a pruned one has its tombstone.",
    DayCheck.WITHIN_TARGET: "Every compressed document is within its target; a longer one that keeps its facts is a warning.",
    DayCheck.INDEX_AGREES: "The index row of every turn agrees with its manifest.",
    DayCheck.NOTHING_LEFT_BEHIND: "Every due turn is archived, or listed with the reason; a failed one fails this check.",
}


def archive_asset() -> dg.AssetsDefinition:
    """`archived_turns`, partitioned by day; a range of days is one run."""

    # the graph shows the dependency on turns; no partition of a turn belongs to one of a day
    summary_dep = dg.AssetDep(phase_in_role(PhaseRole.SUMMARY), partition_mapping=dg.SpecificPartitionsPartitionMapping([]))

    @checked_asset(
        ASSET, _DESCRIPTION, group=GROUP, checks=_CHECKS, deps=[summary_dep, IMPORTED_TURNS], partitions=ARCHIVAL_DAYS, single_run=True
    )
    def archived_turns(
        context: dg.AssetExecutionContext, archive: dg.ResourceParam[ArchiveResource]
    ) -> Iterator[dg.MaterializeResult[Any]]:
        dates = sorted(date.fromisoformat(key) for key in context.partition_keys)
        service = archive.open()
        try:
            report = service.run(dates, run_id=context.run.run_id, on_row=_Progress(context))
            remove_turn_partitions(context.instance, service.archived(dates))
            days = list(_day_results(context, service, dates))
        except PandoraError as error:
            raise failure(ASSET, error) from error
        if report.stopped:
            raise stop_failure(ASSET, report)
        yield dg.MaterializeResult(asset_key=ASSET, check_results=[day_check_result(check, days) for check in DayCheck])

    return archived_turns


class _Progress:
    """Logs the progress of an archival run."""

    def __init__(self, context: dg.AssetExecutionContext) -> None:
        self._context, self._finished_turns = context, 0

    def __call__(self, row: ArchivedTurn) -> None:
        self._finished_turns += 1
        if row.reason and row.intervention:
            self._context.log.warning(f"{row.key}: {row.reason} (intervention {row.intervention})")
        if self._finished_turns % _PROGRESS_INTERVAL_TURNS == 0:
            self._context.log.info(f"{counted(self._finished_turns, 'turn')} finished")


def _day_results(context: dg.AssetExecutionContext, service: ArchiveService, dates: Sequence[date]) -> Iterator[ArchivedDay]:
    """Yield each day after adding its metadata to the run; only its sums and verdicts stay in memory."""
    for day in service.verify_days(dates):
        context.add_asset_metadata(day_metadata(day, service), asset_key=ASSET, partition_key=day.day.isoformat())
        yield day


def day_metadata(day: ArchivedDay, service: ArchiveService) -> dict[str, dg.MetadataValue[Any]]:
    """The metadata of a day: its documents with their lineage, the turns that stay, and sums as numbers, which the UI plots over days."""
    page = service.page(day.day)
    documents = [document_id(row.key, row.document.name) for row in day.rows[:_MAX_LINKED_DOCUMENTS]] if page else []
    links = "\n".join(f"- [{document}]({service.lineage_page(document)})" for document in documents)
    stays = "\n".join(f"- {turn.key}: {turn.reason}" for turn in day.unarchived_turns[:_MAX_LISTED_TURNS])
    counts = ("turns", "documents", "compressed", "tokens_before", "tokens_after", "facts", "facts_kept", "cold_bytes")
    records = [dg.TableRecord(_table_row(row)) for row in day.rows]
    return {
        "documents_table": dg.MetadataValue.table(records, dg.TableSchema(_COLUMNS)),
        **({"lineage": dg.MetadataValue.url(page)} if page else {}),
        **({"lineage_of_documents": dg.MetadataValue.md(links)} if links else {}),
        **{name: dg.MetadataValue.int(getattr(day, name)) for name in counts},
        "ratio": dg.MetadataValue.float(day.ratio),
        "stays": dg.MetadataValue.int(len(day.unarchived_turns)),
        **({"stay_with_reasons": dg.MetadataValue.md(stays)} if stays else {}),
        "dagster/row_count": dg.MetadataValue.int(day.documents),
    }


def _table_row(row: ArchivedDayRow) -> dict[str, str | int | float | bool]:
    document = row.document
    ratio = round(document.tokens_after / document.tokens_before, 3) if document.tokens_before else 1.0
    numbers = {name: getattr(document, name) for name in ("tokens_before", "tokens_after", "facts_kept", "facts")}
    texts = {"runtime": document.runtime, "original": document.original, "cold": row.cold, "whole": document.whole}
    return {"turn": str(row.key), "document": document.name, **numbers, "ratio": ratio, **texts}


def day_check_result(check: DayCheck, days: Sequence[ArchivedDay]) -> dg.AssetCheckResult:
    """The result of one check over the days of a run, with a row for each day."""
    verdicts = [(day.day.isoformat(), next(v for v in day.verdicts if v.check is check)) for day in days]
    rows = [dg.TableRecord({"day": day, "passed": v.passed, **{name: getattr(v, name) for name in _VERDICT_COUNTS}}) for day, v in verdicts]
    faults = [f"{day}: {fault}" for day, v in verdicts for fault in v.faults]
    span = verdicts[0][0] if len(verdicts) == 1 else f"{verdicts[0][0]} to {verdicts[-1][0]}"
    metadata: dict[str, dg.MetadataValue[Any]] = {"day": dg.MetadataValue.text(span), "days": dg.MetadataValue.table(rows)}
    if faults:
        metadata["faults"] = dg.MetadataValue.md("\n".join(f"- {fault}" for fault in faults[:_MAX_LISTED_FAULTS]))
    judged, by_rule = sum(v.judged for _, v in verdicts), sum(v.by_rule for _, v in verdicts)
    loss_note = ""
    if check is DayCheck.NO_FACT_CHANGED:
        facts, kept_facts = sum(day.facts for day in days), sum(day.facts_kept for day in days)
        metadata["facts_left_out"] = dg.MetadataValue.int(facts - kept_facts)
        loss_note = f"; in the originals alone: {facts - kept_facts} of {counted(facts, 'fact')}"
    return dg.AssetCheckResult(
        asset_key=ASSET,
        check_name=check.value,
        passed=all(v.passed for _, v in verdicts),
        severity=dg.AssetCheckSeverity.WARN if check is DayCheck.WITHIN_TARGET else dg.AssetCheckSeverity.ERROR,
        description=faults[0] if faults else f"{judged} verified" + (f", {by_rule} pruned" if by_rule else "") + loss_note,
        metadata=metadata,
    )


def stop_failure(asset: str, report: ArchiveReport | LevelReport) -> dg.Failure:
    """The failure of a run that ended early, with the counts of what is finished and its hint; the next run continues from there."""
    outcome_counts = ", ".join(f"{count} {outcome.value}" for outcome, count in report.counts.items()) or "nothing"
    metadata = {"done": outcome_counts, **({"hint": report.hint} if report.hint else {})}
    return dg.Failure(f"{asset}: {report.stopped}", metadata=metadata, allow_retries=False)
