"""Reads a fetched page, by a browser where it needs one: `PANDORA_BROWSER` decides, and a browser that fails is a notice of the page."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from pandora_dagster.contracts.images import fitting_width
from pandora_dagster.contracts.web.fetched import FetchedPage, Fetcher
from pandora_dagster.contracts.web.page_doc import PageDoc
from pandora_dagster.contracts.web.rendered import RenderedPage, Renderer
from pandora_dagster.errors import BrowserError
from pandora_dagster.settings import Settings

INSTALL_HINT = "pip install 'pandora-dagster[browser]'"
_HTML_TYPES = frozenset({"", "text/html", "application/xhtml+xml"})
_ERROR_STATUS = 400


@dataclass(frozen=True, slots=True)
class PageView:
    """A page as it was read; `screenshot`: its window as PNG where a picture says what its text does not, else empty."""

    page_doc: PageDoc
    screenshot: bytes = b""


@dataclass(frozen=True, slots=True)
class PageReader:
    """Reads pages; without `renderer` as they were fetched. `fault`: why there is no renderer."""

    renderer: Renderer | None
    mode: Literal["auto", "off", "always"]
    seconds: float
    """Of one rendered page."""
    fault: str = ""

    def read(self, page: FetchedPage) -> PageView:
        """The page as a visitor sees it, where a browser was needed and rendered it; raises DocumentError."""
        from pandora_dagster.documents.webpages.page_reader import read_page

        page_doc = read_page(page)
        need, picture = self._needs(page, page_doc)
        if not need and not picture:
            return PageView(page_doc)
        try:
            rendered = self._render(page, screenshot=bool(picture))
            shown = _shown(page, page_doc, rendered, need or picture)
            if not picture and (picture := self._picture_need(shown, rendered.pictures)):
                rendered = self._render(page, screenshot=True)
        except BrowserError as error:
            return PageView(_with_notices(page_doc, f"read without a browser, though {need or picture}: {error.with_hint}"))
        return PageView(shown, rendered.screenshot) if picture else PageView(shown)

    def _render(self, page: FetchedPage, *, screenshot: bool) -> RenderedPage:
        if self.renderer is None:
            raise BrowserError(self.fault)
        return self.renderer.render(page, deadline_s=self.seconds, screenshot=screenshot)

    def _needs(self, page: FetchedPage, page_doc: PageDoc) -> tuple[str, str]:
        """Why the page is put to a browser, and why its picture is needed; "" where it is not."""
        media_type = page.headers.get("content-type", "").partition(";")[0].strip().lower()
        if self.mode == "off" or media_type not in _HTML_TYPES or page.status >= _ERROR_STATUS:
            return "", ""
        from pandora_dagster.documents.webpages.charset import decode
        from pandora_dagster.tools.browser.picture_need import picture_kinds
        from pandora_dagster.tools.browser.script_need import script_need

        html = decode(page.body, page.headers.get("content-type", "")).text
        need = "PANDORA_BROWSER is always" if self.mode == "always" else script_need(html, page_doc)
        return need, "" if need else self._picture_need(page_doc, picture_kinds(html))

    @staticmethod
    def _picture_need(page_doc: PageDoc, pictures: frozenset[str]) -> str:
        from pandora_dagster.tools.browser.picture_need import picture_need

        return picture_need(page_doc, pictures)


def _shown(page: FetchedPage, page_doc: PageDoc, rendered: RenderedPage, why: str) -> PageDoc:
    from pandora_dagster.documents.webpages.page_reader import read_page

    headers = {**page.headers, "content-type": "text/html; charset=utf-8"}
    shown = read_page(replace(page, headers=headers, body=rendered.html.encode()), invisible_attribute=rendered.invisible_attribute)
    if page_doc.text and not shown.text:
        return _with_notices(page_doc, f"read without a browser, though {why}: the browser shows no text", *rendered.notices)
    return _with_notices(shown, f"read in a browser: {why}", *rendered.notices)


@contextmanager
def open_page_reader(settings: Settings, fetcher: Fetcher | None, *, picture_tokens: int = 0) -> Generator[PageReader]:
    """A reader whose browser starts with the first page that needs it, and ends with the reader.

    `picture_tokens`: what a screenshot may cost the model that reads it; 0 for one that a person looks at.
    """
    from pandora_dagster.tools.egress.page_fetcher import PageFetcher

    if settings.browser == "off" or not isinstance(fetcher, PageFetcher):
        yield PageReader(None, "off", settings.web_page_s)
        return
    try:
        from pandora_dagster.tools.browser.browser_limits import BrowserLimits
        from pandora_dagster.tools.browser.chromium_renderer import ChromiumRenderer
    except ImportError as error:
        yield PageReader(None, settings.browser, settings.web_page_s, f"{error.name}: not installed: {INSTALL_HINT}")
        return
    limits = BrowserLimits(seconds=settings.web_page_s, accept_privacy=settings.browser_consent == "accept")
    if picture_tokens:
        width = fitting_width(limits.screenshot_width, limits.screenshot_width * limits.height // limits.width, picture_tokens)
        limits = replace(limits, screenshot_width=max(width, 1))
    with ChromiumRenderer(fetcher, program=settings.chromium, limits=limits) as renderer:
        yield PageReader(renderer, settings.browser, settings.web_page_s * 3)


def _with_notices(page_doc: PageDoc, *notices: str) -> PageDoc:
    return page_doc.model_copy(update={"notices": (*page_doc.notices, *notices)})
