"""The archive in a browser on this machine, read-only: its days, the documents of a day, the lineage of a document.

The pages are made from the templates of this package, with one style and one script, and without external files. They can be read and
filtered without the script. Values are escaped by the template engine; characters that are invalid in HTML or change the direction of text
are replaced.
"""

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from pandora_dagster.api.api_errors import ApiError
from pandora_dagster.api.guard import Guard
from pandora_dagster.api.pages.page_tables import DAY_COLUMNS, DayTable, PageFilter, Tables
from pandora_dagster.app import App
from pandora_dagster.app.archive_service import ArchiveService
from pandora_dagster.app.lineage_service import LineageService
from pandora_dagster.app.verification_service import compare_texts
from pandora_dagster.archive.lineage_view import MAX_TEXTS, LineageView
from pandora_dagster.archive.text_comparison import FILTERS, STATE_LABELS, Mark
from pandora_dagster.contracts.archive_records import DayCheck
from pandora_dagster.contracts.lineage import DocumentId
from pandora_dagster.contracts.user.sources import Visit
from pandora_dagster.contracts.web.page_doc import PageDoc
from pandora_dagster.documents.visits.visit_page import field_rows, zone_label
from pandora_dagster.errors import InputError, PandoraError
from pandora_dagster.language.word_forms import counted

_TEMPLATES = Path(__file__).parent / "templates"
_INVALID_CHARACTERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_DIRECTION_MARKS = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Marks that change the direction of the following text: it would be shown in another order than it is stored."""
_CSS_CLASSES = re.compile(r"[a-z][a-z0-9_-]*(?: [a-z][a-z0-9_-]*)*")


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A run of characters under the same marks.

    `css_class` and `title` are those of the shortest mark with a class, `href` is that of the shortest link, `anchors` are the ids that
    begin here.
    """

    text: str
    css_class: str = ""
    title: str = ""
    href: str = ""
    anchors: tuple[str, ...] = ()


def render_page(template: str, *, page_filter: PageFilter | None = None, **values: object) -> str:
    """The page of a template of this package. `page_filter`: the filter of a page of a server; None for a page in a file."""
    is_served, chosen = page_filter is not None, page_filter or PageFilter()
    functions = {"pieces": _split_at_marks, "commas": _format_count, "counted": counted, "tables": Tables(chosen)}
    labels = {"state_labels": STATE_LABELS, "filters": FILTERS}
    page = {
        "policy": _content_security_policy(is_served=is_served, has_picture=bool(values.get("picture"))),
        "is_served": is_served,
        "chosen": chosen,
    }
    return _template_environment().get_template(template).render(**functions, **labels, **page, **values)


def lineage_page(lineage: LineageService, document: DocumentId) -> str:
    """The page of a document's lineage as one file, with the texts of all documents under it. Raises InputError, StoreError."""
    view = lineage.view(document)

    def link(name: str) -> str:
        return f"#{view.anchors[name]}" if name in view.anchors else ""

    return render_page("lineage.html", view=view, counts=_counts(view), max_texts=MAX_TEXTS, href=link, places=())


def verification_page(original: str, shortened: str, *, names: tuple[str, str]) -> str:
    """The page of two texts side by side, each fact with its verdict; `names` are their headings."""
    comparison = compare_texts(original, shortened)
    title = f"{names[1]} verified against {names[0]}"
    return render_page("verification.html", comparison=comparison, counts=comparison.counts, names=names, title=title)


def visit_html_page(record: Visit, page_doc: PageDoc, screenshot: bytes = b"") -> str:
    """The page of a visit as one file: fields, screenshot, zones as text, hidden zones marked; nothing of the page is loaded or linked."""
    picture = f"data:image/png;base64,{base64.b64encode(screenshot).decode()}" if screenshot else ""
    return render_page("visit.html", record=record, page=page_doc, rows=field_rows(page_doc), label=zone_label, picture=picture)


def style_sheet() -> str:
    """The style of all pages."""
    return (_TEMPLATES / "style.css").read_text(encoding="utf-8")


def script() -> str:
    """The script of all pages: it filters rows while the user types."""
    return (_TEMPLATES / "filter.js").read_text(encoding="utf-8")


def _counts(view: LineageView) -> Mapping[str, int]:
    """Facts by verdict, and units left out where the document is compared with its original."""
    comparisons = (source.comparison for block in view.blocks[:1] for source in block.sources if source.comparison)
    return next((comparison.counts for comparison in comparisons), view.totals.counts)


@cache
def _template_environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_sanitize_value,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


@cache
def _content_security_policy(*, is_served: bool, has_picture: bool) -> str:
    """The Content-Security-Policy of all pages: they load nothing but their own style and script, and a picture that is in the page
    itself; a form leads to the server only."""
    style, code = (base64.b64encode(sha256(text.encode()).digest()).decode() for text in (style_sheet(), script()))
    form = "'self'" if is_served else "'none'"
    images = "img-src data:; " if has_picture else ""
    return f"default-src 'none'; {images}style-src 'sha256-{style}'; script-src 'sha256-{code}'; base-uri 'none'; form-action {form}"


def _sanitize_value(value: object) -> object:
    """A value without characters that are invalid in HTML or change the direction of text, with Unix line ends."""
    if not isinstance(value, str) or hasattr(value, "__html__"):  # the markup of a macro is escaped already
        return value
    text = _INVALID_CHARACTERS.sub("\ufffd", value.replace("\r\n", "\n").replace("\r", "\n"))
    return _DIRECTION_MARKS.sub(lambda mark: f"<U+{ord(mark[0]):04X}>", text)


