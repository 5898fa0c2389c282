"""Answers the requests of one page in a browser: the page as it was fetched, the files that it may load, and nothing else."""

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from playwright.async_api import BrowserContext, Page, Request, Route, WebSocketRoute
from playwright.async_api import Error as PlaywrightError

from pandora_dagster.contracts.web.fetched import FetchedPage
from pandora_dagster.documents.webpages.charset import decode
from pandora_dagster.tools.browser.resource_policy import UNNEEDED, ResourcePolicy, is_delayed, site_of
from pandora_dagster.tools.egress.file_loader import FileLoader, FileRequest
from pandora_dagster.tools.egress.web_client import Answer


class LoadedFiles:
    """The files of one page."""

    def __init__(
        self, context: BrowserContext, page: FetchedPage, loader: FileLoader, threads: ThreadPoolExecutor, *, with_pictures: bool
    ) -> None:
        self._context = context
        self._page = page
        self._loader = loader
        self._threads = threads
        self._policy = ResourcePolicy(page.final_url, with_pictures)
        self._is_delivered = False
        self._targets: dict[str, None] = {}
        """Addresses that scripts of the page lead to."""
        self._turns: dict[str, asyncio.Lock] = {}
        """By host, in the order of requests: threads that wait for one host keep none from another."""
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def are_under_way(self) -> bool:
        return bool(self._tasks)

    @property
    def are_waiting(self) -> bool:
        """Whether a file waits for the turn of its host."""
        return self._loader.waiting > 0

    async def answer(self, route: Route, tab: Page) -> None:
        task = asyncio.ensure_future(self._answer(route, tab))
        self._tasks.add(task)
        try:
            await task
        finally:
            self._tasks.discard(task)

    def close(self) -> None:
        """End what is under way."""
        self._loader.close()
        for task in self._tasks:
            task.cancel()

    async def _answer(self, route: Route, tab: Page) -> None:
        request = route.request
        with contextlib.suppress(PlaywrightError):  # the page has gone
            if request.is_navigation_request() and request.frame.parent_frame is None:
                if request.frame == tab.main_frame and not self._is_delivered:
                    self._is_delivered = True
                    await self._deliver(route)
                else:
                    self._targets[request.url] = None
                    await route.fulfill(status=204)  # the browser stays where it is; an abort would show an error page
            elif self._policy.allows(request.url, request.resource_type, request.method) and (answer := await self._load(request)):
                await route.fulfill(status=answer.status, headers=dict(answer.headers), body=answer.body)
            else:
                await route.abort("blockedbyclient")

    async def refuse_socket(self, socket: WebSocketRoute) -> None:
        """What goes through a WebSocket keeps no turn, delay or wait of a host."""
        self._policy.refused["a WebSocket"] += 1
        await socket.close()

    def notices(self) -> list[str]:
        """What a reader of the page should know of its files."""
        notices = [f"a script of the page leads to {url[:300]}, which was not followed" for url in list(self._targets)[:5]]
        reasons = {reason: number for reason, number in self._policy.refused.items() if reason != UNNEEDED}
        reasons |= {f"by the rule {rule!r}": number for rule, number in self._loader.refused.items()}
        files = ", ".join(f"{number} {reason}" for reason, number in sorted(reasons.items()))
        return notices + ([f"files of the page that were not loaded: {files}"] if files else [])

    async def _deliver(self, route: Route) -> None:
        text = decode(self._page.body, self._page.headers.get("content-type", "")).text
        headers = {"content-type": "text/html; charset=utf-8"}
        if rules := self._page.headers.get("content-security-policy"):
            headers["content-security-policy"] = rules
        await route.fulfill(status=self._page.status, headers=headers, body=text)

    async def _load(self, request: Request) -> Answer | None:
        kind, method = request.resource_type, request.method
        cookies = await self._context.cookies(request.url) if site_of(request.url) == site_of(self._page.final_url) else []
        asked = FileRequest(
            request.url,
            method,
            request.headers,
            request.post_data_buffer or b"",
            "; ".join(f"{cookie.get('name', '')}={cookie.get('value', '')}" for cookie in cookies),
            is_delayed(kind),
            lambda url: self._policy.allows(url, kind, method),
        )
        async with self._turns.setdefault(urlsplit(request.url).netloc, asyncio.Lock()):
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._loader.load, asked)
