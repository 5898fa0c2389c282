"""The archive for a browser on this machine: days, the documents of a day, the lineage of each. Knows routes and markup; reads only."""

from collections.abc import Callable, Iterator
from datetime import date

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from pandora_dagster.api.api_errors import ApiError
from pandora_dagster.api.guard import Guard
from pandora_dagster.app import App
from pandora_dagster.app.archive_service import ArchiveService
from pandora_dagster.contracts.archive_records import ArchivedDay, DayCheck
from pandora_dagster.documents.html_page import element, escape, page
from pandora_dagster.errors import InputError, PandoraError

_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_HEADS = ("document", "tokens", "after", "ratio", "facts kept", "shortened by", "original")
_VERIFY = "verify"
"""What a day's page is asked with to open every cold object of the day."""
_NUMBERS = frozenset({"tokens", "after", "ratio"})
PageHandler = Callable[[Request], str]


def make_pages(app: App, guard: Guard) -> Starlette:
    """`/` lists the days, `/archive/<day>` shows the documents of one (`?verify=1`: with its originals), `/lineage/<document>` where one
    comes from."""
    archival = ArchiveService(app)

    def days(request: Request) -> str:
        listed = "".join(element("li", _link(f"/archive/{day}", f"{day}") + escape(f"  {n} turns")) for day, n in archival.by_day())
        return page("Archive", element("h1", "Archive") + element("ul", listed or element("li", "no turn is archived yet")))

    def one_day(request: Request) -> str:
        originals = _VERIFY in request.query_params
        return _day_page(next(archival.days({_day(request.path_params["day"])}, originals=originals)), verified=originals)

    def lineage(request: Request) -> str:
        return app.lineage.page(app.lineage.resolve(request.path_params["document"], user=app.settings.user))

    def guarded(shows: PageHandler) -> Callable[[Request], Response]:
        def shown(request: Request) -> Response:
            try:
                guard.admit(request.headers, has_body=False)
                return HTMLResponse(shows(request), headers=_HEADERS)
            except ApiError as refused:
                return _error_page(refused.status, str(refused))
            except InputError as error:
                return _error_page(404, error.with_hint)
            except PandoraError as error:
                return _error_page(500, error.with_hint)

        return shown

    return Starlette(
        routes=[
            Route("/", guarded(days)),
            Route("/archive/{day}", guarded(one_day)),
            Route("/lineage/{document:path}", guarded(lineage)),
        ]
    )


def _error_page(status: int, sentence: str) -> Response:
    return HTMLResponse(page(f"{status}", element("h1", escape(sentence))), status_code=status, headers=_HEADERS)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text[:40]!r}: no day: expected one such as 2026-01-04") from None


def _day_page(day: ArchivedDay, *, verified: bool) -> str:
    ratio = f"{day.tokens_before:,} tokens became {day.tokens_after:,} ({day.ratio:.2f}); {day.facts_kept:,} of {day.facts:,} facts kept"
    head = element("h1", f"Archived turns of {day.day}") + element("p", f"{day.turns:,} turns, {day.documents:,} documents. {ratio}.")
    verdicts = "".join(
        element("li", escape(f"{v.check}: {'passed' if v.passed else 'FAILED'}, {v.judged} looked at"))
        + "".join(element("li", escape(fault)) for fault in v.faults)
        for v in day.verdicts
    )
    if not verified:
        verify = f"/archive/{day.day}?{_VERIFY}=1"
        verdicts += element("li", escape(f"{DayCheck.ORIGINALS_RESTORABLE}: ") + _link(verify, "open every cold object of this day now"))
    heads = element("thead", element("tr", "".join(element("th", escape(name)) for name in _HEADS)))
    rows = "".join(element("tr", "".join(map(_cell, _HEADS, cells))) for cells in _cells(day))
    more = element("p", f"{day.documents - len(day.rows):,} documents more.") if day.documents > len(day.rows) else ""
    stays = "".join(element("li", escape(f"{one.key}: {one.reason}")) for one in day.stays[:200])
    return page(
        f"Archive {day.day}",
        element("p", _link("/", "all days"))
        + head
        + element("ul", verdicts)
        + element("table", heads + element("tbody", rows))
        + more
        + (element("h2", "Not archived") + element("ul", stays) if stays else ""),
    )


def _cell(head: str, cell: str) -> str:
    return element("td", cell, class_="number" if head in _NUMBERS else "")


def _cells(day: ArchivedDay) -> Iterator[tuple[str, ...]]:
    for row in day.rows:
        document = row.document
        name = f"{row.key}/{document.name}"
        ratio = f"{document.tokens_after / document.tokens_before:.2f}" if document.tokens_before else ""
        kept = escape(document.whole) if document.whole else f"{document.facts_kept} of {document.facts}"
        yield (
            _link(f"/lineage/{name}", name),
            f"{document.tokens_before:,}",
            f"{document.tokens_after:,}",
            ratio,
            kept,
            escape(document.runtime),
            escape(f"{document.original} in {row.cold}"),
        )


def _link(href: str, text: str) -> str:
    return element("a", escape(text), href=href)
