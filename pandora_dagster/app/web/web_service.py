"""Reads pages of the web for a command: fetch, read, store. Off unless the settings or a hosts file switch it on."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pandora_dagster.app.adapters.store_adapters import open_host_records, open_page_store
from pandora_dagster.app.application import App
from pandora_dagster.app.web.page_rendering import PageReader, PageView
from pandora_dagster.app.web.screenshot_reader import unread_notice, with_notice
from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.images import EMBEDDED_PICTURE_FAULT
from pandora_dagster.contracts.ports.user_storage import SourceStore
from pandora_dagster.contracts.user.sources import Provenance, Visit
from pandora_dagster.contracts.web.fetched import FetchedPage, Fetcher, WebAccounts
from pandora_dagster.contracts.web.page_doc import PageDoc
from pandora_dagster.contracts.web.page_store import PageStore
from pandora_dagster.documents.plain_json import PlainDataError, parse_json_object
from pandora_dagster.documents.visits.visit_record import build_visit, is_usable
from pandora_dagster.errors import (
    ConfigurationError,
    DocumentError,
    FetchFailedError,
    FetchRefusedError,
    InputError,
    PandoraError,
    StoreError,
)
from pandora_dagster.settings import Settings

if TYPE_CHECKING:
    from pandora_dagster.tools.egress.web_client import WebClient

PictureReader = Callable[[PageDoc, bytes], PageDoc]
"""The page with what its screenshot says."""
_THREADS = 8
"""Hosts that are asked at the same time; each has one request at a time."""
_INSTALL_HINT = "pip install 'pandora-dagster[web]'"
_ERROR_STATUS = 400
"""From this status on the answer is no page of the site: it is shown, not stored."""
_MAX_LINE_CHARACTERS = 10_000


@dataclass(frozen=True, slots=True)
class PageRequest:
    """One address to read; `fault` where its line holds none."""

    url: str = ""
    line: int = 0
    fault: str = ""


@dataclass(frozen=True, slots=True)
class PageReading:
    """The outcome for one address: the page, or the reason why there is none."""

    request: PageRequest
    fetched: FetchedPage | None = None
    page_doc: PageDoc | None = None
    refused: str = ""
    failed: str = ""
    screenshot: bytes = b""
    """The window of a page whose text is in a picture, as PNG; else empty."""
    visit: Visit | None = None
    """The stored record; None where nothing was stored."""

    def fields(self) -> dict[str, Any]:
        """The outcome as a JSON object: `page_doc`, or the reason as `refused` or `failed`."""
        fields: dict[str, Any] = {"url": self.request.url}
        if self.request.fault:
            return {**fields, "line": self.request.line, "failed": self.request.fault}
        if self.fetched is None or self.page_doc is None:
            return {**fields, "refused": self.refused} if self.refused else {**fields, "failed": self.failed}
        fields |= {"status": self.fetched.status} | ({"visit": self.visit.visit_id} if self.visit else {})
        return {**fields, "page_doc": self.page_doc.model_dump(mode="json")}


@dataclass(frozen=True, slots=True)
class VisitStore:
    """Where the visits of one user are stored, and who stores them."""

    user: UserId
    sources: SourceStore
    pages: PageStore
    provenance: Provenance
    only_usable: bool = False
    """Whether pages of which nothing may be used are left out: no later turn refers to them."""

    def put(self, reading: PageReading) -> Visit | None:
        """Store a page that was read; None for an error page, and for one that is left out."""
        page, page_doc = reading.fetched, reading.page_doc
        if page is None or page_doc is None or page.status >= _ERROR_STATUS or (self.only_usable and not is_usable(page_doc)):
            return None
        visit = build_visit(page, page_doc, self.provenance)
        self.pages.put(self.user, visit, page_doc, page.body, reading.screenshot)
        self.sources.put(self.user, visit)
        return visit

    def known_pages(self, urls: Collection[str]) -> Mapping[str, FetchedPage]:
        """The newest stored page of each address of `urls` that its server can be asked about: one with `ETag` or `Last-Modified`."""
        known: dict[str, FetchedPage] = {}
        for row in self.sources.visit_rows(self.user):
            if row.url in urls and row.url not in known:
                with suppress(DocumentError, StoreError):  # a damaged record costs a request with a body
                    visit = self.sources.visit(self.user, row.visit_id)
                    if (page := visit.page) and (page.etag or page.last_modified):
                        headers = {"content-type": page.content_type, "etag": page.etag, "last-modified": page.last_modified}
                        body, fetched_at = self.pages.raw(self.user, visit), datetime.fromisoformat(visit.visited_at)
                        known[row.url] = FetchedPage(row.url, page.final_url, page.status, headers, body, fetched_at)
        return known


def open_visit_store(app: App, user: UserId, *, by: str = "pandora visit read", only_usable: bool = False) -> VisitStore:
    """The store of the visits that a command makes for `user`."""
    provenance = Provenance(added_at=app.dependencies.now, by=by)
    return VisitStore(user, app.dependencies.sources, open_page_store(app.settings), provenance, only_usable)


def stored_page(app: App, user: UserId, visit: Visit) -> tuple[PageDoc, bytes] | None:
    """The page of a visit as it was read, and its screenshot or b""; None where only its record is stored. Raises DocumentError."""
    pages = open_page_store(app.settings)
    return (pages.page_doc(user, visit), pages.screenshot(user, visit)) if visit.page else None


def open_fetcher(settings: Settings, hosts_file: Path | None, accounts: WebAccounts | None = None) -> Fetcher:
    """The way out to the web, with the budget of one command, or the one that `accounts` keeps; raises ConfigurationError where it is
    off or not installed."""
    if settings.web == "off" and hosts_file is None:
        raise ConfigurationError(
            "PANDORA_WEB: off: no page of the web is read",
            hint="switch it on with PANDORA_WEB=on, or name a hosts file with --hosts: docs/guides/read-web-pages.md",
        )
    try:
        from pandora_dagster.tools.egress.address_guard import AddressGuard
        from pandora_dagster.tools.egress.page_fetcher import PageFetcher
        from pandora_dagster.tools.egress.polite_client import PoliteClient
        from pandora_dagster.tools.egress.resolver import open_resolver
        from pandora_dagster.tools.egress.web_budget import WebBudget, WebLimits
    except ImportError as error:
        raise ConfigurationError(f"{error.name}: not installed: expected the extra web", hint=_INSTALL_HINT) from error
    limits = WebLimits(
        pages=settings.web_max_pages,
        hosts=settings.web_max_hosts,
        total_bytes=settings.web_max_mb * 1_000_000,
        seconds=settings.web_max_s,
        page_bytes=settings.web_page_mb * 1_000_000,
        page_seconds=settings.web_page_s,
        hops=settings.web_redirects,
        delay_s=settings.web_delay_s,
    )
    guard = AddressGuard(open_resolver(hosts_file or settings.web_hosts))
    out = PoliteClient(guard, open_web_client(settings), open_host_records(settings), limits)
    return PageFetcher(out, WebBudget(limits, accounts))


def open_web_client(settings: Settings) -> "WebClient":
    """The HTTP client under this program's name."""
    from pandora_dagster.tools.egress.robots import AGENT
    from pandora_dagster.tools.egress.web_client import WebClient

    contact = f" (+{settings.web_contact})" if settings.web_contact else ""
    return WebClient(f"{AGENT}/{version('pandora-dagster')}{contact}")


