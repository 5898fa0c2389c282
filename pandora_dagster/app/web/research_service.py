"""Research for a command: providers from their specifications, visits through the way out, the checkpoint of a run."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from pandora_dagster.app.adapters.store_adapters import open_research_run_store
from pandora_dagster.app.web.page_rendering import PageReader, open_page_reader
from pandora_dagster.app.web.screenshot_reader import ScreenshotReader
from pandora_dagster.app.web.web_service import PageReading, PageRequest, VisitStore, open_fetcher, open_web_client, read_page_of
from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.model_calls import CallSite
from pandora_dagster.contracts.ports.measurement import Clock
from pandora_dagster.contracts.ports.recipe_execution import RecipeExecutor
from pandora_dagster.contracts.user.sources import Research
from pandora_dagster.contracts.web.fetched import FetchedPage, Fetcher, WebAccounts
from pandora_dagster.contracts.web.page_doc import PageDoc
from pandora_dagster.contracts.web.research_depth import Depth
from pandora_dagster.contracts.web.research_run import ResearchRun
from pandora_dagster.contracts.web.search import SearchProvider
from pandora_dagster.documents.plain_json import PlainDataError, parse_json_object
from pandora_dagster.documents.redaction.printable_text import CONTROLS
from pandora_dagster.errors import ConfigurationError, DocumentError, FetchFailedError, FetchRefusedError, InputError
from pandora_dagster.research.addresses import page_key
from pandora_dagster.research.recipe_calls import RecipeCalls
from pandora_dagster.research.research_loop import PAGES_OF_DEPTH, ResearchLoop, RunLimits
from pandora_dagster.research.research_record import answered_from, outage, record_of, same_question, stored_visits
from pandora_dagster.research.run_ports import RunStore, VisitedPage
from pandora_dagster.settings import Settings
from pandora_dagster.tools.search.folder import RULE, FolderDocuments, is_file_address, open_folder

_EXPECTED = "expected searxng=URL, folder=DIR, recorded=FILE, or an installed provider"
_MAX_QUESTION_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class ResearchRequest:
    """One question; `fault` where its line holds none."""

    id: str = ""
    question: str = ""
    fault: str = ""


@dataclass(slots=True)
class WebVisitor:
    """Visits pages through one way out; a page that the command has read is not asked for again.

    All visits run in the one thread of `thread`: a browser belongs to the thread that opened it, and takes none with an event loop.
    """

    fetcher: Fetcher
    reader: PageReader
    seconds: float
    visits: VisitStore | None
    thread: ThreadPoolExecutor
    eyes: ScreenshotReader
    """Reads the picture of a page whose text is in it; its calls run on the event loop, beside all others."""
    site: CallSite
    read: dict[str, PageDoc] = field(default_factory=dict[str, PageDoc])
    """Shared by the questions of one command."""

    async def visit(self, url: str) -> VisitedPage:
        key = page_key(url)
        if key in self.read:
            return VisitedPage(self.read[key])
        run = asyncio.get_running_loop().run_in_executor
        reading, page = await run(self.thread, self._read_page, url)
        visited = await self.eyes.read(page, reading.screenshot, self.site) if reading.screenshot else VisitedPage(page)
        if self.visits:
            await run(self.thread, self.visits.put, replace(reading, page_doc=visited.page))
        self.read[key] = visited.page
        return visited

    def _read_page(self, url: str) -> tuple[PageReading, PageDoc]:
        reader = None if is_file_address(url) else self.reader  # a document of a folder is put to no browser
        known = self.visits.known_pages({url}).get(url) if self.visits else None
        reading = read_page_of(PageRequest(url), self.fetcher, seconds=self.seconds, reader=reader, known=known)
        if reading.refused:
            rule, _, reason = reading.refused.partition(": ")
            raise FetchRefusedError(reason, rule=rule)
        if reading.page_doc is None:
            raise FetchFailedError(reading.failed)
        return reading, reading.page_doc


@dataclass(frozen=True, slots=True)
class PlacesFetcher:
    """The way to pages: documents of folders, and the web where it is open."""

    folders: Sequence[FolderDocuments]
    web: Fetcher | None

    @property
    def spent(self) -> tuple[int, int]:
        """The pages and bytes that were requested from the web so far."""
        from pandora_dagster.tools.egress.page_fetcher import PageFetcher

        return self.web.budget.spent if isinstance(self.web, PageFetcher) else (0, 0)

    def fetch(self, url: str, *, deadline_s: float, known: FetchedPage | None = None) -> FetchedPage:
        place = next((folder for folder in self.folders if folder.holds(url)), None) or self.web
        if place is None:
            raise FetchRefusedError(f"{url}: no document of a folder, and PANDORA_WEB is off", rule=RULE)
        return place.fetch(url, deadline_s=deadline_s, known=known)


def open_places(
    settings: Settings, hosts_file: Path | None, providers: Sequence[SearchProvider], accounts: WebAccounts | None = None
) -> PlacesFetcher:
    """The way to the pages of `providers`; raises ConfigurationError where one needs the web and it is off."""
    folders = [provider for provider in providers if isinstance(provider, FolderDocuments)]
    is_local = settings.web == "off" and hosts_file is None and len(folders) == len(providers)
    return PlacesFetcher(folders, None if is_local else open_fetcher(settings, hosts_file, accounts))


def open_providers(settings: Settings, specifications: Sequence[str], hosts_file: Path | None, clock: Clock) -> tuple[SearchProvider, ...]:
    """The providers of `kind=place`; raises ConfigurationError."""
    return tuple(_open_provider(settings, specification, hosts_file, clock) for specification in specifications)


def _open_provider(settings: Settings, specification: str, hosts_file: Path | None, clock: Clock) -> SearchProvider:
    from pandora_dagster.tools.plugins import open_plugin_provider
    from pandora_dagster.tools.search.recorded import open_recorded

    kind, _, place = specification.partition("=")
    if kind == "recorded" and place:
        return open_recorded(Path(place))
    if kind == "folder" and place:
        return open_folder(place, max_bytes=settings.web_page_mb * 1_000_000, clock=clock)
    if kind != "searxng" and place and (provider := open_plugin_provider(kind, place)):
        return provider
    if kind != "searxng" or not place:
        raise ConfigurationError(f"search provider {specification[:200]!r}: {_EXPECTED}")
    from pandora_dagster.tools.egress.resolver import open_resolver
    from pandora_dagster.tools.search.searxng import SearxngProvider, ServiceAddress

    try:
        parts = urlsplit(place)
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    except (ValueError, KeyError):
        raise ConfigurationError(f"search provider {place[:200]!r}: expected an http or https address") from None
    if not parts.hostname or parts.query or parts.username:
        raise ConfigurationError(f"search provider {place[:200]!r}: expected an address such as http://localhost:8888/search")
    address = ServiceAddress(parts.scheme, parts.hostname, port, parts.path or "/search")
    return SearxngProvider(address, open_web_client(settings), open_resolver(hosts_file or settings.web_hosts))


@dataclass(frozen=True, slots=True)
class Researcher:
    """Answers questions of one user with one set of providers."""

    settings: Settings
    user: UserId
    providers: Sequence[SearchProvider]
    hosts_file: Path | None
    visits: VisitStore | None
    depth: Depth
    pages: int
    """0 for what the depth gives."""
    clock: Clock
    execution: RecipeExecutor
    eyes: ScreenshotReader
    site: CallSite | None = None
    """Who calls the recipes: a turn, or None for a command."""
    read: dict[str, PageDoc] = field(default_factory=dict[str, PageDoc])

    async def research(self, question: str, report: Callable[[str], None]) -> ResearchRun:
        """The ended run of `question`. What it found is stored as cached research of the user; its checkpoint is deleted.

        Where a server or the network is out and nothing is found, stored research on the same question answers, with its age.

        Raises HaltError where a recipe call fails for good; the checkpoint stays, and the next run goes on from it with what is left of
        its budget for the web.
        """
        run = await self.research_topic(question, "", report)
        stored = self._stored_research(question) if outage(run) else None
        return answered_from(stored, run, self.clock()) if stored else run

    async def research_topic(
        self, question: str, topic: str, report: Callable[[str], None], fetcher: PlacesFetcher | None = None
    ) -> ResearchRun:
        """The ended run; its record is stored under `topic`, "" for a name after its subject.

        It has the budget of `fetcher`; without one, a budget of its own, which is kept beside the checkpoint.
        """
        store = open_research_run_store(self.settings, self.user, self._run_id(question))
        with store.held():
            fetcher = fetcher or open_places(self.settings, self.hosts_file, self.providers, store.account)
            run = await self.run(question, report, fetcher, store)
            if self.visits:
                sources = self.visits.sources
                visit_ids = stored_visits(run, {row.visit_id for row in sources.visit_rows(self.user)})
                if record := record_of(run, self.clock(), self.visits.provenance, visit_ids, topic=topic):
                    sources.put(self.user, record)
            store.delete()
        return run

    async def run(self, question: str, report: Callable[[str], None], fetcher: PlacesFetcher, store: RunStore) -> ResearchRun:
        """The ended run within the budget of `fetcher`; one that `store` has goes on. Its visits are stored, and no research."""
        site = self.site or CallSite("research", self.user)
        calls = RecipeCalls(self.execution, site, self.clock().date().isoformat())
        limits = RunLimits(self._pages, self.settings.web_max_s, self.depth)
        async with self._open_visitor(fetcher, site) as visitor:
            return await ResearchLoop(self.providers, visitor, store, limits, calls, report).run(question)

    def _stored_research(self, question: str) -> Research | None:
        """The newest record on the same question; None without one that can be read."""
        sources = self.visits.sources if self.visits else None
        if sources is None or (row := next(same_question(sources.research_rows(self.user), question), None)) is None:
            return None
        with suppress(DocumentError):  # a damaged record answers nothing
            return sources.research(self.user, row.topic, cache_key=row.cache_key)
        return None

    @property
    def _pages(self) -> int:
        return self.pages or PAGES_OF_DEPTH[self.depth]

    @asynccontextmanager
    async def _open_visitor(self, fetcher: PlacesFetcher, site: CallSite) -> AsyncGenerator[WebVisitor]:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="visits") as thread:
            opened = open_page_reader(self.settings, fetcher.web, picture_tokens=self.eyes.picture_tokens)
            reader = await loop.run_in_executor(thread, opened.__enter__)
            try:
                yield WebVisitor(fetcher, reader, self.settings.web_max_s, self.visits, thread, self.eyes, site, self.read)
            finally:
                await loop.run_in_executor(thread, opened.__exit__, None, None, None)

    def _run_id(self, question: str) -> str:
        names = [provider.name for provider in self.providers]
        return sha256("\0".join([question, self.depth.value, str(self._pages), *names]).encode()).hexdigest()[:24]


def parse_questions(lines: bytes, *, where: str) -> tuple[ResearchRequest, ...]:
    """The questions of lines such as `{"id": "q1", "question": "..."}`; a line that is none has its fault."""
    return tuple(_parse_line(row, number, where) for number, row in enumerate(lines.split(b"\n"), 1) if row.strip())


def _parse_line(row: bytes, number: int, where: str) -> ResearchRequest:
    identifier = ""
    try:
        fields = parse_json_object(row)
        identifier = str(fields.get("id", ""))[:200]
        if set(fields) != {"id", "question"} or not isinstance(fields["question"], str):
            raise InputError('expected id and question, such as {"id": "q1", "question": "What does it cost?"}')
        return ResearchRequest(identifier, checked_question(fields["question"]))
    except (InputError, PlainDataError) as error:
        return ResearchRequest(identifier, fault=f"{where}:{number}: {error}")


def checked_question(text: str) -> str:
    """The question in one line; raises InputError."""
    line = " ".join(text.split())
    if not line or len(line) > _MAX_QUESTION_CHARACTERS or CONTROLS.search(line):
        raise InputError(f"expected a question of 1 to {_MAX_QUESTION_CHARACTERS:,} characters without control characters")
    return line
