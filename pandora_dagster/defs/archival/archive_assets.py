"""The asset of the archive's days. Knows Dagster's side of a night: partitions, tables, checks, keys; not how turns are archived."""

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

import dagster as dg

from pandora_dagster.app.archive_service import ArchiveService
from pandora_dagster.contracts.archive_records import ArchivedDay, ArchivedTurn, ArchiveReport, DayCheck
from pandora_dagster.contracts.lineage import document_id
from pandora_dagster.defs.instance import remove_keys
from pandora_dagster.defs.partitions import due_days
from pandora_dagster.defs.resources import ArchiveResource
from pandora_dagster.errors import PandoraError
from pandora_dagster.settings import Settings

ASSET, GROUP = "archived_turns", "archive"
_EVERY = 100
_LINKED = 50
"""Documents whose lineage is linked where the day is shown; its page has the others."""
_COLUMNS = [
    dg.TableColumn("turn", "string"),
    dg.TableColumn("document", "string"),
    dg.TableColumn("tokens_before", "int"),
    dg.TableColumn("tokens_after", "int"),
    dg.TableColumn("ratio", "float"),
    dg.TableColumn("facts_kept", "int"),
    dg.TableColumn("facts", "int"),
    dg.TableColumn("runtime", "string", description="who shortened it; empty where it stands whole"),
    dg.TableColumn("original", "string", description="its name inside the cold object"),
    dg.TableColumn("cold", "string", description="the cold object, below the store root"),
    dg.TableColumn("whole", "string", description="why it stands as it was"),
]
_VERDICT_COUNTS = ("judged", "faulty", "by_rule")
_DESCRIPTION = (
    "The turns last active on this day, once the whole of it lies 30 days back (PANDORA_ARCHIVE_AFTER_DAYS): documents compressed and "
    "verified, originals in cold storage. A run over days that are archived already brings back what is free again, and checks all of it."
)
_CHECKS = {
    DayCheck.NO_FACT_LOST: "Every compressed document is as it was when no critical fact of it was lost, changed or invented.",
    DayCheck.ORIGINALS_RESTORABLE: "Every cold object opens, and each original in it has its hash; one deleted by rule has its tombstone.",
    DayCheck.WITHIN_TARGET: "Every compressed document is within its target; a longer one whose facts no shorter text kept is a warning.",
    DayCheck.INDEX_AGREES: "The index says of every turn what its manifest says.",
    DayCheck.NOTHING_LEFT_BEHIND: "Every due turn is archived, or listed with the reason; one that could not be archived fails this.",
}


