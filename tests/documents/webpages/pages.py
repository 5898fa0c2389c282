"""Pages for the tests, fetched from nowhere."""

from datetime import UTC, datetime

from pandora_dagster.contracts.web.fetched import FetchedPage
from pandora_dagster.contracts.web.page_doc import OUTSIDE_KINDS, PageDoc
from pandora_dagster.documents.webpages.page_reader import read_page

URL = "https://shop.example/lamps/aurora"


def fetched(body: str | bytes, *, url: str = URL, status: int = 200, content_type: str = "text/html; charset=utf-8") -> FetchedPage:
    """A page as a server answers it."""
    data = body.encode() if isinstance(body, str) else body
    return FetchedPage(url, url, status, {"content-type": content_type}, data, datetime(2026, 3, 1, tzinfo=UTC))


def read(body: str | bytes, *, invisible_attribute: str = "", **given: object) -> PageDoc:
    """The PAGE_DOC of a page."""
    return read_page(fetched(body, **given), invisible_attribute=invisible_attribute)


def outside(doc: PageDoc) -> str:
    """The text of the visible zones that are not what the page is about."""
    return "\n".join(zone.text for zone in doc.zones if zone.visible and zone.kind in OUTSIDE_KINDS)


def hidden(doc: PageDoc) -> str:
    """The text that nobody sees."""
    return "\n".join(zone.text for zone in doc.zones if not zone.visible)
