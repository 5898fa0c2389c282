"""The Renderer port over headless Chromium: one process for many pages, a fresh context and a proxy for each."""

import asyncio
import contextlib
import secrets
import threading
from base64 import b64decode
from collections.abc import Coroutine, Generator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Any

from playwright.async_api import Browser, BrowserContext, Page, Playwright, Route, WebSocketRoute, async_playwright
from playwright.async_api import Error as PlaywrightError

from pandora_dagster.contracts.web.fetched import FetchedPage
from pandora_dagster.contracts.web.rendered import RenderedPage
from pandora_dagster.documents.webpages.charset import decode
from pandora_dagster.documents.webpages.page_reader import read_page
from pandora_dagster.errors import BrowserError, FetchError
from pandora_dagster.tools.browser.browser_limits import BrowserLimits
from pandora_dagster.tools.browser.chromium import INSTALL_HINT, find_chromium, switches
from pandora_dagster.tools.browser.page_steps import close_dialogues, follow_list, pass_privacy_dialogues
from pandora_dagster.tools.browser.resource_policy import UNNEEDED, ResourcePolicy
from pandora_dagster.tools.egress.browser_proxy import BrowserProxy, PageTraffic
from pandora_dagster.tools.egress.page_fetcher import PageFetcher

_FOREVER_S = 1e6
_CLOSE_SECONDS = 5.0
_SAMPLE_SECONDS = 0.15
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

    `way_out`: the guard, robots.txt and budget that the requests of pages obey.
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
        self._closed_way: BrowserProxy | None = None
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
        if self._closed_way:
            self._closed_way.close()

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
                self._closed_way = self._closed_way or BrowserProxy(self._way_out.guard, PageTraffic(0, 0, monotonic() + _FOREVER_S))
                self._browser = await self._playwright.chromium.launch(
                    executable_path=program,
                    args=switches(),
                    proxy={"server": self._closed_way.address, "bypass": "<-loopback>"},
                    handle_sigint=False,
                )
            except (PlaywrightError, OSError) as error:
                self._launch_fault = f"{program}: Chromium does not start: {_first_line(error)}"
                raise BrowserError(self._launch_fault, hint=INSTALL_HINT) from error
            return self._browser

    async def _render(self, browser: Browser, page: FetchedPage, seconds: float, *, screenshot: bool) -> RenderedPage:
        max_bytes = min(self._limits.total_bytes, self._way_out.budget.page_bytes())
        traffic = PageTraffic(self._limits.requests, max_bytes, monotonic() + seconds + _CLOSE_SECONDS)
        with _closing(BrowserProxy(self._way_out.guard, traffic)) as proxy:
            context = await browser.new_context(
                proxy={"server": proxy.address, "bypass": "<-loopback>"},
                user_agent=self._way_out.client.user_agent,
                viewport={"width": self._limits.width, "height": self._limits.height},
                accept_downloads=False,
                service_workers="block",
                reduced_motion="reduce",
            )
            try:
                async with asyncio.timeout(seconds):
                    return await _Rendering(context, page, self._way_out, traffic, self._limits).run(screenshot=screenshot)
            finally:
                self._way_out.budget.spend(traffic.received)
                with contextlib.suppress(TimeoutError, PlaywrightError):
                    await asyncio.wait_for(context.close(), _CLOSE_SECONDS)