def _format_count(number: int) -> str:
    return f"{number:,}"


def _split_at_marks(text: str, marks: Sequence[Mark]) -> Iterator[TextPiece]:
    """Yield a text in pieces, each character once. Marks outside the text are left out. Raises ValueError for an invalid class."""
    length = len(text)
    valid_marks = [m for m in marks if 0 <= m.start <= m.end <= length and (m.start < m.end or m.anchor)]
    borders = sorted({0, length, *(m.start for m in valid_marks), *(m.end for m in valid_marks)})
    marks_by_start: dict[int, list[Mark]] = {}
    for mark in valid_marks:
        marks_by_start.setdefault(mark.start, []).append(mark)
    open_marks: list[Mark] = []
    for start, end in zip(borders, [*borders[1:], length], strict=True):
        new_marks = marks_by_start.get(start, [])
        open_marks = [m for m in (*open_marks, *new_marks) if m.end > start]
        shortest = sorted(open_marks, key=lambda m: m.end - m.start)
        shown_mark = next((m for m in shortest if m.kind), Mark(0, 0))
        if shown_mark.kind and not _CSS_CLASSES.fullmatch(shown_mark.kind):
            raise ValueError(f"class {shown_mark.kind!r}: expected words")
        href = next((m.href for m in shortest if m.href), "")
        yield TextPiece(text[start:end], shown_mark.kind, shown_mark.title, href, tuple(m.anchor for m in new_marks if m.anchor))


_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_VERIFY = "verify"
"""The query parameter that makes a day's page open every cold object of the day."""
PageHandler = Callable[[Request], str]


def make_pages(app: App, guard: Guard, *, dagster: str = "") -> Starlette:
    """The application of the pages. `dagster`: the address of Dagster's web UI, to whose runs the pages link; "" for no links.

    `/` lists the days, `/archive/<day>` shows the documents of a day (`?verify=1`: after opening their originals), `/lineage/<document>`
    shows the sources of a document. The parameters `verdict` and `q` filter, `sort`, `order` and `page` choose rows of a day.
    """
    archival = ArchiveService(app)

    def days_page(request: Request) -> str:
        months = [(month, tuple(days)) for month, days in groupby(archival.by_day(), key=lambda day: f"{day[0]:%Y-%m}")]
        digests = [owner for user, owner in app.lineage.index.owners() if owner == f"{user}:digest"]
        return render_page("days.html", months=months, digests=digests, href=_lineage_url, page_filter=_filter_of(request))

    def day_page(request: Request) -> str:
        originals, table = _VERIFY in request.query_params, DayTable.of(request.query_params)
        wanted = _parse_day(request.path_params["day"])
        day = next(archival.verify_days({wanted}, originals=originals, max_rows=None))

        def link(**changes: object) -> str:
            return f"?{urlencode({**dict(request.query_params), **changes})}"

        values = {"table": table, "columns": DAY_COLUMNS, "link": link, "dagster": dagster, "href": _lineage_url}
        checks = {"originals_verified": originals, "originals_check": DayCheck.ORIGINALS_RESTORABLE.value, "verify": _VERIFY}
        return render_page("day.html", day=day, page_filter=_filter_of(request), **values, **checks)

    def lineage_of(request: Request) -> str:
        document = app.lineage.resolve(request.path_params["document"], user=app.settings.user)
        view = app.lineage.view(document, is_whole=False)
        places = _places(app, document, dagster)
        values = {"counts": _counts(view), "max_texts": MAX_TEXTS, "href": _lineage_url, "places": places}
        return render_page("lineage.html", view=view, page_filter=_filter_of(request), **values)

    def guard_handler(handler: PageHandler) -> Callable[[Request], Response]:
        def respond(request: Request) -> Response:
            try:
                guard.admit(request.headers, has_body=False)
                return HTMLResponse(handler(request), headers=_HEADERS)
            except ApiError as error:
                return _error_page(error.status, str(error))
            except InputError as error:
                return _error_page(404, error.with_hint)
            except PandoraError as error:
                return _error_page(500, error.with_hint)

        return respond

    return Starlette(
        routes=[
            Route("/", guard_handler(days_page)),
            Route("/archive/{day}", guard_handler(day_page)),
            Route("/lineage/{document:path}", guard_handler(lineage_of)),
        ]
    )


def _filter_of(request: Request) -> PageFilter:
    return PageFilter(request.query_params.get("verdict", ""), request.query_params.get("q", ""))


def _lineage_url(document: str) -> str:
    return f"/lineage/{quote(document, safe=':/')}"


def _places(app: App, document: DocumentId, dagster: str) -> tuple[tuple[str, str], ...]:
    """Links from a document to the day that archived it and to the Dagster run, as label and address."""
    manifest = app.turns.manifest(document.turn.key) if document.turn else None
    record = manifest.archive if manifest else None
    if record is None:
        return ()
    run = (f"Dagster run {record.run_id[:8]}", f"{dagster}/runs/{quote(record.run_id)}") if dagster and record.run_id else ()
    return ((f"archived turns of {record.day}", f"/archive/{quote(record.day)}"), *((run,) if run else ()))


def _error_page(status: int, message: str) -> Response:
    return HTMLResponse(render_page("error.html", status=status, message=message), status_code=status, headers=_HEADERS)


def _parse_day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text[:40]!r}: not a day: expected one such as 2026-01-04") from None
