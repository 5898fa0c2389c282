"""The archive for a browser on this machine: days, the documents of a day, the lineage of each. Knows routes and markup; reads only."""

from collections.abc import Callable, Iterator
from datetime import date

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from pandora_dagster.api.guard import Guard
from pandora_dagster.api.refusals import RefusedError
from pandora_dagster.contracts.archive_days import ArchivedDay, DayCheck
from pandora_dagster.errors import InputError, PandoraError
from pandora_dagster.text.html_page import escaped, page, tagged
from pandora_dagster.wiring import House
from pandora_dagster.wiring.archival import Archival

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
Shows = Callable[[Request], str]


def make_pages(house: House, guard: Guard) -> Starlette:
    """`/` lists the days, `/archive/<day>` shows the documents of one (`?verify=1`: with its originals), `/lineage/<document>` where one
    comes from."""
    archival = Archival(house)

    def days(request: Request) -> str:
        listed = "".join(tagged("li", _link(f"/archive/{day}", f"{day}") + escaped(f"  {n} turns")) for day, n in archival.by_day())
        return page("Archive", tagged("h1", "Archive") + tagged("ul", listed or tagged("li", "no turn is archived yet")))

    def one_day(request: Request) -> str:
        originals = _VERIFY in request.query_params
        return _day_page(next(archival.days({_day(request.path_params["day"])}, originals=originals)), verified=originals)

    def lineage(request: Request) -> str:
        return house.lineage.page(house.lineage.resolve(request.path_params["document"], user=house.settings.user))

    def guarded(shows: Shows) -> Callable[[Request], Response]:
        def shown(request: Request) -> Response:
            try:
                guard.admit(request.headers, has_body=False)
                return HTMLResponse(shows(request), headers=_HEADERS)
            except RefusedError as refused:
                return _wrong(refused.status, str(refused))
            except InputError as error:
                return _wrong(404, error.with_hint)
            except PandoraError as error:
                return _wrong(500, error.with_hint)

        return shown

    return Starlette(
        routes=[
            Route("/", guarded(days)),
            Route("/archive/{day}", guarded(one_day)),
            Route("/lineage/{document:path}", guarded(lineage)),
        ]
    )


def _wrong(status: int, sentence: str) -> Response:
    return HTMLResponse(page(f"{status}", tagged("h1", escaped(sentence))), status_code=status, headers=_HEADERS)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text[:40]!r}: no day: expected one such as 2026-01-04") from None


def _day_page(day: ArchivedDay, *, verified: bool) -> str:
    ratio = f"{day.tokens_before:,} tokens became {day.tokens_after:,} ({day.ratio:.2f}); {day.facts_kept:,} of {day.facts:,} facts kept"
    head = tagged("h1", f"Archived turns of {day.day}") + tagged("p", f"{day.turns:,} turns, {day.documents:,} documents. {ratio}.")
    verdicts = "".join(
        tagged("li", escaped(f"{v.check}: {'passed' if v.passed else 'FAILED'}, {v.judged} looked at"))
        + "".join(tagged("li", escaped(fault)) for fault in v.faults)
        for v in day.verdicts
    )
    if not verified:
        verify = f"/archive/{day.day}?{_VERIFY}=1"
        verdicts += tagged("li", escaped(f"{DayCheck.ORIGINALS_RESTORABLE}: ") + _link(verify, "open every cold object of this day now"))
    heads = tagged("thead", tagged("tr", "".join(tagged("th", escaped(name)) for name in _HEADS)))
    rows = "".join(tagged("tr", "".join(map(_cell, _HEADS, cells))) for cells in _cells(day))
    more = tagged("p", f"{day.documents - len(day.rows):,} documents more.") if day.documents > len(day.rows) else ""
    stays = "".join(tagged("li", escaped(f"{one.key}: {one.reason}")) for one in day.stays[:200])
    return page(
        f"Archive {day.day}",
        tagged("p", _link("/", "all days"))
        + head
        + tagged("ul", verdicts)
        + tagged("table", heads + tagged("tbody", rows))
        + more
        + (tagged("h2", "Not archived") + tagged("ul", stays) if stays else ""),
    )


def _cell(head: str, cell: str) -> str:
    return tagged("td", cell, class_="number" if head in _NUMBERS else "")


def _cells(day: ArchivedDay) -> Iterator[tuple[str, ...]]:
    for row in day.rows:
        document = row.document
        name = f"{row.key}/{document.name}"
        ratio = f"{document.tokens_after / document.tokens_before:.2f}" if document.tokens_before else ""
        kept = escaped(document.whole) if document.whole else f"{document.facts_kept} of {document.facts}"
        yield (
            _link(f"/lineage/{name}", name),
            f"{document.tokens_before:,}",
            f"{document.tokens_after:,}",
            ratio,
            kept,
            escaped(document.runtime),
            escaped(f"{document.original} in {row.cold}"),
        )


def _link(href: str, text: str) -> str:
    return tagged("a", escaped(text), href=href)
