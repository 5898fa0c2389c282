"""Research within a turn: one way out and one budget for all runs of the turn, checkpoints of its own, and the privacy of queries."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from threading import Lock
from urllib.parse import urlsplit

from pandora_dagster.app.adapters.store_adapters import open_host_records, open_page_store, open_turn_runs
from pandora_dagster.app.web.research_service import PlacesFetcher, Researcher, checked_question, open_places, open_providers
from pandora_dagster.app.web.screenshot_reader import ScreenshotReader
from pandora_dagster.app.web.turn_privacy import UserStores, query_privacy
from pandora_dagster.app.web.web_service import PageReading, PageRequest, VisitStore
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.model_calls import CallSite
from pandora_dagster.contracts.ports.measurement import Clock
from pandora_dagster.contracts.ports.recipe_execution import RecipeExecutor
from pandora_dagster.contracts.user.sources import Provenance, Research, Visit
from pandora_dagster.contracts.web.fetched import FetchedPage, RobotsAnswer
from pandora_dagster.contracts.web.page_doc import PageType
from pandora_dagster.contracts.web.research_run import ResearchOutcome, ResearchRun, VisitRecord, VisitStatus
from pandora_dagster.contracts.web.search import SearchProvider
from pandora_dagster.contracts.web.turn_research import TurnFindings, TurnQuestion
from pandora_dagster.documents.visits.visit_record import visit_id_of
from pandora_dagster.errors import DocumentError, InputError
from pandora_dagster.language.timestamps import format_timestamp
from pandora_dagster.research.addresses import page_key
from pandora_dagster.research.reading_steps import with_page
from pandora_dagster.research.research_record import age_of, outage, record_of, same_question
from pandora_dagster.retrieval.freshness import is_expired
from pandora_dagster.settings import Settings
from pandora_dagster.tools.internet_research import INTERNET_RESEARCH, InternetResearch
from pandora_dagster.tools.research_checks import GIVEN
from pandora_dagster.tools.search.query_privacy import PrivateProvider, QueryPrivacy
from pandora_dagster.tools.search.visited_pages import VisitedPages

_MAX_TURNS = 32
"""Turns of which the way out is kept; a process runs few at a time."""
_PHASE = "tool_results"
_RECORD_WAIT_S = 60.0
_OWN_QUESTION = "the question that was asked for has words of the user's memory or earlier turns; the user's own words were researched"
_FOR_A_PERSON = frozenset({PageType.LOGIN, PageType.CAPTCHA})


@dataclass(slots=True)
class WebResearcher:
    """Research over the web and folders of documents."""

    settings: Settings
    stores: UserStores
    searches: Sequence[str]
    """The search providers that turns use, as the settings name them."""
    clock: Clock
    execution: RecipeExecutor
    eyes: ScreenshotReader
    _fetchers: dict[TurnKey, PlacesFetcher] = field(default_factory=dict[TurnKey, PlacesFetcher])
    _opening: Lock = field(default_factory=Lock)

    async def research(self, asked: TurnQuestion, report: Callable[[str], None]) -> TurnFindings:
        visited = self._visits_asked(asked)
        privacy = query_privacy(self.stores, asked.turn)
        question = checked_question(asked.question)
        asked = replace(asked, question=question if visited else sendable_question(question, privacy))
        if not visited and (fresh := self._stored_research(asked, is_fresh=True)):
            report(f"answered from research of {fresh.created_at}")
            return TurnFindings(None, tuple(self._visits_of(asked.turn, fresh.webpage_cache)), fresh)
        runs, pages = open_turn_runs(self.settings, asked.turn), open_page_store(self.settings)
        read = {page_key(visit.url): visit.page for run in runs.runs() for visit in run.visits if visit.page}
        provenance = Provenance(added_at=self._now, by=INTERNET_RESEARCH.name, source_turn=asked.turn.number)
        by_turn = provenance.model_copy(update={"source_turn": None})
        visits = VisitStore(asked.turn.user, self.stores.sources, pages, by_turn, only_usable=True)
        researcher = Researcher(
            self.settings,
            asked.turn.user,
            self._providers(privacy, visited),
            self.settings.web_hosts,
            visits,
            asked.depth,
            len(visited),
            self.clock,
            self.execution,
            self.eyes,
            self._site(asked.turn),
            read,
        )
        store = runs.file(_run_id(asked, [provider.name for provider in researcher.providers]))
        fetcher = self._fetcher(asked.turn)
        pages_before, bytes_before = fetcher.spent
        with store.held():
            if (stored := store.load()) and (given := self._with_given(stored, asked, visits)) is not stored:
                store.save(given)
            run = await researcher.run(asked.question, report, fetcher, store)
        if asked.question != question:
            run = run.model_copy(update={"notices": (_OWN_QUESTION, *run.notices)})
        pages, page_bytes = fetcher.spent
        found = self._findings_or_stored(asked, run, provenance, report, is_again=bool(visited))
        return replace(found, pages=pages - pages_before, page_bytes=page_bytes - bytes_before)

    def _findings_or_stored(
        self, asked: TurnQuestion, run: ResearchRun, provenance: Provenance, report: Callable[[str], None], *, is_again: bool
    ) -> TurnFindings:
        """What the run found; stored research on the same question, however old, where pages could not be read."""
        if not is_again and (reason := outage(run)) and (stale := self._stored_research(asked, is_fresh=False)):
            notice = f"{age_of(stale, self.clock())}; pages could not be read now: {reason}"
            report(f"answered from {notice}")
            return TurnFindings(None, tuple(self._visits_of(asked.turn, stale.webpage_cache)), stale, outage=notice)
        return self._findings(asked, run, provenance)

    def release(self, turn: TurnKey) -> None:
        self._fetchers.pop(turn, None)
        open_turn_runs(self.settings, turn).delete()

    @property
    def _now(self) -> str:
        return format_timestamp(self.clock().replace(microsecond=0))

    def _site(self, turn: TurnKey) -> CallSite:
        """The turn as the caller of recipes."""
        manifest = self.stores.turns.manifest(turn)
        return CallSite(_PHASE, turn.user, manifest.session_id, turn, manifest.revision)

    def _fetcher(self, turn: TurnKey) -> PlacesFetcher:
        """The way out of a turn: its runs have one budget together, also where the turn was killed between them."""
        with self._opening:
            if turn not in self._fetchers:
                self._fetchers[turn] = open_places(self.settings, None, self._opened(), open_turn_runs(self.settings, turn).account)
                while len(self._fetchers) > _MAX_TURNS:
                    self._fetchers.pop(next(iter(self._fetchers)))
            return self._fetchers[turn]

    def _providers(self, privacy: QueryPrivacy, visited: Sequence[Visit]) -> tuple[SearchProvider, ...]:
        if visited:
            return (VisitedPages(visited),)
        return tuple(PrivateProvider(provider, privacy) for provider in self._opened())

    def _opened(self) -> tuple[SearchProvider, ...]:
        """The providers of the settings that may be used."""
        return open_providers(self.settings, self.searches, self.settings.web_hosts, self.clock)

    def _stored_research(self, asked: TurnQuestion, *, is_fresh: bool) -> Research | None:
        """The newest stored research on the same question; `is_fresh`: only where it has not expired."""
        now = self.clock()
        for row in same_question(self.stores.sources.research_rows(asked.turn.user), asked.question):
            if row.source_turn != asked.turn.number and not (is_fresh and is_expired(row.expires_at, now)):
                return self.stores.sources.research(asked.turn.user, row.topic, cache_key=row.cache_key)
        return None

    def _visits_asked(self, asked: TurnQuestion) -> tuple[Visit, ...]:
        """The visits that are made again; raises InputError for an id that no visit of the user has."""
        try:
            return tuple(self.stores.sources.visit(asked.turn.user, visit_id) for visit_id in dict.fromkeys(asked.visits))
        except DocumentError as error:
            raise InputError(f"visits: {error}: expected ids of the user's visits") from error

    def _visits_of(self, turn: TurnKey, visit_ids: Sequence[str]) -> Iterator[Visit]:
        stored = {row.visit_id for row in self.stores.sources.visit_rows(turn.user)}
        return (self.stores.sources.visit(turn.user, visit_id) for visit_id in visit_ids if visit_id in stored)

    def _with_given(self, run: ResearchRun, asked: TurnQuestion, visits: VisitStore) -> ResearchRun:
        """The run with the pages that the user gave in place of those that want a person; it is then under way again."""
        given = {visit.url: page for visit in run.visits if (page := self._given_page(visit, asked.given, visits))}
        if not given:
            return run
        others = (visit for visit in run.visits if visit.url not in given)
        begun = {"visits": (*others, *given.values()), "outcome": None, "claims": (), "decided": (), "is_enough": False}
        return run.model_copy(update=begun)

    def _given_page(self, visit: VisitRecord, given: Mapping[str, str], visits: VisitStore) -> VisitRecord | None:
        text = given.get(visit.url, "")
        if not text or not is_for_a_person(visit):
            return None
        from pandora_dagster.documents.webpages.page_reader import read_page

        url, headers = visit.url, {"content-type": "text/plain; charset=utf-8"}
        fetched = FetchedPage(url, url, 200, headers, text.encode(), self.clock(), (url,), (GIVEN,))
        page = read_page(fetched)
        visits.put(PageReading(PageRequest(url), fetched, page))
        return with_page(VisitRecord(url=url, chosen_because=visit.chosen_because, status=VisitStatus.READ, reason=GIVEN), page)

    def _findings(self, asked: TurnQuestion, run: ResearchRun, provenance: Provenance) -> TurnFindings:
        """The run with the visits that answer: of its claims' pages or, without claims, of all pages that may be used."""
        user, rows = asked.turn.user, self.stores.sources.visit_rows(asked.turn.user)
        stored = {row.visit_id for row in rows}
        cited = {claim.url for claim in run.claims}
        pages = [v.page for v in run.visits if v.page and v.status is VisitStatus.READ and (v.page.final_url in cited or not cited)]
        visits, earlier = list[Visit](), list[Visit]()
        for page in pages:
            visit_id = visit_id_of(page.url, page.retrieved_at)
            if visit_id not in stored:  # an error page, or one that is not used
                continue
            visit = self.stores.sources.visit(user, visit_id)
            visits.append(visit.model_copy(update={"provenance": provenance}))
            if older := next((row for row in rows if row.url == visit.url and row.visited_at < visit.visited_at), None):
                earlier.append(self.stores.sources.visit(user, older.visit_id))
        person_at = _person_at(run) if run.outcome is ResearchOutcome.NEEDS_PERSON else ""
        research = record_of(run, self.clock(), provenance, {visit.url: visit.visit_id for visit in visits})
        return TurnFindings(run, tuple(visits), research, tuple(earlier), person_at="" if person_at in asked.given else person_at)


