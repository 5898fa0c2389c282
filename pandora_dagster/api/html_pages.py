"""The archive in a browser on this machine, read-only: its days, the documents of a day, the lineage of a document.

The pages are made from the templates of this package, without scripts and external files. Values are escaped by the template engine;
characters that are invalid in HTML or change the direction of text are replaced.
"""

import base64
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from hashlib import sha256
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from pandora_dagster.api.api_errors import ApiError
from pandora_dagster.api.guard import Guard
from pandora_dagster.app import App
from pandora_dagster.app.archive_service import ArchiveService
from pandora_dagster.app.lineage_service import LineageService
from pandora_dagster.app.verification_service import LEGEND as VERDICTS
from pandora_dagster.app.verification_service import compare_texts
from pandora_dagster.archive.lineage_view import LEGEND, MAX_TEXTS, Mark
from pandora_dagster.contracts.archive_records import DayCheck
from pandora_dagster.contracts.lineage import DocumentId
from pandora_dagster.errors import InputError, PandoraError

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


def render_page(template: str, **values: object) -> str:
    """The page of a template of this package."""
    functions = {"policy": _content_security_policy(), "pieces": _split_at_marks, "commas": _format_count}
    return _template_environment().get_template(template).render(**functions, **values)


def lineage_page(lineage: LineageService, document: DocumentId) -> str:
    """The page of a document's lineage. Raises InputError, StoreError."""
    return render_page("lineage.html", view=lineage.view(document), legend=LEGEND, max_texts=MAX_TEXTS)


def verification_page(original: str, shortened: str, *, names: tuple[str, str]) -> str:
    """The page of two texts side by side, each fact with its verdict; `names` are their headings."""
    view = compare_texts(original, shortened, names=names)
    return render_page("verification.html", view=view, legend=VERDICTS, title=f"{names[1]} verified against {names[0]}")


def style_sheet() -> str:
    """The style of all pages."""
    return (_TEMPLATES / "style.css").read_text(encoding="utf-8")


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
def _content_security_policy() -> str:
    """The Content-Security-Policy of all pages: they load nothing but their own style."""
    digest = base64.b64encode(sha256(style_sheet().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


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


def make_pages(app: App, guard: Guard) -> Starlette:
    """The application of the pages.

    `/` lists the days, `/archive/<day>` shows the documents of a day (`?verify=1`: after opening their originals), `/lineage/<document>`
    shows the sources of a document.
    """
    archival = ArchiveService(app)

    def days_page(request: Request) -> str:
        return render_page("days.html", days=archival.by_day())

    def day_page(request: Request) -> str:
        originals = _VERIFY in request.query_params
        day = next(archival.verify_days({_parse_day(request.path_params["day"])}, originals=originals))
        return render_page(
            "day.html", day=day, originals_verified=originals, originals_check=DayCheck.ORIGINALS_RESTORABLE.value, verify=_VERIFY
        )

    def lineage_of(request: Request) -> str:
        return lineage_page(app.lineage, app.lineage.resolve(request.path_params["document"], user=app.settings.user))

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


def _error_page(status: int, message: str) -> Response:
    return HTMLResponse(render_page("error.html", status=status, message=message), status_code=status, headers=_HEADERS)


def _parse_day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text[:40]!r}: not a day: expected one such as 2026-01-04") from None
