"""The Renderer port over headless Chromium: one process for many pages, a fresh context for each. It opens no connection of its own."""

import asyncio
import contextlib
import secrets
import threading
from base64 import b64decode
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Any

from playwright.async_api import Browser, BrowserContext, Page, Playwright, async_playwright
from playwright.async_api import Error as PlaywrightError

from pandora_dagster.contracts.web.fetched import FetchedPage
from pandora_dagster.contracts.web.rendered import RenderedPage
from pandora_dagster.documents.webpages.page_reader import read_page
from pandora_dagster.errors import BrowserError, FetchError
from pandora_dagster.tools.browser.browser_limits import BrowserLimits
from pandora_dagster.tools.browser.chromium import INSTALL_HINT, find_chromium, switches
from pandora_dagster.tools.browser.loaded_files import LoadedFiles
from pandora_dagster.tools.browser.page_steps import close_dialogues, follow_list, pass_privacy_dialogues
from pandora_dagster.tools.egress.closed_proxy import ClosedProxy
from pandora_dagster.tools.egress.file_loader import FileLoader
from pandora_dagster.tools.egress.page_fetcher import PageFetcher
from pandora_dagster.tools.egress.web_budget import FileBudget

_CLOSE_SECONDS = 5.0
_SAMPLE_SECONDS = 0.15
_QUIET_MS = 3_600_000.0
"""No limit of its own: whoever waits for quiet has one."""
_LOADING_SHARE = 2 / 3
"""Of the seconds of a page, the share in which its files may come: what they show has to be read as well."""
_MIN_CONTENT = 250
"""Characters of text that a page under a dialogue has to show to be read without an answer to it."""
_OPEN_SHADOWS = """(() => {
  const attach = Element.prototype.attachShadow;
  Element.prototype.attachShadow = function (init) { return attach.call(this, { ...init, mode: "open" }); };
})()"""
"""Shadow trees that a page closes would be seen by a visitor and by no reader."""
_CHANGES = "() => [document.readyState, document.getElementsByTagName('*').length, document.body?.textContent.length].join()"


@dataclass(frozen=True, slots=True)
class _Script:
    """Functions run in a world of their own, which shares the page's elements and none of its variables."""

    session: Any
    """A CDPSession, whose answers have no types."""

    async def call(self, function: str, *arguments: Any) -> Any:
        tree = await self.session.send("Page.getFrameTree")
        frame = tree["frameTree"]["frame"]["id"]
        world = await self.session.send("Page.createIsolatedWorld", {"frameId": frame, "worldName": "pandora"})
        request = {
            "functionDeclaration": function,
            "executionContextId": world["executionContextId"],
            "arguments": [{"value": argument} for argument in arguments],
            "returnByValue": True,
        }
        answer = await self.session.send("Runtime.callFunctionOn", request)
        if fault := answer.get("exceptionDetails"):
            detail = fault.get("exception", {}).get("description") or fault.get("text")
            raise BrowserError(f"the page cannot be examined: {str(detail)[:300]}")
        return answer["result"].get("value")