def parse_requests(lines: bytes, *, where: str) -> tuple[PageRequest, ...]:
    """The addresses of lines such as `{"url": "https://example.org/"}`; a line that is none has its fault."""
    rows = lines.split(b"\n")
    return tuple(_parse_line(row, number, where) for number, row in enumerate(rows[:-1] if not rows[-1] else rows, 1))


def _parse_line(row: bytes, number: int, where: str) -> PageRequest:
    try:
        if len(row) > _MAX_LINE_CHARACTERS:
            raise InputError(f"{len(row):,} bytes: expected at most {_MAX_LINE_CHARACTERS:,}")
        fields = parse_json_object(row)
        if set(fields) != {"url"} or not isinstance(fields["url"], str):
            raise InputError('expected one field, url, such as {"url": "https://example.org/"}')
    except (InputError, PlainDataError) as error:
        return PageRequest(line=number, fault=f"{where}:{number}: {error}")
    return PageRequest(fields["url"], number)


def read_pages(
    requests: Sequence[PageRequest],
    fetcher: Fetcher,
    *,
    seconds: float,
    visits: VisitStore | None = None,
    reader: PageReader | None = None,
    eyes: PictureReader | None = None,
) -> Iterator[PageReading]:
    """The outcomes in the order of `requests`: pages of different hosts at the same time, those of one host in turn.

    `visits`: where the pages are stored; None stores nothing. `reader`: None reads pages as they were fetched. `eyes`: reads the pictures
    of pages whose text is in them; None for the embedded runtime, which reads none. Raises StoreError where the disk refuses.
    """
    known: Mapping[str, FetchedPage] = visits.known_pages({request.url for request in requests}) if visits else {}
    stopped = Event()
    pool = ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="pandora-web")
    try:
        outcomes: list[Future[PageReading]] = [Future() for _ in requests]
        ordered = sorted(range(len(requests)), key=lambda number: _host(requests[number].url))
        for _, group in groupby(ordered, key=lambda number: _host(requests[number].url)):
            numbers = list(group)
            work = [(requests[n], outcomes[n]) for n in numbers]
            pool.submit(_read_in_turn, work, fetcher, seconds, reader, known, stopped)
        for outcome in outcomes:
            yield _store(_with_picture(outcome.result(), eyes), visits)
    finally:
        stopped.set()
        pool.shutdown(wait=False, cancel_futures=True)


