"""The files of a page: from which hosts they come, in which order, and what is sent for them."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from pandora_dagster.errors import FetchFailedError
from pandora_dagster.stores.records.host_files import HostFiles
from pandora_dagster.tools.egress.address_guard import AddressGuard
from pandora_dagster.tools.egress.file_loader import FileLoader, FileRequest
from pandora_dagster.tools.egress.page_fetcher import PageFetcher
from pandora_dagster.tools.egress.polite_client import PoliteClient
from pandora_dagster.tools.egress.resolver import DialTarget, HostsFileResolver
from pandora_dagster.tools.egress.web_budget import FileBudget, WebBudget
from pandora_dagster.tools.egress.web_client import WebClient
from tests.tools.egress.conftest import LIMITS, Web

HOSTS = {f"h{number}.test": [f"192.88.99.{number + 10}"] for number in range(60)} | {"inside.test": ["10.0.0.7"]}


@pytest.fixture
def fetcher_of(web: Web, tmp_path: Path) -> Callable[..., PageFetcher]:
    """A fetcher over 60 hosts, and one inside."""

    def build(**changes: float) -> PageFetcher:
        limits = replace(LIMITS, **changes)  # type: ignore[arg-type]
        dials = {address: DialTarget("127.0.0.1", web.port) for addresses in HOSTS.values() for address in addresses}
        guard = AddressGuard(HostsFileResolver(HOSTS, dials))
        return PageFetcher(PoliteClient(guard, WebClient("pandora-dagster/test"), HostFiles(tmp_path), limits), WebBudget(limits))

    return build


def loader_of(fetcher: PageFetcher, *, requests: int = 300, hosts: int = 8, total_bytes: int = 1_000_000, seconds: float = 5) -> FileLoader:
    budget = FileBudget(fetcher.budget, requests=requests, hosts=hosts, total_bytes=total_bytes)
    return FileLoader(fetcher.out, budget, time.monotonic() + seconds)


def file_at(url: str, **changes: object) -> FileRequest:
    return replace(FileRequest(url, "GET", {}, b"", "", delayed=False, allows=lambda _: True), **changes)  # type: ignore[arg-type]


def test_sixty_hosts_of_one_page_are_not_all_asked(web: Web, fetcher_of: Callable[..., PageFetcher]) -> None:
    """Neither for a file nor for a robots.txt, and a host that a limit refuses is not asked at all."""
    web.page("/a.js", b"1", Content_Type="text/javascript")
    for limits, page_hosts, rule in (({"hosts": 1}, 8, "budget"), ({"hosts": 50}, 3, "hosts of the page")):
        web.begun.clear()
        fetcher = fetcher_of(**limits)
        loader = loader_of(fetcher, hosts=page_hosts)
        came = [loader.load(file_at(f"http://{host}/a.js")) for host in list(HOSTS)[:60]]
        allowed = min(limits["hosts"], page_hosts)
        assert len({host for host, _, _ in web.begun}) == sum(answer is not None for answer in came) == allowed
        assert loader.refused == {rule: 60 - allowed}
        assert fetcher.budget.spent[0] == 0


def test_requests_and_bytes_end(web: Web, fetcher_of: Callable[..., PageFetcher]) -> None:
    web.page("/a.js", b"x" * 5_000)
    for limits, rule in (({"requests": 3}, "requests of the page"), ({"total_bytes": 12_000}, "bytes of the page")):
        fetcher = fetcher_of()
        loader = loader_of(fetcher, **limits)  # type: ignore[arg-type]
        came = [loader.load(file_at("http://h0.test/a.js")) for _ in range(5)]
        assert came[0] and not came[-1] and set(loader.refused) == {rule}
        assert 5_000 < fetcher.budget.spent[1] < 20_000


@contextmanager
def counted(web: Web, path: str) -> Iterator[list[int]]:
    """How many requests for a path were under way at the same time, at each of their begins."""
    now, seen, lock = [0], list[int](), threading.Lock()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        with lock:
            now[0] += 1
            seen.append(now[0])
        time.sleep(0.05)
        with lock:
            now[0] -= 1
        handler.send_response(200)
        handler.end_headers()

    web.pages[path] = answer
    yield seen


def test_files_of_a_host_come_one_at_a_time_and_data_keeps_the_delay(web: Web, fetcher_of: Callable[..., PageFetcher]) -> None:
    web.page("/robots.txt", b"User-agent: *\nCrawl-delay: 0.4", Content_Type="text/plain")
    fetcher = fetcher_of()
    with counted(web, "/a.js") as seen:
        started = time.monotonic()
        threads = [threading.Thread(target=loader_of(fetcher).load, args=(file_at("http://h0.test/a.js"),)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.monotonic() - started
    assert (seen, web.paths().count("/robots.txt")) == ([1, 1, 1, 1], 1)
    assert took < 1.2
    ended, loader = web.times()[-1][1], loader_of(fetcher)
    assert loader.load(file_at("http://h0.test/a.js", delayed=True))
    assert web.times()[-1][0] - ended > 0.35
    quick = loader_of(fetcher, seconds=0.2)
    assert quick.load(file_at("http://h0.test/a.js", delayed=True)) is None
    assert quick.refused == {"delay of the host": 1}


def test_too_many_requests_end_all_requests_to_the_host(web: Web, fetcher_of: Callable[..., PageFetcher]) -> None:
    web.page("/a.js", b"", 429, Retry_After="3600")
    web.page("/b.js")
    fetcher = fetcher_of()
    loader = loader_of(fetcher)
    first = loader.load(file_at("http://h0.test/a.js"))
    assert first is not None and first.status == 429
    assert loader.load(file_at("http://h0.test/b.js")) is None
    assert loader.load(file_at("http://h1.test/b.js"))
    with pytest.raises(FetchFailedError, match=r"the host asks to wait 3\d\d\d s"):
        fetcher_of().fetch("http://h0.test/b.js", deadline_s=5)
    assert [path for host, path, _ in web.begun if host == "h0.test"] == ["/robots.txt", "/a.js"]


def test_a_short_wait_that_a_host_asks_for_is_kept(web: Web, fetcher_of: Callable[..., PageFetcher]) -> None:
    web.page("/a.js", b"", 429, Retry_After="1")
    web.page("/b.js")
    loader = loader_of(fetcher_of())
    loader.load(file_at("http://h0.test/a.js"))
    assert loader.load(file_at("http://h0.test/b.js"))
    (_, first), (second, _) = web.times()
    assert second - first > 0.9


def test_robots_txt_and_the_policy_judge_each_address_of_the_way(web: Web, fetcher_of: Callable[..., PageFetcher]) -> None:
    web.page("h1.test/robots.txt", b"User-agent: *\nDisallow: /private/", Content_Type="text/plain")
    web.redirect("/forbidden", "http://h1.test/private/a.js")
    web.redirect("/inside", "http://inside.test/a.js")
    web.redirect("/elsewhere", "http://h2.test/a.js")
    web.redirect("/loop", "/loop")
    web.redirect("/moved", "//h1.test/a.js")
    web.page("h1.test/a.js", b"moved")
    loader = loader_of(fetcher_of())
    refused = ("forbidden", "inside", "elsewhere", "loop")
    came = [loader.load(file_at(f"http://h0.test/{path}", allows=lambda url: "h2" not in url)) for path in refused]
    assert came == [None] * 4
    assert loader.refused == {"robots": 1, "address": 1, "redirect": 1, "redirects": 1}
    moved = loader.load(file_at("http://h0.test/moved"))
    assert moved is not None and moved.body == b"moved"
    assert not any(path in ("/private/a.js", "/a.js") for host, path, _ in web.begun if host != "h1.test")


def test_a_request_is_sent_as_the_browser_has_it_under_the_name_of_this_program(web: Web, fetcher_of: Callable[..., PageFetcher]) -> None:
    got: list[tuple[str, dict[str, str], bytes]] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", "0")))
        got.append((handler.command, {name.lower(): value for name, value in handler.headers.items()}, body))
        handler.send_response(200)
        for name, value in (("Set-Cookie", "a=1; Path=/"), ("Set-Cookie", "b=2"), ("X-Kept", "yes")):
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(b"{}")

    web.pages["/api"] = answer
    headers = {
        "accept": "application/json",
        "x-token": "7",
        "user-agent": "Other",
        "sec-ch-ua": "Other",
        "cookie": "old",
        "content-type": "a/b",
    }
    request = file_at("http://h0.test/api", method="POST", headers=headers, body=b"query", cookies="id=9")
    answered = loader_of(fetcher_of()).load(request)
    assert answered is not None
    assert (answered.headers["set-cookie"], answered.headers["x-kept"]) == ("a=1; Path=/\nb=2", "yes")
    [(method, sent, body)] = got
    assert (method, body) == ("POST", b"query")
    assert sent == {
        **{"host": "h0.test", "user-agent": "pandora-dagster/test", "accept-encoding": "gzip, deflate", "connection": "close"},
        **{"accept": "application/json", "x-token": "7", "content-type": "a/b", "cookie": "id=9", "content-length": "5"},
    }