class ChromiumRenderer:
    """Starts Chromium with the first page; `close` ends it.

    `way_out`: the fetcher of the pages, whose client and budget load their files.
    """

    def __init__(self, way_out: PageFetcher, *, program: str = "", limits: BrowserLimits | None = None) -> None:
        self._way_out = way_out
        self._program = program
        self._limits = limits or BrowserLimits()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._start_lock = threading.Lock()
        self._launching = asyncio.Lock()
        self._places = asyncio.Semaphore(self._limits.pages_at_once)
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._proxy = ClosedProxy()
        self._threads = ThreadPoolExecutor(self._limits.pages_at_once * self._limits.hosts, thread_name_prefix="pandora-files")
        self._launch_fault = ""

    def __enter__(self) -> "ChromiumRenderer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def render(self, page: FetchedPage, *, deadline_s: float, screenshot: bool = False) -> RenderedPage:
        find_chromium(self._program)
        with self._start_lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="pandora-browser")
                self._thread.start()
        work = self._submit(self._render_in_turn(page, deadline_s, screenshot=screenshot))
        try:
            return work.result(timeout=deadline_s + 2 * _CLOSE_SECONDS)
        except FutureTimeoutError:
            work.cancel()
            raise BrowserError(f"{page.final_url}: the browser did not end within {deadline_s:.0f} s") from None

    def close(self) -> None:
        """End Chromium."""
        self._proxy.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._loop is None or self._thread is None:
            return
        with contextlib.suppress(FutureTimeoutError, PlaywrightError):
            self._submit(self._stop()).result(timeout=2 * _CLOSE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSE_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()
        self._loop = None

    def _submit(self, work: "Coroutine[Any, Any, Any]") -> "Future[Any]":
        assert self._loop is not None  # noqa: S101 - `render` starts it
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _stop(self) -> None:
        if self._browser:
            await self._browser.close()
        if self._playwright:
            await self._playwright.stop()

    async def _render_in_turn(self, page: FetchedPage, deadline_s: float, *, screenshot: bool) -> RenderedPage:
        began = monotonic()
        try:
            async with asyncio.timeout(deadline_s), self._places:
                browser = await self._launched()
            left_s = min(self._limits.seconds, deadline_s - (monotonic() - began))
            async with self._places:
                return await self._render(browser, page, max(left_s, 0.0), screenshot=screenshot)
        except TimeoutError:
            raise BrowserError(f"{page.final_url}: not rendered within {self._limits.seconds:.0f} s") from None
        except FetchError as error:
            raise BrowserError(str(error)) from error
        except PlaywrightError as error:
            raise BrowserError(f"{page.final_url}: {_first_line(error)}") from error

    async def _launched(self) -> Browser:
        """The running Chromium; it is started again after a crash."""
        async with self._launching:
            if self._browser and self._browser.is_connected():
                return self._browser
            if self._launch_fault:
                raise BrowserError(self._launch_fault, hint=INSTALL_HINT)
            program = find_chromium(self._program)
            try:
                self._playwright = self._playwright or await async_playwright().start()
                self._browser = await self._playwright.chromium.launch(
                    executable_path=program,
                    args=switches(),
                    proxy={"server": self._proxy.address, "bypass": "<-loopback>"},
                    handle_sigint=False,
                )
            except (PlaywrightError, OSError) as error:
                self._launch_fault = f"{program}: Chromium does not start: {_first_line(error)}"
                raise BrowserError(self._launch_fault, hint=INSTALL_HINT) from error
            return self._browser

    async def _render(self, browser: Browser, page: FetchedPage, seconds: float, *, screenshot: bool) -> RenderedPage:
        limits = self._limits
        budget = FileBudget(self._way_out.budget, requests=limits.requests, hosts=limits.hosts, total_bytes=limits.total_bytes)
        loader = FileLoader(self._way_out.out, budget, monotonic() + seconds * _LOADING_SHARE)
        context = await browser.new_context(
            user_agent=self._way_out.out.client.user_agent,
            viewport={"width": limits.width, "height": limits.height},
            accept_downloads=False,
            service_workers="block",
            reduced_motion="reduce",
        )
        files = LoadedFiles(context, page, loader, self._threads, with_pictures=screenshot)
        try:
            async with asyncio.timeout(seconds):
                return await _Rendering(context, page, files, limits, self._way_out.out.limits.page_bytes).run(screenshot=screenshot)
        finally:
            files.close()
            with contextlib.suppress(TimeoutError, PlaywrightError):
                await asyncio.wait_for(context.close(), _CLOSE_SECONDS)


class _Rendering:
    """The steps of one page."""

    def __init__(self, context: BrowserContext, page: FetchedPage, files: LoadedFiles, limits: BrowserLimits, max_characters: int) -> None:
        self._context = context
        self._page = page
        self._files = files
        self._limits = limits
        self._max_characters = max_characters

    async def run(self, *, screenshot: bool) -> RenderedPage:
        await self._context.add_init_script(_OPEN_SHADOWS)
        tab = await self._context.new_page()
        crashed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def mark_crashed(_: Page) -> None:
            if not crashed.done():
                crashed.set_result(None)

        tab.on("crash", mark_crashed)
        self._context.on("page", _close_popup)
        await self._context.route("**/*", lambda route: self._files.answer(route, tab))
        await self._context.route_web_socket("**/*", self._files.refuse_socket)
        work = asyncio.ensure_future(self._steps(tab, screenshot=screenshot))
        try:
            await asyncio.wait((work, crashed), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise BrowserError(f"{self._page.final_url}: the page crashed the browser")
            return work.result()
        finally:
            work.cancel()
            crashed.cancel()

    async def _steps(self, tab: Page, *, screenshot: bool) -> RenderedPage:
        await tab.goto(self._page.final_url, wait_until="commit", timeout=self._limits.seconds * 1000)
        session: Any = await self._context.new_cdp_session(tab)
        script = _Script(session)

        async def settle(seconds: float) -> None:
            await _settle(tab, script, seconds, self._files)

        await settle(self._limits.quiet_seconds)
        buttons = _source("page_buttons.js")
        notices = await close_dialogues(script, buttons, settle)
        may_accept = self._limits.accept_privacy
        notices += await pass_privacy_dialogues(script, buttons, settle, lambda: self._has_content(script), may_accept=may_accept)
        notices += await follow_list(script, buttons, settle, max_steps=self._limits.more_steps)
        notices += await close_dialogues(script, buttons, settle)
        await script.call("() => scrollTo({ top: 0, left: 0, behavior: 'instant' })")
        picture = await self._screenshot(session) if screenshot else b""
        notices += await self._unseen_height(script) if picture else []
        mark, snapshot = await self._snapshot(script)
        notices += [*snapshot["notices"], *self._files.notices()]
        return RenderedPage(snapshot["html"], mark, tuple(notices), frozenset(snapshot["pictures"]), picture)

    async def _snapshot(self, script: _Script) -> tuple[str, Any]:
        """The page as HTML with a mark on what is not seen, and that mark."""
        mark = f"data-{secrets.token_hex(8)}"
        limits = {"milliseconds": 5000, "characters": self._max_characters, "depth": 500, "value": 10_000}
        return mark, await script.call(_source("page_snapshot.js"), mark, limits)

    async def _has_content(self, script: _Script) -> bool:
        """Whether the page says something as it is shown now, beside what is around its content."""
        mark, snapshot = await self._snapshot(script)
        headers = {"content-type": "text/html; charset=utf-8"}
        shown = replace(self._page, headers=headers, body=snapshot["html"].encode(errors="replace"))
        page_doc = await asyncio.to_thread(read_page, shown, invisible_attribute=mark)
        return len(page_doc.text) >= _MIN_CONTENT

    async def _screenshot(self, session: Any) -> bytes:
        """The window as PNG, scaled to a width in pixels."""
        width, height = self._limits.width, self._limits.height
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": self._limits.screenshot_width / width}
        answer = await session.send("Page.captureScreenshot", {"format": "png", "clip": clip})
        return b64decode(answer["data"])

    async def _unseen_height(self, script: _Script) -> list[str]:
        """A notice where the page goes on below the window, which is all that a screenshot shows."""
        height, shown = int(await script.call("() => document.documentElement.scrollHeight")), self._limits.height
        return [f"the screenshot shows the first {shown:,} of {height:,} pixels of the page"] if height > shown else []


async def _settle(tab: Page, script: _Script, seconds: float, files: LoadedFiles) -> None:
    """Wait until no file is under way and the page stops to change, at most so many seconds beside those in which files wait for their
    host."""
    quiet = asyncio.ensure_future(_wait_for_quiet(tab))
    try:
        before = ""
        while seconds > 0:
            began = monotonic()
            await asyncio.sleep(_SAMPLE_SECONDS)
            if quiet.done() and not files.are_under_way:
                now = await script.call(_CHANGES)
                if now == before:
                    return
                before = now
            if not files.are_waiting:
                seconds -= monotonic() - began
    finally:
        quiet.cancel()


async def _wait_for_quiet(tab: Page) -> None:
    with contextlib.suppress(PlaywrightError):
        await tab.wait_for_load_state("networkidle", timeout=_QUIET_MS)


async def _close_popup(page: Page) -> None:
    with contextlib.suppress(PlaywrightError):
        await page.close()


@cache
def _source(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:300]
