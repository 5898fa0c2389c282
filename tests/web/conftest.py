"""Real Chromium over a web of several names on loopback, beside a server that no page may reach."""

import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pandora_dagster.contracts.web.fetched import FetchedPage
from pandora_dagster.stores.records.host_files import HostFiles
from pandora_dagster.tools.browser.browser_limits import BrowserLimits
from pandora_dagster.tools.browser.chromium import PROGRAMS
from pandora_dagster.tools.browser.chromium_renderer import ChromiumRenderer
from pandora_dagster.tools.egress.address_guard import AddressGuard
from pandora_dagster.tools.egress.page_fetcher import PageFetcher
from pandora_dagster.tools.egress.polite_client import PoliteClient
from pandora_dagster.tools.egress.resolver import DialTarget, HostsFileResolver
from pandora_dagster.tools.egress.web_budget import WebBudget
from pandora_dagster.tools.egress.web_client import WebClient
from tests.cli.conftest import pandora  # noqa: F401 - a fixture
from tests.tools.egress.conftest import LIMITS, Web, serving

NAMES = {"a.test": ["192.88.99.1"], "b.test": ["192.88.99.2"], "inside.test": ["10.0.0.7"], "turns.test": ["192.88.99.3", "127.0.0.1"]}


@dataclass
class Canary:
    """A server on loopback that counts connections."""

    port: int = 0
    hits: list[bytes] = field(default_factory=list)


@pytest.fixture
def canary() -> Iterator[Canary]:
    listener = socket.create_server(("127.0.0.1", 0))
    counted = Canary(listener.getsockname()[1])

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.settimeout(0.3)
            try:
                counted.hits.append(connection.recv(200))
            except OSError:
                counted.hits.append(b"")
            connection.close()

    threading.Thread(target=accept, daemon=True).start()
    yield counted
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


@pytest.fixture
def web() -> Iterator[Web]:
    with serving(Web()) as answering:
        yield answering


@pytest.fixture
def way_out(web: Web, canary: Canary, tmp_path: Path) -> PageFetcher:
    """The names of the web; an address that is not public is dialled at the canary, so that a missing check is seen."""
    addresses = {address for answers in NAMES.values() for address in answers}
    dials = {address: DialTarget("127.0.0.1", web.port if address.startswith("192.") else canary.port) for address in addresses}
    guard = AddressGuard(HostsFileResolver(NAMES, dials))
    limits = replace(LIMITS, page_bytes=3_000_000, seconds=600)
    return PageFetcher(PoliteClient(guard, WebClient("pandora-dagster/test"), HostFiles(tmp_path), limits), WebBudget(limits))


@pytest.fixture
def chromium() -> str:
    """The path of the system's Chromium."""
    found = next((path for program in PROGRAMS if (path := shutil.which(program))), None)
    assert found, "no Chromium: apt-get install chromium"
    return found


RendererOf = Callable[..., ChromiumRenderer]


@pytest.fixture
def renderer_of(way_out: PageFetcher, chromium: str) -> Iterator[RendererOf]:
    """A renderer over the web, with some limits changed."""
    made: list[ChromiumRenderer] = []

    def build(**limits: float | bool) -> ChromiumRenderer:
        made.append(ChromiumRenderer(way_out, program=chromium, limits=replace(BrowserLimits(), **limits)))  # type: ignore[arg-type]
        return made[-1]

    yield build
    for renderer in made:
        renderer.close()


def page(html: str, url: str = "http://a.test/", **headers: str) -> FetchedPage:
    """A page as it was fetched."""
    sent = {"content-type": "text/html; charset=utf-8", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return FetchedPage(url, url, 200, sent, html.encode(), datetime(2026, 10, 15, tzinfo=UTC), (url,))
