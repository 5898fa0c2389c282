"""The assets of the summary levels: session summaries and user digests; `archive` knows how they are written."""

from collections.abc import Collection, Iterator, Mapping
from datetime import date
from typing import Any

import dagster as dg

from pandora_dagster.app.archive_service import ArchiveService
from pandora_dagster.archive.level_batches import level_id
from pandora_dagster.contracts.user.summary_levels import LevelReport, LevelRow, LevelSubject
from pandora_dagster.defs.archival.archive_assets import ASSET as TURNS
from pandora_dagster.defs.archival.archive_assets import GROUP
from pandora_dagster.defs.checked_asset import checked_asset, failure
from pandora_dagster.defs.instance import due_days
from pandora_dagster.defs.resources import ArchiveResource
from pandora_dagster.errors import PandoraError
from pandora_dagster.settings import Settings

NARRATIVES, DIGESTS, CHECK = "session_summaries", "user_digests", "sources_linked"
_SHOWN = 500
_FAULTS = 50
_COLUMNS = [
    dg.TableColumn("of", "string", description="a session of a user, or a user"),
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
_LOSS_DESCRIPTIONS = {
    NARRATIVES: "Every archived turn of these sessions is linked by its session summary, with the hash of its entry, or waits for more.",
    DIGESTS: "Every session summary of these users is linked by the digest, with the hash of its text, or waits for more of them.",
}


def level_assets(settings: Settings) -> list[dg.AssetsDefinition]:
    """`session_summaries` after `archived_turns`, `user_digests` after it, by day; a range of days is one run."""
    return [_level(NARRATIVES, TURNS, settings), _level(DIGESTS, NARRATIVES, settings)]


def _level(name: str, after: str, settings: Settings) -> dg.AssetsDefinition:
    checks = {CHECK: _LOSS_DESCRIPTIONS[name]}

    @checked_asset(name, _DESCRIPTIONS[name], group=GROUP, checks=checks, deps=[after], days=due_days(settings), as_range=True)
    def level(context: dg.AssetExecutionContext, archive: dg.ResourceParam[ArchiveResource]) -> Iterator[dg.MaterializeResult[Any]]:
        keys = [date.fromisoformat(key) for key in context.partition_keys]
        rows: dict[LevelSubject, LevelRow] = {}
        service = archive.open()
        try:
            by_day = service.subjects(keys, by_user=name == DIGESTS)
            subjects = frozenset(subject for found in by_day.values() for subject in found)
            report = service.level(name, subjects, run_id=context.run.run_id, on_row=lambda row: rows.update({row.subject: row}))
            lost = list(service.lost(subjects))
        except PandoraError as error:
            raise failure(name, error) from error
        for key in keys:
            context.add_asset_metadata(_metadata(by_day.get(key, ()), rows, service), asset_key=name, partition_key=key.isoformat())
        if report.stopped:
            raise dg.Failure(f"{name}: {report.stopped}", metadata={"hint": report.hint}, allow_retries=False)
        yield dg.MaterializeResult(asset_key=name, check_results=[_result(name, keys, subjects, lost, report)])

    return level


def _metadata(
    subjects: Collection[LevelSubject], rows: Mapping[LevelSubject, LevelRow], service: ArchiveService
) -> dict[str, dg.MetadataValue[Any]]:
    """The table of a day's sessions or users, links to their lineage, and sums that the UI plots."""
    found = [rows[subject] for subject in sorted(subjects, key=str) if subject in rows]
    pages = [f"- [{row.subject}]({page})" for row in found[:_FAULTS] if row.links and (page := service.lineage_page(level_id(row.subject)))]
    before, after = sum(row.tokens_before for row in found), sum(row.tokens for row in found)
    return {
        "levels": dg.MetadataValue.table([dg.TableRecord(_record(row)) for row in found[:_SHOWN]], dg.TableSchema(_COLUMNS)),
        **({"lineage": dg.MetadataValue.md("\n".join(pages))} if pages else {}),
        "subjects": dg.MetadataValue.int(len(found)),
        "links": dg.MetadataValue.int(sum(row.links for row in found)),
        "tokens_before": dg.MetadataValue.int(before),
        "tokens_after": dg.MetadataValue.int(after),
        "ratio": dg.MetadataValue.float(round(before / after, 2) if after else 0.0),
        "dagster/row_count": dg.MetadataValue.int(len(found)),
    }


def _record(row: LevelRow) -> dict[str, str | int | float | bool]:
    numbers = {name: getattr(row, name) for name in ("links", "added", "waiting", "tokens_before", "tokens", "ratio")}
    reason = f"{row.reason} (intervention {row.intervention})" if row.intervention else row.reason
    return {"of": str(row.subject), "outcome": row.outcome.value, **numbers, "runtime": "+".join(row.runtimes), "reason": reason}


def _result(name: str, keys: list[date], subjects: Collection[LevelSubject], lost: list[str], report: LevelReport) -> dg.AssetCheckResult:
    """The check; a failed row is a lost link until the next run writes it."""
    failed = [f"{row.subject}: {row.reason} (intervention {row.intervention})" for row in report.failed]
    faults = [*failed, *lost]
    span = str(keys[0]) if len(keys) == 1 else f"{keys[0]} to {keys[-1]}"
    listed = "\n".join(f"- {fault}" for fault in faults[:_FAULTS])
    return dg.AssetCheckResult(
        asset_key=name,
        check_name=CHECK,
        passed=not faults,
        description=faults[0] if faults else f"{len(subjects)} verified",
        metadata={"day": span, "looked_at": len(subjects), **({"faults": dg.MetadataValue.md(listed)} if listed else {})},
    )