def archive_asset(settings: Settings) -> dg.AssetsDefinition:
    """`archived_turns`, partitioned by day; a range of days is one run."""

    @dg.multi_asset(
        name=ASSET,
        specs=[
            dg.AssetSpec(
                ASSET,
                deps=[dg.AssetDep("turn_summary", partition_mapping=dg.SpecificPartitionsPartitionMapping([]))],
                description=_DESCRIPTION,
                group_name=GROUP,
                kinds={"python"},
                code_version="1",
            )
        ],
        check_specs=[dg.AssetCheckSpec(check.value, asset=ASSET, description=_CHECKS[check]) for check in DayCheck],
        partitions_def=due_days(settings),
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    def archived_turns(
        context: dg.AssetExecutionContext, archive: dg.ResourceParam[ArchiveResource]
    ) -> Iterator[dg.MaterializeResult[Any]]:
        keys = [date.fromisoformat(key) for key in context.partition_keys]
        service = archive.open()
        try:
            report = service.run(keys, run_id=context.run.run_id, on_row=_Progress(context))
            remove_keys(context.instance, service.archived(keys))
            days = list(_day_results(context, service, keys))
        except PandoraError as error:
            hint = {"hint": error.hint} if error.hint else {}
            raise dg.Failure(f"{ASSET}: {error}", metadata=hint, allow_retries=False) from error
        if report.stopped:
            raise dg.Failure(f"{ASSET}: {report.stopped}", metadata=_stop_metadata(report), allow_retries=False)
        yield dg.MaterializeResult(asset_key=ASSET, check_results=[_result(check, days) for check in DayCheck])

    return archived_turns


class _Progress:
    """A night's progress in the log of its run."""

    def __init__(self, context: dg.AssetExecutionContext) -> None:
        self._context, self._done = context, 0

    def __call__(self, row: ArchivedTurn) -> None:
        self._done += 1
        if row.reason and row.intervention:
            self._context.log.warning(f"{row.key}: {row.reason} (intervention {row.intervention})")
        if self._done % _EVERY == 0:
            self._context.log.info(f"{self._done} turns are through")


def _day_results(context: dg.AssetExecutionContext, archive: ArchiveService, keys: Sequence[date]) -> Iterator[ArchivedDay]:
    """Each day with its metadata; of a day that is told only its sums and verdicts are kept."""
    for day in archive.days(keys):
        context.add_asset_metadata(metadata_of(day, archive), asset_key=ASSET, partition_key=day.day.isoformat())
        yield day


def metadata_of(day: ArchivedDay, archive: ArchiveService) -> dict[str, dg.MetadataValue[Any]]:
    """The table of documents, links to their lineage, the turns that stay, and the sums as numbers, so that the UI plots them over days."""
    page = archive.page(day.day)
    documents = [document_id(row.key, row.document.name) for row in day.rows[:_LINKED]] if page else []
    links = "\n".join(f"- [{document}]({archive.lineage_page(document)})" for document in documents)
    stays = "\n".join(f"- {one.key}: {one.reason}" for one in day.stays[:50])
    counts = ("turns", "documents", "compressed", "tokens_before", "tokens_after", "facts", "facts_kept", "cold_bytes")
    records = [dg.TableRecord(_record(row.key, row)) for row in day.rows]
    return {
        "documents_table": dg.MetadataValue.table(records, dg.TableSchema(_COLUMNS)),
        **({"lineage": dg.MetadataValue.url(page)} if page else {}),
        **({"lineage_of_documents": dg.MetadataValue.md(links)} if links else {}),
        **{name: dg.MetadataValue.int(getattr(day, name)) for name in counts},
        "ratio": dg.MetadataValue.float(day.ratio),
        "stays": dg.MetadataValue.int(len(day.stays)),
        **({"stay_with_reasons": dg.MetadataValue.md(stays)} if stays else {}),
        "dagster/row_count": dg.MetadataValue.int(day.documents),
    }


def _record(key: object, row: Any) -> dict[str, str | int | float | bool]:
    document = row.document
    ratio = round(document.tokens_after / document.tokens_before, 3) if document.tokens_before else 1.0
    numbers = {name: getattr(document, name) for name in ("tokens_before", "tokens_after", "facts_kept", "facts")}
    texts = {"runtime": document.runtime, "original": document.original, "cold": row.cold, "whole": document.whole}
    return {"turn": str(key), "document": document.name, **numbers, "ratio": ratio, **texts}


def _result(check: DayCheck, days: Sequence[ArchivedDay]) -> dg.AssetCheckResult:
    """One check over the days of a run, a row for each of them."""
    verdicts = [(day.day.isoformat(), next(v for v in day.verdicts if v.check is check)) for day in days]
    rows = [dg.TableRecord({"day": day, "passed": v.passed, **{name: getattr(v, name) for name in _VERDICT_COUNTS}}) for day, v in verdicts]
    faults = [f"{day}: {fault}" for day, v in verdicts for fault in v.faults]
    span = verdicts[0][0] if len(verdicts) == 1 else f"{verdicts[0][0]} to {verdicts[-1][0]}"
    shown: dict[str, dg.MetadataValue[Any]] = {"day": dg.MetadataValue.text(span), "days": dg.MetadataValue.table(rows)}
    if faults:
        shown["faults"] = dg.MetadataValue.md("\n".join(f"- {fault}" for fault in faults[:50]))
    judged, by_rule = sum(v.judged for _, v in verdicts), sum(v.by_rule for _, v in verdicts)
    return dg.AssetCheckResult(
        asset_key=ASSET,
        check_name=check.value,
        passed=all(v.passed for _, v in verdicts),
        severity=dg.AssetCheckSeverity.WARN if check is DayCheck.WITHIN_TARGET else dg.AssetCheckSeverity.ERROR,
        description=faults[0] if faults else f"{judged} looked at" + (f", {by_rule} deleted by rule" if by_rule else ""),
        metadata=shown,
    )


def _stop_metadata(report: ArchiveReport) -> dict[str, str]:
    """What a person needs who finds a night that ended early: the next one goes on from there."""
    done = ", ".join(f"{count} {outcome.value}" for outcome, count in report.counts.items()) or "nothing"
    return {"done": done, **({"hint": report.hint} if report.hint else {})}