class _Rendering:
    """The steps of one page."""

    def __init__(
        self, context: BrowserContext, page: FetchedPage, way_out: PageFetcher, traffic: PageTraffic, limits: BrowserLimits
    ) -> None:
        self._context = context
        self._page = page
        self._traffic = traffic
        self._limits = limits
        self._way_out = way_out
        self._is_delivered = False
        self._targets: dict[str, None] = {}
        """Addresses that scripts of the page lead to."""

    async def run(self, *, screenshot: bool) -> RenderedPage:
        policy = ResourcePolicy(self._page.final_url, lambda url: self._way_out.robots_of(url, deadline_s=10.0), with_pictures=screenshot)
        await self._context.add_init_script(_OPEN_SHADOWS)
        tab = await self._context.new_page()
        crashed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def mark_crashed(_: Page) -> None:
            if not crashed.done():
                crashed.set_result(None)

        tab.on("crash", mark_crashed)
        self._context.on("page", _close_popup)
        await self._context.route("**/*", lambda route: self._answer(route, tab, policy))
        await self._context.route_web_socket("**/*", lambda socket: _connect(socket, policy))
        work = asyncio.ensure_future(self._steps(tab, policy, screenshot=screenshot))
        try:
            await asyncio.wait((work, crashed), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise BrowserError(f"{self._page.final_url}: the page crashed the browser")
            return work.result()
        finally:
            work.cancel()
            crashed.cancel()

    async def _steps(self, tab: Page, policy: ResourcePolicy, *, screenshot: bool) -> RenderedPage:
        await tab.goto(self._page.final_url, wait_until="commit", timeout=self._limits.seconds * 1000)
        session: Any = await self._context.new_cdp_session(tab)
        script = _Script(session)

        async def settle(seconds: float) -> None:
            await _settle(tab, script, seconds)

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
        notices += [*snapshot["notices"], *self._refusals(policy)]
        return RenderedPage(snapshot["html"], mark, tuple(notices), frozenset(snapshot["pictures"]), picture)

    async def _snapshot(self, script: _Script) -> tuple[str, Any]:
        """The page as HTML with a mark on what is not seen, and that mark."""
        mark = f"data-{secrets.token_hex(8)}"
        limits = {"milliseconds": 5000, "characters": self._way_out.budget.limits.page_bytes, "depth": 500, "value": 10_000}
        return mark, await script.call(_source("page_snapshot.js"), mark, limits)

    async def _has_content(self, script: _Script) -> bool:
        """Whether the page says something as it is shown now, beside what is around its content."""
        mark, snapshot = await self._snapshot(script)
        headers = {"content-type": "text/html; charset=utf-8"}
        shown = replace(self._page, headers=headers, body=snapshot["html"].encode(errors="replace"))
        page_doc = await asyncio.to_thread(read_page, shown, invisible_attribute=mark)
        return len(page_doc.text) >= _MIN_CONTENT

    async def _answer(self, route: Route, tab: Page, policy: ResourcePolicy) -> None:
        """Give the page as it was fetched to the browser, let through what it may load, and refuse the rest."""
        request = route.request
        with contextlib.suppress(PlaywrightError):  # the page has gone
            if request.is_navigation_request() and request.frame.parent_frame is None:
                if request.frame == tab.main_frame and not self._is_delivered:
                    self._is_delivered = True
                    text = decode(self._page.body, self._page.headers.get("content-type", "")).text
                    headers = {"content-type": "text/html; charset=utf-8"}
                    if rules := self._page.headers.get("content-security-policy"):
                        headers["content-security-policy"] = rules
                    await route.fulfill(status=self._page.status, headers=headers, body=text)
                else:
                    self._targets[request.url] = None
                    await route.fulfill(status=204)  # the browser stays where it is; an abort would show an error page
            elif policy.allows_kind(request.url, request.resource_type, request.method) and await asyncio.to_thread(
                policy.allows_robots, request.url
            ):
                await route.continue_()
            else:
                await route.abort("blockedbyclient")

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

    def _refusals(self, policy: ResourcePolicy) -> list[str]:
        notices = [f"a script of the page leads to {url[:300]}, which was not followed" for url in list(self._targets)[:5]]
        files = ", ".join(f"{number} {reason}" for reason, number in sorted(policy.refused.items()) if reason != UNNEEDED)
        rules = ", ".join(f"{number} by the rule {rule!r}" for rule, number in sorted(self._traffic.refusals.items()))
        notices += [f"files of the page that were not loaded: {files}"] if files else []
        return notices + ([f"requests of the page that were refused: {rules}"] if rules else [])


async def _settle(tab: Page, script: _Script, seconds: float) -> None:
    """Wait until no request is under way and the page stops to change, at most so many seconds."""
    deadline = monotonic() + seconds
    with contextlib.suppress(PlaywrightError):
        await tab.wait_for_load_state("networkidle", timeout=seconds * 1000)
    before = await script.call(_CHANGES)
    while monotonic() < deadline:
        await asyncio.sleep(_SAMPLE_SECONDS)
        now = await script.call(_CHANGES)
        if now == before:
            return
        before = now


async def _connect(socket: WebSocketRoute, policy: ResourcePolicy) -> None:
    """Let a WebSocket through that the policy allows as a request for data; the proxy judges its address."""
    url = "http" + socket.url.removeprefix("ws")
    if policy.allows_kind(url, "fetch", "GET") and await asyncio.to_thread(policy.allows_robots, url):
        socket.connect_to_server()
    else:
        await socket.close()


async def _close_popup(page: Page) -> None:
    with contextlib.suppress(PlaywrightError):
        await page.close()


@contextlib.contextmanager
def _closing(proxy: BrowserProxy) -> Generator[BrowserProxy]:
    try:
        yield proxy
    finally:
        proxy.close()


@cache
def _source(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:300]
