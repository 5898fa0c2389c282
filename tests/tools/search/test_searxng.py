"""The SearXNG provider: its address may be internal, what it answers is only believed where it is an address of the web."""

import json
import socket
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from pandora_dagster.errors import FetchFailedError, FetchRefusedError
from pandora_dagster.tools.egress.resolver import DialTarget, HostsFileResolver
from pandora_dagster.tools.egress.web_client import WebClient
from pandora_dagster.tools.search.searxng import SearxngProvider, ServiceAddress
from tests.tools.egress.conftest import Web, serving
from tests.tools.egress.test_page_fetcher import drips


@pytest.fixture
def web() -> Iterator[Web]:
    with serving(Web()) as answering:
        yield answering


def provider(web: Web) -> SearxngProvider:
    """A service on a private address, dialled on the test's server."""
    resolver = HostsFileResolver({"search.internal": ["10.0.0.9"]}, {"10.0.0.9": DialTarget("127.0.0.1", web.port)})
    return SearxngProvider(ServiceAddress("http", "search.internal", 80, "/search"), WebClient("test"), resolver)


ASKED = "/search?q=arc+60+%26+more&format=json&pageno=2&language=en"


def answer(web: Web, body: bytes, status: int = 200) -> None:
    web.page(ASKED, body, status, Content_Type="application/json")


def test_results_are_hits_in_order_and_what_is_no_address_is_named(web: Web) -> None:
    rows = [
        {"url": "http://a.test/1", "title": " Arc\n60 ", "content": "74.99"},
        {"url": "javascript:alert(1)", "title": "x"},
        {"url": "file:///etc/passwd"},
        {"url": "http://a.test/1", "title": "again"},
        {"url": "http://[broken", "title": "x"},
        {"title": "no address"},
        "no row",
        {"url": "https://b.test/2", "title": 7, "content": None},
    ]
    answer(web, json.dumps({"results": rows}).encode())
    found = provider(web).search("arc 60 & more", page=2, language="en")
    assert [(hit.url, hit.title, hit.snippet) for hit in found.hits] == [
        ("http://a.test/1", "Arc 60", "74.99"),
        ("https://b.test/2", "", ""),
    ]
    assert len(found.notices) == 5 and "javascript:" in found.notices[0]


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"results": "none"}', b'{"results": null}', b"{}", b"\xff\xfe{"])
def test_an_answer_without_results_is_a_failure_with_its_reason(web: Web, body: bytes) -> None:
    answer(web, body)
    with pytest.raises(FetchFailedError, match="searxng: the answer"):
        provider(web).search("arc 60 & more", page=2, language="en")


@pytest.mark.parametrize(("status", "retryable"), [(429, True), (503, True), (500, False), (403, False), (302, False)])
def test_a_service_that_does_not_answer_is_a_failure(web: Web, status: int, retryable: bool) -> None:
    answer(web, b"busy", status)
    with pytest.raises(FetchFailedError, match=str(status)) as raised:
        provider(web).search("arc 60 & more", page=2, language="en")
    assert raised.value.retryable is retryable


def test_an_answer_over_the_limit_is_refused(web: Web) -> None:
    answer(web, b" " * 4_100_000)
    with pytest.raises(FetchRefusedError):
        provider(web).search("arc 60 & more", page=2, language="en")


@pytest.mark.parametrize(("first", "drop"), [(b"", b""), (b"HTTP/1.0 200 OK\r\n\r\n{", b" ")])
def test_a_slow_service_is_a_failure_in_bounded_time(web: Web, first: bytes, drop: bytes) -> None:
    """One that never answers, and one whose answer never ends."""
    web.pages[ASKED] = drips(first, drop)
    began = time.monotonic()
    with pytest.raises(FetchFailedError, match="not complete within") as raised:
        replace(provider(web), timeout_s=0.3).search("arc 60 & more", page=2, language="en")
    assert raised.value.retryable and time.monotonic() - began < 10


def test_a_service_that_is_down_is_a_failure(web: Web) -> None:
    with socket.socket() as closed:  # bound, and not listening
        closed.bind(("127.0.0.1", 0))
        down = replace(web, port=closed.getsockname()[1])
        with pytest.raises(FetchFailedError, match=r"10\.0\.0\.9|search\.internal"):
            provider(down).search("arc 60 & more", page=2, language="en")


def test_a_service_that_finds_nothing_has_no_hits(web: Web) -> None:
    answer(web, b'{"results": []}')
    found = provider(web).search("arc 60 & more", page=2, language="en")
    assert (found.hits, found.notices) == ((), ())
