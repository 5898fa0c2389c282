"""Topics of one user's cached research: their state, the proof of their quotes, and their refresh.

A refresh asks the question of a topic's newest record again, as `pandora research run` does. Its queries keep the privacy rule of the turn
that asked first.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from pandora_dagster.app.adapters.store_adapters import open_page_store
from pandora_dagster.app.application import App
from pandora_dagster.app.web.web_tools import usable_searches
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.user.sources import ClaimEvidence, Provenance
from pandora_dagster.contracts.web.research_depth import Depth
from pandora_dagster.contracts.web.research_run import ResearchOutcome, ResearchRun
from pandora_dagster.contracts.web.search import SearchProvider
from pandora_dagster.errors import ConfigurationError, DocumentError, PandoraError
from pandora_dagster.research.research_loop import PAGES_OF_DEPTH
from pandora_dagster.research.research_topics import (
    OFF,
    REFRESH,
    RUN_COMMAND,
    ResearchTopic,
    TopicRow,
    due_topics,
    newest_of_topics,
    topic_row,
)
from pandora_dagster.research.verification import is_in_page

if TYPE_CHECKING:
    from pandora_dagster.app.web.research_service import Researcher

_ASKED_BY = ("internet.research", RUN_COMMAND, REFRESH)
_FOUND = frozenset({ResearchOutcome.ANSWERED, ResearchOutcome.CONTRADICTION})
_TOPIC_PAGES = PAGES_OF_DEPTH[Depth.STANDARD]


class RefreshOutcome(StrEnum):
    """What became of a topic that was due."""

    REFRESHED = "refreshed"
    KEPT = "kept"
    WAITS = "waits"


@dataclass(frozen=True, slots=True)
class TopicRefresh:
    """One due topic after a refresh. `reason`: why its old record is kept, or why it waits."""

    topic: str
    outcome: RefreshOutcome
    pages: int = 0
    """Addresses that were visited."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class QuoteVerdict:
    """Whether the words of a claim are in the stored page that it names; `fault` is "" where they are."""

    topic: str
    evidence: ClaimEvidence
    confidence: float
    fault: str


@dataclass(frozen=True, slots=True)
class TopicService:
    """The topics of one user. No other user's record is read."""

    app: App
    user: UserId

    @property
    def refusal(self) -> str:
        """Why a refresh does nothing, in one sentence; "" where it may run."""
        settings = self.app.settings
        if settings.research_refresh == OFF:
            return "PANDORA_RESEARCH_REFRESH: off: no topic is refreshed: set it to all, or to topics separated by commas"
        if self.user != settings.user:
            return f"{self.user}: no topic is refreshed: only topics of PANDORA_USER are"
        if not settings.search:
            return "PANDORA_SEARCH: none: no topic is refreshed: name a search provider"
        if not usable_searches(settings):
            return "PANDORA_WEB: off: no topic is refreshed: switch it on, or name a folder of documents in PANDORA_SEARCH"
        return ""

    def topics(self) -> tuple[TopicRow, ...]:
        """Every topic by its newest record, the newest first."""
        now, wanted = self.app.dependencies.clock(), self.app.settings.research_refresh
        return tuple(topic_row(topic, wanted, _ASKED_BY, now) for topic in self._stored_topics())

    def verify_quotes(self) -> tuple[QuoteVerdict, ...]:
        """A verdict for each claim that names the words of a stored page."""
        return tuple(
            QuoteVerdict(row.topic.topic, claim.evidence, claim.confidence, self._fault(claim.evidence))
            for row in self.topics()
            for claim in row.topic.claims
            if claim.evidence
        )

    def refresh(self, report: Callable[[str], None]) -> tuple[TopicRefresh, ...]:
        """Research the due topics again within PANDORA_RESEARCH_REFRESH_PAGES; a topic that finds nothing keeps its record.

        Raises ConfigurationError where `refusal` says so.
        """
        if self.refusal:
            raise ConfigurationError(self.refusal, hint="docs/guides/research-the-web.md")
        due = due_topics(self.topics())
        return _refresh(self.app, self.user, due, report) if due else ()

    def _stored_topics(self) -> Iterator[ResearchTopic]:
        sources = self.app.dependencies.sources
        for row, records in newest_of_topics(sources.research_rows(self.user)):
            topic = ResearchTopic(row.topic, row.cache_key, records, row.created_at, row.expires_at, row.quality_score)
            try:
                record = sources.research(self.user, row.topic)
                yield replace(topic, claims=record.claims, provenance=record.provenance)
            except DocumentError as error:
                yield replace(topic, fault=str(error))

    def _fault(self, evidence: ClaimEvidence) -> str:
        try:
            visit = self.app.dependencies.sources.visit(self.user, evidence.visit_id)
            page_doc = open_page_store(self.app.settings).page_doc(self.user, visit)
        except DocumentError as error:
            return str(error)
        return "" if is_in_page(evidence.quote, page_doc) else f"the visible text of {evidence.visit_id} does not have the words"


