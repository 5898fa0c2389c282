"""When a page is put to a browser, and what becomes of a browser that fails."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pandora_dagster.app.web.browser_health import browser_findings
from pandora_dagster.app.web.page_rendering import PageReader
from pandora_dagster.contracts.web.fetched import FetchedPage
from pandora_dagster.contracts.web.rendered import RenderedPage
from pandora_dagster.errors import BrowserError
from pandora_dagster.settings import Settings, load_settings

EMPTY = "<!doctype html><title>Kettle</title><body><div id=app></div><script src=/app.js></script>"
SHOWN = '<!doctype html><title>Kettle</title><body><div id=app><h1>Kettle</h1><p>It holds a litre.</p><p data-x="">SECRET</p></div>'


@dataclass
class FakeBrowser:
    """Shows one page; without one it fails."""

    html: str = ""
    rendered: int = 0

    pictures: frozenset[str] = frozenset()

    def render(self, page: FetchedPage, *, deadline_s: float, screenshot: bool = False) -> RenderedPage:
        self.rendered += 1
        if not self.html:
            raise BrowserError("Chromium crashed")
        return RenderedPage(self.html, "data-x", ("a dialogue was closed",), self.pictures, b"PNG" if screenshot else b"")


def page(html: str, **changes: object) -> FetchedPage:
    address = "http://a.test/kettle"
    fetched = FetchedPage(
        address, address, 200, {"content-type": "text/html"}, html.encode(), datetime(2026, 10, 15, tzinfo=UTC), (address,)
    )
    return replace(fetched, **changes)  # type: ignore[arg-type]


def test_a_page_without_text_is_read_in_the_browser() -> None:
    page_doc = PageReader(FakeBrowser(SHOWN), "auto", 5.0).read(page(EMPTY)).page_doc
    assert "It holds a litre." in page_doc.text
    assert "SECRET" not in page_doc.text
    assert page_doc.notices == ("read in a browser: it has no text of its own", "a dialogue was closed")


@pytest.mark.parametrize(
    ("mode", "fetched", "rendered"),
    [
        ("auto", page("<p>It holds a litre and its lid opens wide.</p>"), 0),
        ("always", page("<p>It holds a litre and its lid opens wide.</p>"), 1),
        ("off", page(EMPTY), 0),
        ("always", page(EMPTY, status=404), 0),
        ("always", page("{}", headers={"content-type": "application/json"}), 0),
    ],
)
def test_the_setting_and_the_page_decide(mode: str, fetched: FetchedPage, rendered: int) -> None:
    browser = FakeBrowser(SHOWN)
    PageReader(browser, mode, 5.0).read(fetched)  # type: ignore[arg-type]
    assert browser.rendered == rendered


def test_a_browser_that_fails_or_is_missing_is_a_notice() -> None:
    for reader, reason in (
        (PageReader(FakeBrowser(), "auto", 5.0), "Chromium crashed"),
        (PageReader(None, "auto", 5.0, "playwright: not installed"), "playwright: not installed"),
    ):
        page_doc = reader.read(page(EMPTY)).page_doc
        assert page_doc.title == "Kettle"
        assert page_doc.notices[-1] == f"read without a browser, though it has no text of its own: {reason}"


def test_a_browser_that_shows_nothing_does_not_take_the_text_away() -> None:
    text = "<h1>Kettle</h1><p>It holds a litre and a half, and its lid opens wide enough for a hand.</p>"
    page_doc = PageReader(FakeBrowser("<!doctype html><body></body>"), "always", 5.0).read(page(text)).page_doc
    assert "its lid opens" in page_doc.text


def settings_of(tmp_path: Path, **texts: str) -> Settings:
    return load_settings({"PANDORA_ROOT": str(tmp_path), **texts})


def test_doctor_says_which_chromium_is_found(tmp_path: Path) -> None:
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (found,) = browser_findings(settings_of(tmp_path, PANDORA_WEB="on", PANDORA_CHROMIUM=str(program)))
    assert (found.part, found.ok) == ("browser", True)
    (missing,) = browser_findings(settings_of(tmp_path, PANDORA_WEB="on", PANDORA_CHROMIUM="/no/chromium"))
    assert (missing.ok, "PANDORA_BROWSER=off" in missing.remedy) == (False, True)
    assert list(browser_findings(settings_of(tmp_path))) == []
    assert list(browser_findings(settings_of(tmp_path, PANDORA_WEB="on", PANDORA_BROWSER="off"))) == []


LOGO = "<!doctype html><title>Kettle</title><body><img src=/kettle.png alt=Kettle></body>"
DRAWN = (
    "<!doctype html><title>Kettle</title><body><div itemscope itemtype='https://schema.org/Product'><h1 itemprop=name>Kettle</h1>"
    "<link itemprop=availability href='https://schema.org/InStock'><p>It holds a litre and a half, and its lid opens wide enough.</p>"
    "<canvas></canvas></div></body>"
)


@pytest.mark.parametrize(
    ("fetched", "shown", "pictures", "renderings", "has_picture"),
    [
        pytest.param(LOGO, LOGO, {"img"}, 1, True, id="an image and no text"),
        pytest.param(EMPTY, "<body><canvas></canvas></body>", {"canvas"}, 2, True, id="a script draws the text"),
        pytest.param(DRAWN, DRAWN, {"canvas"}, 1, True, id="a product whose price is drawn"),
        pytest.param(
            EMPTY, SHOWN.replace("a litre", "a litre and a half and its lid opens wide"), {"img"}, 1, False, id="text beside an image"
        ),
        pytest.param(LOGO.replace("<img", "<b"), "", set(), 0, False, id="neither text nor image"),
    ],
)
def test_a_screenshot_is_taken_of_what_only_a_picture_says(
    fetched: str, shown: str, pictures: set[str], renderings: int, has_picture: bool
) -> None:
    browser = FakeBrowser(shown, pictures=frozenset(pictures))
    view = PageReader(browser, "auto", 5.0).read(page(fetched))
    assert (browser.rendered, bool(view.screenshot)) == (renderings, has_picture)