def _with_picture(reading: PageReading, eyes: PictureReader | None) -> PageReading:
    """The outcome with what the screenshot says. It runs on the caller's thread, which owns the application's event loop."""
    if not reading.screenshot or reading.page_doc is None:
        return reading
    if eyes is None:
        return replace(reading, page_doc=with_notice(reading.page_doc, unread_notice(EMBEDDED_PICTURE_FAULT)))
    return replace(reading, page_doc=eyes(reading.page_doc, reading.screenshot))


def _store(reading: PageReading, visits: VisitStore | None) -> PageReading:
    """The outcome with its stored visit; a page that cannot be stored has failed."""
    try:
        return replace(reading, visit=visits.put(reading)) if visits else reading
    except DocumentError as error:
        return PageReading(reading.request, failed=f"{reading.request.url}: cannot be stored: {error}")


def _read_in_turn(
    work: Sequence[tuple[PageRequest, Future[PageReading]]],
    fetcher: Fetcher,
    seconds: float,
    reader: PageReader | None,
    known: Mapping[str, FetchedPage],
    stopped: Event,
) -> None:
    """Read the pages of one host; ends after the current page where the caller stopped."""
    for request, outcome in work:
        if stopped.is_set():
            return
        try:
            outcome.set_result(read_page_of(request, fetcher, seconds=seconds, reader=reader, known=known.get(request.url)))
        except BaseException as error:
            outcome.set_exception(error)


def read_page_of(
    request: PageRequest, fetcher: Fetcher, *, seconds: float, reader: PageReader | None = None, known: FetchedPage | None = None
) -> PageReading:
    """Fetch and read one page, in a browser where `reader` finds that it needs one. `known`: the page as it was stored before."""
    from pandora_dagster.documents.webpages.page_reader import read_page

    if request.fault:
        return PageReading(request)
    try:
        fetched = fetcher.fetch(request.url, deadline_s=seconds, known=known)
        view = reader.read(fetched) if reader else PageView(read_page(fetched))
        view.page_doc.model_dump_json()  # raises ValueError for text that no file can hold
        return PageReading(request, fetched, view.page_doc, screenshot=view.screenshot)
    except FetchRefusedError as error:
        return PageReading(request, refused=f"{error.rule}: {error}")
    except FetchFailedError as error:
        return PageReading(request, failed=str(error) + (" (a later attempt may succeed)" if error.retryable else ""))
    except PandoraError as error:
        return PageReading(request, failed=str(error))
    except Exception as error:  # a page that a library cannot digest costs itself, not the pages beside it
        return PageReading(request, failed=f"{request.url}: the page cannot be read: {type(error).__name__}: {error}"[:500])


def _host(url: str) -> str:
    """The host by which requests are grouped; the guard judges the address itself."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
