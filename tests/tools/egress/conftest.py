"""A web of several names on one loopback server, and a fetcher that reaches it."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pandora_dagster.stores.records.host_files import HostFiles
from pandora_dagster.tools.egress.address_guard import AddressGuard
from pandora_dagster.tools.egress.page_fetcher import PageFetcher
from pandora_dagster.tools.egress.polite_client import PoliteClient
from pandora_dagster.tools.egress.resolver import DialTarget, HostsFileResolver
from pandora_dagster.tools.egress.web_budget import WebBudget, WebLimits
from pandora_dagster.tools.egress.web_client import WebClient

LIMITS = WebLimits(pages=100, hosts=10, total_bytes=20_000_000, seconds=60, page_bytes=1_000_000, page_seconds=2, hops=5, delay_s=0.0)
NAMES = {"a.test": ["192.88.99.1"], "b.test": ["192.88.99.2"], "inside.test": ["10.0.0.7"], "turns.test": ["192.88.99.3", "127.0.0.1"]}


@dataclass
class Web:
    """What the server answers, and what it was asked."""

    port: int = 0
    begun: list[tuple[str, str, float]] = field(default_factory=list)
    """Host, path and time of each request."""
    ended: list[float] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    """Of the last request."""
    pages: dict[str, Callable[[BaseHTTPRequestHandler], None]] = field(default_factory=dict)

    def page(self, path: str, body: bytes = b"<p>text</p>", status: int = 200, **headers: str) -> None:
        """Answer `path` (or host and path); a header's name is written with `_`."""
        sent = {"Content-Type": "text/html", "Content-Length": str(len(body)), **{n.replace("_", "-"): v for n, v in headers.items()}}

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(status)
            for name, value in sent.items():
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(body)

        self.pages[path] = answer

    def redirect(self, path: str, target: str) -> None:
        self.page(path, b"", 302, Location=target)

    def paths(self) -> list[str]:
        return [path for _, path, _ in self.begun]

    def times(self) -> list[tuple[float, float]]:
        """Begin and end of the requests for pages, all of one host and ended."""
        while len(self.ended) < len(self.begun):
            time.sleep(0.01)
        return [(begin, end) for (_, path, begin), end in zip(self.begun, self.ended, strict=True) if path != "/robots.txt"]


@contextmanager
def serving(web: Web) -> Iterator[Web]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            host = self.headers["Host"]
            web.begun.append((host, self.path, time.monotonic()))
            web.headers = dict(self.headers)
            try:
                page = web.pages.get(f"{host}{self.path}") or web.pages.get(self.path)
                page(self) if page else self.send_error(404)
            except OSError:
                pass  # the client gave up
            web.ended.append(time.monotonic())

        do_POST = do_GET  # noqa: N815 - the name that the server looks for

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    web.port = server.server_port
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def web() -> Iterator[Web]:
    with serving(Web()) as answering:
        yield answering


FetcherOf = Callable[..., PageFetcher]


@pytest.fixture
def fetcher_of(web: Web, tmp_path: Path) -> FetcherOf:
    """A fetcher over the web, with some limits changed; every fetcher of a test has the same store."""

    def build(client: WebClient | None = None, **limits: float) -> PageFetcher:
        place = DialTarget("127.0.0.1", web.port)
        addresses = [address for answers in NAMES.values() for address in answers]
        guard = AddressGuard(HostsFileResolver(NAMES, dict.fromkeys(addresses, place)))
        changed = replace(LIMITS, **limits)  # type: ignore[arg-type]
        return PageFetcher(
            PoliteClient(guard, client or WebClient("pandora-dagster/test"), HostFiles(tmp_path), changed), WebBudget(changed)
        )

    return build
