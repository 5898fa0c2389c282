"""The assets of the summary levels by day: session summaries (L2) and user digests (L3). The package `archive` writes them."""

from collections.abc import Collection, Iterator, Mapping
from datetime import date
from typing import Any

import dagster as dg

from pandora_dagster.app.archive_service import ArchiveService
from pandora_dagster.archive.level_batches import level_id
from pandora_dagster.contracts.user.summary_levels import LevelReport, LevelRow, LevelSubject
from pandora_dagster.defs.archival.archive_assets import ASSET as ARCHIVED_TURNS
from pandora_dagster.defs.archival.archive_assets import GROUP, stop_failure
from pandora_dagster.defs.checked_asset import checked_asset, failure
from pandora_dagster.defs.instance import ARCHIVAL_DAYS
from pandora_dagster.defs.resources import ArchiveResource
from pandora_dagster.errors import PandoraError

NARRATIVES, DIGESTS, CHECK = "session_summaries", "user_digests", "sources_linked"
_MAX_TABLE_ROWS = 500
_MAX_LISTED = 50
"""Faults, and links to lineage, in the metadata."""
_COLUMNS = [
    dg.TableColumn("of", "string", description="the document: a narrative of a session, or a digest of a user"),
    dg.TableColumn("outcome", "string"),
    dg.TableColumn("links", "int", description="turns of a narrative, narratives of a digest"),
    dg.TableColumn("added", "int"),
    dg.TableColumn("waiting", "int", description="parts that wait for more of them, or for the end of the session"),
    dg.TableColumn("tokens_before", "int"),
    dg.TableColumn("tokens", "int"),
    dg.TableColumn("ratio", "float", description="tokens before per token after"),
    dg.TableColumn("runtime", "string"),
    dg.TableColumn("reason", "string"),
]
_DESCRIPTIONS = {
    NARRATIVES: "Level L2: a summary of each session with turns archived on this day, linked to every turn by hash.",
    DIGESTS: "Level L3: a digest of all conversations of each of these users, linked to every session summary by hash.",
}
_CHECK_DESCRIPTIONS = {
    NARRATIVES: "Every archived turn of these sessions is linked by its session summary, with the hash of its entry, or waits for more.",
    DIGESTS: "Every session summary of these users is linked by the digest, with the hash of its text, or waits for more of them.",
}


def level_assets() -> list[dg.AssetsDefinition]:
    """`session_summaries` after `archived_turns`, `user_digests` after it, by day; a range of days is one run."""
    return [_level_asset(NARRATIVES, ARCHIVED_TURNS), _level_asset(DIGESTS, NARRATIVES)]


def _level_asset(name: str, after: str) -> dg.AssetsDefinition:
    """The asset of one level, which depends on the asset `after`."""
    checks = {CHECK: _CHECK_DESCRIPTIONS[name]}

    @checked_asset(name, _DESCRIPTIONS[name], group=GROUP, checks=checks, deps=[after], partitions=ARCHIVAL_DAYS, single_run=True)
    def level(context: dg.AssetExecutionContext, archive: dg.ResourceParam[ArchiveResource]) -> Iterator[dg.MaterializeResult[Any]]:
        days = sorted(date.fromisoformat(key) for key in context.partition_keys)
        rows: dict[LevelSubject, LevelRow] = {}
        service = archive.open()
        try:
            by_day = service.subjects(days, by_user=name == DIGESTS)
            subjects = frozenset(subject for day_subjects in by_day.values() for subject in day_subjects)
            report = service.update_level(name, subjects, run_id=context.run.run_id, on_row=lambda row: rows.update({row.subject: row}))
            lost_links = list(service.source_faults(subjects))
        except PandoraError as error:
            raise failure(name, error) from error
        for day in days:
            context.add_asset_metadata(level_metadata(by_day.get(day, ()), rows, service), asset_key=name, partition_key=day.isoformat())
        if report.stopped:
            raise stop_failure(name, report)
        yield dg.MaterializeResult(asset_key=name, check_results=[level_check_result(name, days, subjects, lost_links, report)])

    return level


def level_metadata(
    subjects: Collection[LevelSubject], rows: Mapping[LevelSubject, LevelRow], service: ArchiveService
) -> dict[str, dg.MetadataValue[Any]]:
    """The table of a day's sessions or users, links to their lineage, and sums that the UI plots."""
    day_rows = [rows[subject] for subject in sorted(subjects, key=str) if subject in rows]
    pages = [
        f"- [{level_id(row.subject)}]({page})"
        for row in day_rows[:_MAX_LISTED]
        if row.links and (page := service.lineage_page(level_id(row.subject)))
    ]
    tokens_before, tokens_after = sum(row.tokens_before for row in day_rows), sum(row.tokens for row in day_rows)
    return {
        "levels": dg.MetadataValue.table([dg.TableRecord(_table_row(row)) for row in day_rows[:_MAX_TABLE_ROWS]], dg.TableSchema(_COLUMNS)),
        **({"lineage": dg.MetadataValue.md("\n".join(pages))} if pages else {}),
        "subjects": dg.MetadataValue.int(len(day_rows)),
        "links": dg.MetadataValue.int(sum(row.links for row in day_rows)),
        "tokens_before": dg.MetadataValue.int(tokens_before),
        "tokens_after": dg.MetadataValue.int(tokens_after),
        "ratio": dg.MetadataValue.float(round(tokens_before / tokens_after, 2) if tokens_after else 0.0),
        "dagster/row_count": dg.MetadataValue.int(len(day_rows)),
    }


def _table_row(row: LevelRow) -> dict[str, str | int | float | bool]:
    numbers = {name: getattr(row, name) for name in ("links", "added", "waiting", "tokens_before", "tokens", "ratio")}
    reason = f"{row.reason} (intervention {row.intervention})" if row.intervention else row.reason
    return {"of": level_id(row.subject), "outcome": row.outcome.value, **numbers, "runtime": "+".join(row.runtimes), "reason": reason}


def level_check_result(
    name: str, days: list[date], subjects: Collection[LevelSubject], lost_links: list[str], report: LevelReport
) -> dg.AssetCheckResult:
    """The check that no link is lost; a level that failed to be written counts as lost until the next run writes it."""
    failed = [f"{level_id(row.subject)}: {row.reason} (intervention {row.intervention})" for row in report.failed]
    faults = [*failed, *lost_links]
    span = str(days[0]) if len(days) == 1 else f"{days[0]} to {days[-1]}"
    listed = "\n".join(f"- {fault}" for fault in faults[:_MAX_LISTED])
    return dg.AssetCheckResult(
        asset_key=name,
        check_name=CHECK,
        passed=not faults,
        description=faults[0] if faults else f"{len(subjects)} verified",
        metadata={"day": span, "looked_at": len(subjects), **({"faults": dg.MetadataValue.md(listed)} if listed else {})},
    )
