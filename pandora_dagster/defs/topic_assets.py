# pyright: reportUnknownMemberType=false
# (signatures of dg.schedule and dg.define_asset_job name a bare PathLike)
"""Topics of PANDORA_USER's cached research in Dagster: the asset with its checks, and the schedule that refreshes them where it is on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import dagster as dg

from pandora_dagster.defs.checked_asset import checked_asset, failure
from pandora_dagster.defs.resources import ResearchResource
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.errors import PandoraError
from pandora_dagster.language.word_forms import counted
from pandora_dagster.research.research_topics import OFF, RefreshState, TopicRow, topic_fields
from pandora_dagster.settings import Settings

if TYPE_CHECKING:
    from pandora_dagster.app.web.topic_service import QuoteVerdict, TopicRefresh, TopicService

ASSET, JOB, SCHEDULE = "research_topics", "research_refresh", "nightly_research_refresh"
READABLE, VERBATIM, REFRESHED = "records_readable", "quotes_verbatim", "refresh_complete"
_CRON = "0 4 * * *"
"""After nightly archival, which needs the same models."""
_MAX_TABLE_ROWS = 500
_MAX_CELL_CHARACTERS = 300
_CHECKS = {
    READABLE: "The newest record of each topic can be read.",
    VERBATIM: "Each claim that names the words of a stored page has them in the visible text of that page.",
    REFRESHED: "Each topic that this run researched again has a new record; one that found nothing keeps its old record.",
}

REFRESH_JOB = dg.define_asset_job(
    JOB,
    selection=[ASSET],
    description="Lists the topics of cached research; the schedule's runs research those again that are about to expire.",
)


class TopicsConfig(dg.Config):
    """What a run does beside listing the topics."""

    refresh: bool = False
    """Whether the topics that are due are researched again; needs PANDORA_RESEARCH_REFRESH."""


def topics_asset() -> dg.AssetsDefinition:
    """`research_topics`: lists the topics; with `refresh` in its configuration researches those again that are due."""

    @checked_asset(
        ASSET,
        "Cached research of PANDORA_USER by topic: records, claims, quality, freshness, expiry, and what a refresh does with it. "
        "A run with `refresh: true` researches the due topics again, as `pandora research run` does.",
        group="research",
        checks=_CHECKS,
    )
    def research_topics(
        context: dg.AssetExecutionContext, config: TopicsConfig, research: dg.ResourceParam[ResearchResource]
    ) -> Iterator[dg.MaterializeResult[Any]]:
        try:
            service = research.open()
            context.instance.add_run_tags(context.run.run_id, {"pandora/user": service.user})  # an erasure of the user deletes the run
            refreshed = service.refresh(context.log.info) if config.refresh else ()
            rows, verdicts = service.topics(), service.verify_quotes()
        except PandoraError as error:
            raise failure(ASSET, error) from error
        checks = (_readable_check(rows), _verbatim_check(verdicts, rows), _refreshed_check(refreshed))
        yield dg.MaterializeResult(
            asset_key=ASSET,
            metadata=_metadata(rows, verdicts, refreshed, service.refusal),
            check_results=[
                dg.AssetCheckResult(
                    asset_key=ASSET,
                    check_name=name,
                    passed=not faults,
                    severity=dg.AssetCheckSeverity.WARN,
                    description=redact("; ".join(faults) or description),
                )
                for name, faults, description in checks
            ],
        )

    return research_topics


_Check = tuple[str, list[str], str]
"""Its name, its faults, and its description where there are none."""


def _readable_check(rows: Sequence[TopicRow]) -> _Check:
    return READABLE, [row.topic.fault for row in rows if row.topic.fault], f"{counted(len(rows), 'topic')} read"


def _verbatim_check(verdicts: Sequence["QuoteVerdict"], rows: Sequence[TopicRow]) -> _Check:
    without = sum(len(row.topic.claims) - row.quotes for row in rows)
    description = f"{counted(len(verdicts), 'quote')} verified; {counted(without, 'claim')} without a stored page"
    return VERBATIM, [f"{verdict.topic}: {verdict.fault}" for verdict in verdicts if verdict.fault], description


def _refreshed_check(refreshed: Sequence["TopicRefresh"]) -> _Check:
    kept = [f"{topic.topic}: {topic.outcome}: {topic.reason}" for topic in refreshed if topic.outcome == "kept"]
    return REFRESHED, kept, f"{counted(len(refreshed), 'due topic')}"


def _metadata(
    rows: Sequence[TopicRow], verdicts: Sequence["QuoteVerdict"], refreshed: Sequence["TopicRefresh"], refusal: str
) -> dict[str, dg.MetadataValue[Any]]:
    claims = [
        {
            "topic": verdict.topic,
            "value": verdict.evidence.value,
            "quote": verdict.evidence.quote,
            "address": verdict.evidence.url,
            "confidence": verdict.confidence,
            "fault": verdict.fault,
        }
        for verdict in verdicts
    ]
    topics = [topic_fields(row, refusal) for row in rows]
    tables = {"topics": topics, "claims": claims, "refreshed": [asdict(topic) for topic in refreshed]}
    return {
        **{name: _table(table) for name, table in tables.items() if table},
        "topic_count": dg.MetadataValue.int(len(rows)),
        "expired": dg.MetadataValue.int(sum(row.expired for row in rows)),
        "due": dg.MetadataValue.int(sum(row.state is RefreshState.DUE for row in rows)),
        "claim_count": dg.MetadataValue.int(sum(len(row.topic.claims) for row in rows)),
        "quotes_at_fault": dg.MetadataValue.int(sum(bool(verdict.fault) for verdict in verdicts)),
    }


def _table(rows: Sequence[Mapping[str, Any]]) -> dg.MetadataValue[Any]:
    shown = [
        dg.TableRecord({name: _cell(redact(str(value))) if isinstance(value, str) else value for name, value in row.items()})
        for row in rows[:_MAX_TABLE_ROWS]
    ]
    return dg.MetadataValue.table(shown, dg.TableSchema([dg.TableColumn(name, "any") for name in rows[0]]))


def _cell(text: str) -> str:
    """The text; of a long one its beginning, with the number of characters that follow. Dagster stores plain strings, no enums."""
    rest = len(text) - _MAX_CELL_CHARACTERS
    return f"{text[:_MAX_CELL_CHARACTERS]} ... ({rest:,} more characters)" if rest > 0 else text


def refresh_schedule(settings: Settings) -> dg.ScheduleDefinition:
    """`nightly_research_refresh`: enabled where PANDORA_RESEARCH_REFRESH is not `off`; without a due topic there is no run."""
    is_on = settings.research_refresh != OFF

    @dg.schedule(
        name=SCHEDULE,
        job_name=JOB,
        cron_schedule=_CRON,
        execution_timezone=settings.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING if is_on else dg.DefaultScheduleStatus.STOPPED,
        description="Researches topics again that expire within 24 hours; stopped where PANDORA_RESEARCH_REFRESH is off.",
    )
    def nightly_research_refresh(
        context: dg.ScheduleEvaluationContext, research: dg.ResourceParam[ResearchResource]
    ) -> dg.RunRequest | dg.SkipReason:
        try:
            service = research.open()
            reason = service.refusal or _nothing_due(service)
        except PandoraError as error:
            raise failure(SCHEDULE, error) from error
        if reason:
            return dg.SkipReason(reason)
        run_config = dg.RunConfig(ops={ASSET: TopicsConfig(refresh=True)})
        return dg.RunRequest(run_key=f"{context.scheduled_execution_time:%Y-%m-%d}", run_config=run_config)

    return nightly_research_refresh


def _nothing_due(service: "TopicService") -> str:
    """A sentence where no topic is due, else ""."""
    return "" if any(row.state is RefreshState.DUE for row in service.topics()) else "no topic is about to expire"
