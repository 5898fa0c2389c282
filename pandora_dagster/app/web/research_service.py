"""Research for a command: providers from their specifications, visits through the way out, the checkpoint of a run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from pandora_dagster.app.store_adapters import open_research_run_store
from pandora_dagster.app.web.page_rendering import PageReader, open_page_reader
from pandora_dagster.app.web.web_service import PageRequest, VisitStore, open_fetcher, open_web_client, read_page_of
from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.ports.measurement import Clock
from pandora_dagster.contracts.web.fetched import Fetcher
from pandora_dagster.contracts.web.page_doc import PageDoc
from pandora_dagster.contracts.web.research_depth import Depth
from pandora_dagster.contracts.web.research_run import ResearchRun
from pandora_dagster.contracts.web.search import SearchProvider
from pandora_dagster.documents.plain_json import PlainDataError, parse_json_object
from pandora_dagster.errors import ConfigurationError, FetchFailedError, FetchRefusedError, InputError
from pandora_dagster.research.addresses import page_key
from pandora_dagster.research.research_loop import PAGES_OF_DEPTH, ResearchLoop, RunLimits
from pandora_dagster.research.research_record import record_of
from pandora_dagster.settings import Settings

_EXPECTED = "expected searxng=URL or recorded=FILE"
_MAX_QUESTION_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class ResearchRequest:
    """One question; `fault` where its line holds none."""

    id: str = ""
    question: str = ""
    fault: str = ""


@dataclass(slots=True)
class WebVisitor:
    """Visits pages through one way out; a page that the command has read is not asked for again."""

    fetcher: Fetcher
    reader: PageReader
    seconds: float
    visits: VisitStore | None
    read: dict[str, PageDoc] = field(default_factory=dict[str, PageDoc])
    """Shared by the questions of one command."""

    def visit(self, url: str) -> PageDoc:
        key = page_key(url)
        if key in self.read:
            return self.read[key]
        reading = read_page_of(PageRequest(url), self.fetcher, seconds=self.seconds, reader=self.reader)
        if reading.refused:
            rule, _, reason = reading.refused.partition(": ")
            raise FetchRefusedError(reason, rule=rule)
        if reading.page_doc is None:
            raise FetchFailedError(reading.failed)
        if self.visits:
            self.visits.put(reading)
        self.read[key] = reading.page_doc
        return reading.page_doc


def open_providers(settings: Settings, specifications: Sequence[str], hosts_file: Path | None) -> tuple[SearchProvider, ...]:
    """The providers of `kind=place`; raises ConfigurationError."""
    if not specifications:
        raise ConfigurationError(f"--provider: no search provider is named: {_EXPECTED}")
    return tuple(_open_provider(settings, specification, hosts_file) for specification in specifications)


def _open_provider(settings: Settings, specification: str, hosts_file: Path | None) -> SearchProvider:
    from pandora_dagster.tools.search.recorded import open_recorded

    kind, _, place = specification.partition("=")
    if kind == "recorded" and place:
        return open_recorded(Path(place))
    if kind != "searxng" or not place:
        raise ConfigurationError(f"--provider: {specification[:200]!r}: {_EXPECTED}")
    from pandora_dagster.tools.egress.resolver import open_resolver
    from pandora_dagster.tools.search.searxng import SearxngProvider, ServiceAddress

    try:
        parts = urlsplit(place)
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    except (ValueError, KeyError):
        raise ConfigurationError(f"--provider: {place[:200]!r}: expected an http or https address") from None
    if not parts.hostname or parts.query or parts.username:
        raise ConfigurationError(f"--provider: {place[:200]!r}: expected an address such as http://localhost:8888/search")
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
    read: dict[str, PageDoc] = field(default_factory=dict[str, PageDoc])

    def research(self, question: str, report: Callable[[str], None]) -> ResearchRun:
        """The ended run of `question`. What it found is stored as cached research of the user; its checkpoint is deleted."""
        fetcher = open_fetcher(self.settings, self.hosts_file)
        pages = self.pages or PAGES_OF_DEPTH[self.depth]
        store = open_research_run_store(self.settings, self.user, self._run_id(question, pages))
        with open_page_reader(self.settings, fetcher) as reader:
            visitor = WebVisitor(fetcher, reader, self.settings.web_max_s, self.visits, self.read)
            run = ResearchLoop(self.providers, visitor, store, RunLimits(pages, self.settings.web_max_s), report).run(question)
        if self.visits and (record := record_of(run, self.clock(), self.visits.provenance)):
            self.visits.sources.put(self.user, record)
        store.delete()
        return run

    def _run_id(self, question: str, pages: int) -> str:
        names = [provider.name for provider in self.providers]
        return sha256("\0".join([question, str(pages), *names]).encode()).hexdigest()[:24]


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
    if not line or len(line) > _MAX_QUESTION_CHARACTERS or not line.isprintable():
        raise InputError(f"a question of 1 to {_MAX_QUESTION_CHARACTERS:,} printable characters was expected")
    return line
