"""The pages in Chromium: their height, their filter with the script and without it, no error in the console, both ways of every link."""

import json
import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from pandora_dagster.api.pages.html_pages import lineage_page
from pandora_dagster.app import open_app
from pandora_dagster.app.archive_service import open_archive, open_levels
from pandora_dagster.archive.archive_run import archive_turns
from pandora_dagster.archive.archive_selection import select_turns
from pandora_dagster.archive.session_narratives import summarize_sessions
from pandora_dagster.archive.user_digests import digest_users
from pandora_dagster.contracts.lineage import DocumentId
from pandora_dagster.settings import load_settings
from tests.api.server_process import Api, started

CHROMIUM = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium on the PATH (apt-get install chromium)")
MAX_HEIGHT = 30_000
"""Pixels of a page on a phone; the digest below was 100,000 high."""
STATIONS = ("pump", "boiler", "router", "lamp", "camera")


def sentences(count: int, *, start: int) -> str:
    """Sentences with two facts each, no two alike."""
    return " ".join(
        f"The {STATIONS[n % 5]} K{n} costs {200 + n}.50 euros." if n % 2 else f"Never start the {STATIONS[n % 5]} K{n} above {n + 30} kg."
        for n in range(start, start + count)
    )


def conversation(name: str, user: str, day: int, *answers: str) -> bytes:
    pairs = [({"role": "user", "content": f"What is {name}?"}, {"role": "assistant", "content": answer}) for answer in answers]
    messages = [message for pair in pairs for message in pair]
    return json.dumps({"id": name, "user_id": user, "created_at": f"2026-01-{day:02}T10:00:00Z", "messages": messages}).encode()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """One turn of 1,000 facts, and a user with 40 sessions and a digest."""
    root = tmp_path_factory.mktemp("browser") / "store"
    app = open_app(load_settings({"PANDORA_ROOT": str(root)}))
    talks = [conversation(f"talk{n}", "dora", 1 + n % 20, sentences(8, start=n * 40), sentences(8, start=n * 40 + 20)) for n in range(40)]
    app.transfer.import_conversations([conversation("stations", "max", 4, sentences(420, start=1)), *talks], where="test")
    ctx, levels = open_archive(app), open_levels(app)
    app.run(archive_turns(select_turns(ctx), ctx))
    app.run(summarize_sessions(levels))
    app.run(digest_users(levels))
    (root.parent / "page.html").write_text(lineage_page(app.lineage, DocumentId.parse("max:turn_000001/context.md")), encoding="utf-8")
    app.close()
    with started(root, "--dagster", "http://127.0.0.1:3999", door="pages", answers="/") as running:
        yield running


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@contextmanager
def opened(chromium: Browser, address: str, *, width: int = 1280, script: bool = True) -> Generator[Page]:
    """A page of a window as wide as this; a message of an error in the console fails the test."""
    context = chromium.new_context(viewport={"width": width, "height": 800}, java_script_enabled=script)
    page = context.new_page()
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(address)
    yield page
    context.close()
    assert errors == []


def url(pages: Api, path: str) -> str:
    return f"http://127.0.0.1:{pages.port}{path}"


def shown_rows(page: Page) -> int:
    return page.locator("table.compare tbody tr:not([hidden])").count()


@pytest.mark.parametrize("width", [1280, 375])
@pytest.mark.parametrize("script", [True, False])
def test_no_page_is_higher_than_a_reader_scrolls(pages: Api, chromium: Browser, width: int, script: bool) -> None:
    """1,000 facts, a digest of 40 sessions, a day, in a window and on a phone; nothing is wider than the window."""
    for path in (
        "/",
        "/archive/2026-01-04",
        "/lineage/max:turn_000001",
        "/lineage/dora:digest",
        "/lineage/max:turn_000001?verdict=missing",
    ):
        with opened(chromium, url(pages, path), width=width, script=script) as page:
            height, wide = page.evaluate("[document.documentElement.scrollHeight, document.documentElement.scrollWidth]")
            assert height < MAX_HEIGHT and wide <= width, (path, height, wide)


