"""The archive in a browser on this machine: its days, the documents of a day, the lineage of a document. Read-only."""

from collections.abc import Callable
from datetime import date

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from pandora_dagster.api.api_errors import ApiError
from pandora_dagster.api.guard import Guard
from pandora_dagster.api.html_pages import lineage_page, render_page
from pandora_dagster.app import App
from pandora_dagster.app.archive_service import ArchiveService
from pandora_dagster.contracts.archive_records import DayCheck
from pandora_dagster.errors import InputError, PandoraError

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
    """The pages: `/` lists the days, `/archive/<day>` shows the documents of a day (`?verify=1`: after opening their originals),
    `/lineage/<document>` the sources of a document."""
    archival = ArchiveService(app)

    def days(request: Request) -> str:
        return render_page("days.html", days=archival.by_day())

    def one_day(request: Request) -> str:
        originals = _VERIFY in request.query_params
        day = next(archival.days({_day(request.path_params["day"])}, originals=originals))
        return render_page(
            "day.html", day=day, originals_verified=originals, originals_check=DayCheck.ORIGINALS_RESTORABLE.value, verify=_VERIFY
        )

    def lineage(request: Request) -> str:
        return lineage_page(app.lineage, app.lineage.resolve(request.path_params["document"], user=app.settings.user))

    def guarded(handler: PageHandler) -> Callable[[Request], Response]:
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
            Route("/", guarded(days)),
            Route("/archive/{day}", guarded(one_day)),
            Route("/lineage/{document:path}", guarded(lineage)),
        ]
    )


def _error_page(status: int, message: str) -> Response:
    return HTMLResponse(render_page("error.html", status=status, message=message), status_code=status, headers=_HEADERS)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text[:40]!r}: not a day: expected one such as 2026-01-04") from None
