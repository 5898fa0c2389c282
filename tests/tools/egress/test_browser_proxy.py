"""The proxy of a page: what it lets through, what it refuses, where it ends."""

import socket
from collections.abc import Iterator
from time import monotonic

import pytest

from pandora_dagster.tools.egress.address_guard import AddressGuard
from pandora_dagster.tools.egress.browser_proxy import BrowserProxy, PageTraffic
from pandora_dagster.tools.egress.resolver import DialTarget, HostsFileResolver
from tests.tools.egress.conftest import NAMES, Web


@pytest.fixture
def proxies(web: Web) -> Iterator[list[BrowserProxy]]:
    made: list[BrowserProxy] = []
    yield made
    for proxy in made:
        proxy.close()


def proxy_over(web: Web, proxies: list[BrowserProxy], traffic: PageTraffic) -> BrowserProxy:
    """Every address of the names is dialled at the web, so that what is not checked would be reached."""
    addresses = [address for answers in NAMES.values() for address in answers]
    guard = AddressGuard(HostsFileResolver(NAMES, dict.fromkeys(addresses, DialTarget("127.0.0.1", web.port))))
    proxies.append(BrowserProxy(guard, traffic))
    return proxies[-1]


def traffic_of(requests: int = 50, max_bytes: int = 1_000_000) -> PageTraffic:
    return PageTraffic(requests, max_bytes, monotonic() + 5)


def ask(proxy: BrowserProxy, request: str) -> bytes:
    """All bytes of the answer."""
    with socket.create_connection(("127.0.0.1", int(proxy.address.rpartition(":")[2])), timeout=5) as connection:
        connection.sendall(request.encode())
        answer = b""
        while data := connection.recv(65_536):
            answer += data
        return answer


def test_a_request_is_passed_on_in_origin_form(web: Web, proxies: list[BrowserProxy]) -> None:
    web.page("/x", b"text")
    traffic = traffic_of()
    request = "GET http://a.test/x HTTP/1.1\r\nHost: inside.test\r\nProxy-Connection: keep-alive\r\nAccept: a/b\r\n\r\n"
    answer = ask(proxy_over(web, proxies, traffic), request)
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b"text")
    assert [(host, path) for host, path, _ in web.begun] == [("a.test", "/x")]
    assert web.headers["accept"] == "a/b"
    assert "proxy-connection" not in web.headers
    assert (traffic.requests, traffic.received > 4) == (1, True)


@pytest.mark.parametrize(
    ("request_line", "rule"),
    [
        ("GET http://inside.test/ HTTP/1.1", "address"),
        ("GET http://127.0.0.1/ HTTP/1.1", "address"),
        ("GET http://2130706433/ HTTP/1.1", "address"),
        ("GET http://[::ffff:127.0.0.1]/ HTTP/1.1", "address"),
        ("GET http://a.test:22/ HTTP/1.1", "port"),
        ("GET file:///etc/passwd HTTP/1.1", "scheme"),
        ("GET /x HTTP/1.1", "scheme"),
        ("CONNECT inside.test:443 HTTP/1.1", "address"),
        ("CONNECT [::1]:443 HTTP/1.1", "address"),
        ("CONNECT a.test:80 HTTP/1.1", "tunnel"),
        ("CONNECT a.test:25 HTTP/1.1", "port"),
        ("CONNECT a.test HTTP/1.1", "address form"),
        ("GET http://unknown.test/ HTTP/1.1", "no answer"),
    ],
)
def test_what_the_guard_refuses_is_refused(request_line: str, rule: str, web: Web, proxies: list[BrowserProxy]) -> None:
    traffic = traffic_of()
    answer = ask(proxy_over(web, proxies, traffic), f"{request_line}\r\nHost: x\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 502" if rule == "no answer" else b"HTTP/1.1 403")
    assert dict(traffic.refusals) == {rule: 1}
    assert web.begun == []


def test_a_name_is_judged_at_each_request(web: Web, proxies: list[BrowserProxy]) -> None:
    proxy = proxy_over(web, proxies, traffic_of())
    web.page("/", b"text")
    answers = [ask(proxy, "GET http://turns.test/ HTTP/1.1\r\nHost: turns.test\r\n\r\n")[:12] for _ in range(2)]
    assert answers == [b"HTTP/1.1 200", b"HTTP/1.1 403"]


def test_a_tunnel_carries_bytes_both_ways(web: Web, proxies: list[BrowserProxy]) -> None:
    web.page("/x", b"text")
    answer = ask(
        proxy_over(web, proxies, traffic_of()), "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\nGET /x HTTP/1.0\r\nHost: a.test\r\n\r\n"
    )
    assert answer.startswith(b"HTTP/1.1 200 Connection established\r\n\r\n")
    assert answer.endswith(b"text")


def test_requests_and_bytes_are_limited(web: Web, proxies: list[BrowserProxy]) -> None:
    web.page("/x", b"x" * 50_000)
    request = "GET http://a.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n"
    few = proxy_over(web, proxies, traffic_of(requests=1))
    assert [ask(few, request)[:12] for _ in range(2)] == [b"HTTP/1.1 200", b"HTTP/1.1 403"]
    assert len(ask(proxy_over(web, proxies, traffic_of(max_bytes=20_000)), request)) < 30_000


def test_a_request_that_is_not_http_ends(web: Web, proxies: list[BrowserProxy]) -> None:
    assert ask(proxy_over(web, proxies, traffic_of()), "\x16\x03\x01 no request\r\n\r\n") == b""
