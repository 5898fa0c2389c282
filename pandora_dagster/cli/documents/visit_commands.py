"""The commands `visit read`, which reads pages of the web, and `visit show`."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.app_context import AsJson, User, app_of, app_of_existing_store, settings_of
from pandora_dagster.cli.documents.text_input import read_bytes
from pandora_dagster.cli.output import (
    EXIT_FAILED,
    EXIT_USAGE,
    exit_with,
    print_json,
    print_json_line,
    print_line,
    print_markdown,
    print_note,
    progress_bar,
    write_page,
)
from pandora_dagster.language.word_forms import counted

if TYPE_CHECKING:
    from pandora_dagster.app.web.web_service import PageReading, PageRequest, PictureReader, VisitStore
    from pandora_dagster.contracts.web.page_doc import PageDoc

HostsFile = Annotated[
    Path | None,
    typer.Option("--hosts", help="A hosts file in place of the resolver, default PANDORA_WEB_HOSTS; it also switches the web on."),
]


def read_visit(
    context: typer.Context,
    url: Annotated[str, typer.Argument(help="An http or https address.")] = "",
    jsonl: Annotated[
        str, typer.Option("--jsonl", help='A file of JSON lines with url, such as {"url": "https://example.org/"}; - for stdin.')
    ] = "",
    hosts: HostsFile = None,
    no_store: Annotated[bool, typer.Option("--no-store", help="Store no visit.")] = False,
    user: User = "",
    as_json: AsJson = False,
) -> None:
    """Read a page of the web and store it as a visit.

    Off unless PANDORA_WEB=on or --hosts is given. Only public addresses are asked, robots.txt and its delays are obeyed, a host has one
    request at a time, and pages, bytes and seconds have limits (PANDORA_WEB_...). Text that a visitor of the page does not see is kept
    apart. A page whose content comes from scripts or is behind a consent dialogue is rendered in Chromium (PANDORA_BROWSER). Where the text
    of a page is in a picture, a model of the layer EYES reads a screenshot. A page with an error status is shown and not stored. The exit
    code is 1 where a page was refused or failed.

    --jsonl prints one line for each line, in order: url, and page_doc with status and visit, or the reason as refused (a rule forbids it)
    or failed (the server, the network or the page). For a line without an address, the printed one has its number as line.

    Example: pandora visit read https://example.org/

    Example: pandora visit read --jsonl addresses.jsonl --no-store > pages.jsonl
    """
    from pandora_dagster.app.web.web_service import PageRequest, parse_requests

    if bool(url) == bool(jsonl):
        exit_with(EXIT_USAGE, "visit read: expected either URL or --jsonl")
    requests = parse_requests(read_bytes(jsonl), where=jsonl) if jsonl else (PageRequest(url),)
    with _open_visits(context, user, stores=not no_store) as (visits, eyes):
        readings = _read(context, requests, hosts, visits, eyes, shows_progress=bool(jsonl))
        if jsonl:
            failures = 0
            for reading in readings:
                failures += reading.page_doc is None
                print_json_line(reading.fields())
            if failures:
                exit_with(EXIT_FAILED, f"{failures} of {counted(len(requests), 'page')} not read")
        else:
            _print_reading(next(readings), as_json=as_json)


@dataclass(frozen=True)
class _Eyes:
    """What reads the pictures of pages, and what one of them may cost; None for the embedded runtime, which reads none."""

    read: "PictureReader | None" = None
    picture_tokens: int = 0


@contextmanager
def _open_visits(context: typer.Context, user: str, *, stores: bool) -> "Generator[tuple[VisitStore | None, _Eyes]]":
    """The visits of `user`, None where the command stores nothing, and the reader of pictures."""
    if not stores and settings_of(context).runtime == "extractive":
        yield None, _Eyes()
        return
    from pandora_dagster.app.web.screenshot_reader import open_screenshot_reader
    from pandora_dagster.app.web.web_service import open_visit_store
    from pandora_dagster.contracts.model_calls import CallSite

    with app_of(context) as app:
        owner, eyes = app.owner(user), open_screenshot_reader(app)

        def read(page: "PageDoc", screenshot: bytes) -> "PageDoc":
            return app.run(eyes.read(page, screenshot, CallSite("visit", owner))).page

        yield open_visit_store(app, owner) if stores else None, _Eyes(read, eyes.picture_tokens)


def _read(
    context: typer.Context,
    requests: "tuple[PageRequest, ...]",
    hosts: Path | None,
    visits: "VisitStore | None",
    eyes: _Eyes,
    *,
    shows_progress: bool,
) -> "Iterator[PageReading]":
    """The outcomes in order, with progress on stderr."""
    from pandora_dagster.app.web.page_rendering import open_page_reader
    from pandora_dagster.app.web.web_service import open_fetcher, read_pages

    settings = settings_of(context)
    fetcher = open_fetcher(settings, hosts)
    with open_page_reader(settings, fetcher, picture_tokens=eyes.picture_tokens) as reader:
        readings = read_pages(requests, fetcher, seconds=settings.web_max_s, visits=visits, reader=reader, eyes=eyes.read)
        if not shows_progress:
            yield from readings
            return
        with progress_bar("read", "pages") as advance:
            for number, reading in enumerate(readings, 1):
                advance(number, len(requests))
                yield reading


def _print_reading(reading: "PageReading", *, as_json: bool) -> None:
    from pandora_dagster.documents.visits.visit_page import page_doc_page

    if as_json:
        print_json(reading.fields())
    elif reading.page_doc:
        print_markdown(page_doc_page(reading.page_doc))
    if reading.page_doc is None:
        exit_with(EXIT_FAILED, f"refused: {reading.refused}" if reading.refused else f"failed: {reading.failed}")
    if not as_json and reading.visit:
        print_note(f"stored as {reading.visit.visit_id}; show it again with: pandora visit show {reading.visit.visit_id}")


def show_visit(
    context: typer.Context,
    visit_id: Annotated[str, typer.Argument(help="An id that `pandora visit list` shows.")],
    html: Annotated[
        Path | None, typer.Option("--html", help="Write an HTML page to this file: the page in zones, hidden text marked.")
    ] = None,
    user: User = "",
    as_json: AsJson = False,
) -> None:
    """Show a visited page: its record, or the page in zones.

    A page that `visit read` stored is shown as it was read, with hidden text marked; --json adds it to the record as page_doc.

    Example: pandora visit show visit_abc123 --user example
    """
    from pandora_dagster.app.web.web_service import stored_page
    from pandora_dagster.documents.visits.visit_page import page_doc_page
    from pandora_dagster.phases.gather.research_pages import visit_page

    if html and as_json:
        exit_with(EXIT_USAGE, "--html: expected it without --json")
    with app_of_existing_store(context) as app:
        owner = app.owner(user)
        record = app.dependencies.sources.visit(owner, visit_id)
        stored = stored_page(app, owner, record)
    page_doc = stored[0] if stored else None
    if html:
        if stored is None:
            exit_with(EXIT_USAGE, f"--html: {visit_id}: no page is stored with it: expected a visit that `pandora visit read` made")
        from pandora_dagster.api.pages.html_pages import visit_html_page

        print_line(write_page(html, visit_html_page(record, *stored)))
    elif as_json:
        fields = record.model_dump(mode="json", exclude_none=True)
        print_json(fields | ({"page_doc": page_doc.model_dump(mode="json")} if page_doc else {}))
    else:
        print_markdown(page_doc_page(page_doc) if page_doc else visit_page(record))
