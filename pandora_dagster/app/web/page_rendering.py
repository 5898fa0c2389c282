"""Reads a fetched page, by a browser where it needs one: `PANDORA_BROWSER` decides, and a browser that fails is a notice of the page."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from pandora_dagster.contracts.web.fetched import FetchedPage, Fetcher
from pandora_dagster.contracts.web.page_doc import PageDoc
from pandora_dagster.contracts.web.rendered import Renderer
from pandora_dagster.errors import BrowserError
from pandora_dagster.settings import Settings

INSTALL_HINT = "pip install 'pandora-dagster[browser]'"
_HTML_TYPES = frozenset({"", "text/html", "application/xhtml+xml"})
_ERROR_STATUS = 400


@dataclass(frozen=True, slots=True)
class PageReader:
    """Reads pages; without `renderer` as they were fetched. `fault`: why there is no renderer."""

    renderer: Renderer | None
    mode: Literal["auto", "off", "always"]
    seconds: float
    """Of one rendered page."""
    fault: str = ""

    def read(self, page: FetchedPage) -> PageDoc:
        """The page as a visitor sees it, where a browser was needed and rendered it; raises DocumentError."""
        from pandora_dagster.documents.webpages import read_page

        page_doc = read_page(page)
        need = self._need(page, page_doc)
        if not need:
            return page_doc
        try:
            if self.renderer is None:
                raise BrowserError(self.fault)
            rendered = self.renderer.render(page, deadline_s=self.seconds)
        except BrowserError as error:
            return _with_notices(page_doc, f"read without a browser, though {need}: {error.with_hint}")
        headers = {**page.headers, "content-type": "text/html; charset=utf-8"}
        shown = read_page(replace(page, headers=headers, body=rendered.html.encode()), invisible_attribute=rendered.invisible_attribute)
        if page_doc.text and not shown.text:
            return _with_notices(page_doc, f"read without a browser, though {need}: the browser shows no text", *rendered.notices)
        return _with_notices(shown, f"read in a browser: {need}", *rendered.notices)

    def _need(self, page: FetchedPage, page_doc: PageDoc) -> str:
        """Why the page is put to a browser; "" where it is not."""
        media_type = page.headers.get("content-type", "").partition(";")[0].strip().lower()
        if self.mode == "off" or media_type not in _HTML_TYPES or page.status >= _ERROR_STATUS:
            return ""
        if self.mode == "always":
            return "PANDORA_BROWSER is always"
        from pandora_dagster.documents.webpages.charset import decode
        from pandora_dagster.tools.browser.script_need import script_need

        return script_need(decode(page.body, page.headers.get("content-type", "")).text, page_doc)


@contextmanager
def open_page_reader(settings: Settings, fetcher: Fetcher) -> Generator[PageReader]:
    """A reader whose browser starts with the first page that needs it, and ends with the reader."""
    from pandora_dagster.tools.egress.page_fetcher import PageFetcher

    if settings.browser == "off" or not isinstance(fetcher, PageFetcher):
        yield PageReader(None, "off", settings.web_page_s)
        return
    try:
        from pandora_dagster.tools.browser.chromium_renderer import BrowserLimits, ChromiumRenderer
    except ImportError as error:
        yield PageReader(None, settings.browser, settings.web_page_s, f"{error.name}: not installed: {INSTALL_HINT}")
        return
    limits = BrowserLimits(seconds=settings.web_page_s)
    with ChromiumRenderer(fetcher, program=settings.chromium, limits=limits) as renderer:
        yield PageReader(renderer, settings.browser, settings.web_page_s * 3)


def _with_notices(page_doc: PageDoc, *notices: str) -> PageDoc:
    return page_doc.model_copy(update={"notices": (*page_doc.notices, *notices)})