def test_the_filter_with_the_script_is_that_of_the_server(pages: Api, chromium: Browser) -> None:
    """The same rows, whether the browser hides the others or the server leaves them out; in the file of --html too."""
    with opened(chromium, url(pages, "/lineage/max:turn_000001?verdict=missing&q=BOILER"), script=False) as page:
        by_server = shown_rows(page)
        page.get_by_role("link", name="show all").click()
        assert 0 < by_server < shown_rows(page)
    for address in (url(pages, "/lineage/max:turn_000001"), f"file://{pages.root.parent / 'page.html'}"):
        with opened(chromium, address) as page:
            page.get_by_label("Verdict").select_option("missing")
            page.get_by_role("searchbox").fill("boiler")
            assert shown_rows(page) == by_server and "rows" in page.locator("output").inner_text()
            assert page.locator("details.rows[open] tbody tr:not([hidden])").count() <= 200
            page.get_by_role("searchbox").fill("")
            page.get_by_label("Verdict").select_option("")
            assert shown_rows(page) > by_server and page.locator("output").inner_text() == ""


def test_the_filter_without_the_script(pages: Api, chromium: Browser) -> None:
    """The button asks the server; in a file, which has no server, the form is not there and all rows are."""
    with opened(chromium, url(pages, "/lineage/max:turn_000001"), script=False) as page:
        page.get_by_role("searchbox").fill("boiler")
        page.get_by_role("button", name="Filter").click()
        assert "q=boiler" in page.url and 0 < shown_rows(page) < 300
    with opened(chromium, f"file://{pages.root.parent / 'page.html'}", script=False) as page:
        assert not page.locator("form").is_visible() and shown_rows(page) > 400


def test_from_the_digest_to_a_turn_and_back(pages: Api, chromium: Browser) -> None:
    """Levels down to the turn by links of the tree, up again by what was made from it; to the day, and from there to Dagster."""
    with opened(chromium, url(pages, "/lineage/dora:digest")) as page:
        page.get_by_role("searchbox").fill("talk7")
        assert page.locator(".tree li:not([hidden]) > details > summary").count() >= 2
        page.locator(".tree").get_by_role("link", name="dora:session/talk7").click()
        page.locator(".tree").get_by_role("link", name="/summary").first.click()
        turn = page.locator("h1").inner_text()
        assert "/summary" in turn
        page.locator("ul.derived").get_by_role("link", name="dora:session/talk7").click()
        page.locator("ul.derived").get_by_role("link", name="dora:digest").click()
        assert page.locator("h1").inner_text() == "Lineage of dora:digest"
    with opened(chromium, url(pages, "/lineage/max:turn_000001")) as page:
        page.get_by_role("link", name="archived turns of 2026-01-04").click()
        assert "http://127.0.0.1:3999/assets/archived_turns" in (page.get_by_role("link", name="in Dagster").get_attribute("href") or "")
        page.get_by_role("link", name="Tokens").click()
        page.get_by_role("link", name="Tokens").click()
        assert page.locator("th[aria-sort=descending]").inner_text().startswith("Tokens")
        assert page.locator("table.day tbody th").first.inner_text() == "max:turn_000001/context.md"
        page.get_by_role("searchbox").fill("dora:")
        page.get_by_role("button", name="Filter").click()
        assert page.locator("th[aria-sort=descending]").inner_text().startswith("Tokens")
        assert {name.partition(":")[0] for name in page.locator("table.day tbody th").all_inner_texts()} == {"dora"}
        page.get_by_role("link", name="show all").click()
        page.get_by_role("link", name="max:turn_000001/context.md").click()
        assert page.locator("h1").inner_text() == "Lineage of max:turn_000001/context.md"


def test_the_keyboard_is_enough(pages: Api, chromium: Browser) -> None:
    """Tab leads to the form, the tree and the folded rows; Enter folds them; each table has headings of columns and rows."""
    with opened(chromium, url(pages, "/lineage/max:turn_000001")) as page:
        focused: list[str] = []
        for _ in range(30):
            page.keyboard.press("Tab")
            focused.append(
                page.evaluate("document.activeElement.closest('form') ? 'form' : document.activeElement.parentElement.className")
            )
        assert {"form", "rows"} <= set(focused)
        rows = page.locator("details.rows > summary").first
        was_open = page.locator("details.rows").first.get_attribute("open")
        rows.press("Enter")
        assert page.locator("details.rows").first.get_attribute("open") != was_open
        assert page.locator("table.compare thead th[scope=col]").count() >= 3 and page.locator("tbody th[scope=row]").count() > 400