def _refresh(app: App, user: UserId, due: Sequence[TopicRow], report: Callable[[str], None]) -> tuple[TopicRefresh, ...]:
    """The due topics after their research, one after another; all have one budget of requests."""
    from pandora_dagster.app.web.research_service import open_places, open_providers

    settings = app.settings.model_copy(update={"web_max_pages": app.settings.research_refresh_pages})
    providers = open_providers(settings, usable_searches(settings), settings.web_hosts, app.dependencies.clock)
    fetcher = open_places(settings, None, providers)
    left, outcomes = settings.research_refresh_pages, list[TopicRefresh]()
    for row in due:
        if left < _TOPIC_PAGES:
            outcomes.append(TopicRefresh(row.topic.topic, RefreshOutcome.WAITS, 0, "the pages of this refresh are used up"))
            continue
        report(f"refresh {row.topic.topic}: {row.topic.question}")
        try:
            run = app.run(_researcher(app, user, row.topic, providers).research_topic(row.topic.question, row.topic.topic, report, fetcher))
        except PandoraError as error:
            outcomes.append(TopicRefresh(row.topic.topic, RefreshOutcome.KEPT, 0, str(error)))
            continue
        left -= len(run.visits)
        outcomes.append(_outcome(row.topic.topic, run))
    return tuple(outcomes)


def _researcher(app: App, user: UserId, topic: ResearchTopic, providers: Sequence[SearchProvider]) -> "Researcher":
    """Research for a topic; what a turn asked first keeps the privacy rule of that turn, and its number."""
    from pandora_dagster.app.web.research_service import Researcher
    from pandora_dagster.app.web.screenshot_reader import open_screenshot_reader
    from pandora_dagster.app.web.turn_privacy import UserStores, query_privacy
    from pandora_dagster.app.web.web_service import VisitStore
    from pandora_dagster.tools.search.query_privacy import PrivateProvider

    deps = app.dependencies
    turn = topic.provenance.source_turn if topic.provenance else None
    if turn:
        stores = UserStores(deps.turns, deps.index, deps.memory, deps.facts, deps.sources)
        privacy = query_privacy(stores, TurnKey(user, turn))
        providers = [PrivateProvider(provider, privacy) for provider in providers]
    provenance = Provenance(added_at=deps.now, by=REFRESH, source_turn=turn)
    visits = VisitStore(user, deps.sources, open_page_store(app.settings), provenance, only_usable=True)
    hosts, eyes = app.settings.web_hosts, open_screenshot_reader(app)
    return Researcher(app.settings, user, providers, hosts, visits, Depth.STANDARD, 0, deps.clock, deps.execution, eyes)


def _outcome(topic: str, run: ResearchRun) -> TopicRefresh:
    if run.outcome in _FOUND:
        return TopicRefresh(topic, RefreshOutcome.REFRESHED, len(run.visits))
    faults = [search.fault for search in run.searches if search.fault] + [f"{v.url}: {v.reason}" for v in run.visits if v.reason]
    reason = "; ".join((f"{run.outcome}", *dict.fromkeys(faults)))
    return TopicRefresh(topic, RefreshOutcome.KEPT, len(run.visits), reason)