def _person_at(run: ResearchRun) -> str:
    """The address that a person must open: the first page that the run says so of."""
    pages = [visit for visit in run.visits if is_for_a_person(visit)]
    named = (v.url for v in pages for notice in run.notices if v.page and notice.startswith(f"{v.page.final_url}: "))
    return next(named, pages[0].url if pages else "")


def is_for_a_person(visit: VisitRecord) -> bool:
    """Whether what was read is a login or a captcha in place of the page."""
    return visit.page is not None and visit.page.page_type in _FOR_A_PERSON


def sendable_question(question: str, privacy: QueryPrivacy) -> str:
    """The question; where it has private words that the user's own words of the turn do not have, these. Raises InputError.

    A model that has read the whole turn writes the question of a call, and the recipes that write queries read it.
    """
    return checked_question(privacy.question) if privacy.refusal(question) else question


def _run_id(asked: TurnQuestion, providers: Sequence[str]) -> str:
    parts = [asked.question, asked.depth, *providers, *asked.visits]
    return sha256("\0".join(parts).encode()).hexdigest()[:24]


def open_research_tool(
    settings: Settings,
    stores: UserStores,
    searches: Sequence[str],
    clock: Clock,
    execution: RecipeExecutor,
    eyes: ScreenshotReader,
) -> InternetResearch:
    """The tool `internet.research`, within the seconds of the settings."""
    records = open_host_records(settings)

    def robots_of(url: str) -> RobotsAnswer | None:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
        with records.hold(f"{parts.hostname}:{port}", wait_s=_RECORD_WAIT_S) as held:
            return held.record.robots

    longest_page_s = 4 * settings.web_page_s  # fetched, and then rendered in a browser
    spec = replace(INTERNET_RESEARCH, deadline_s=settings.web_max_s + longest_page_s)
    return InternetResearch(WebResearcher(settings, stores, searches, clock, execution, eyes), robots_of, spec)
