"""Pages come whole, or there is one reason why not; a server cannot make the fetcher wait, fill memory or reach inside."""

import gzip
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from itertools import pairwise

import pytest

from pandora_dagster.errors import FetchError, FetchFailedError, FetchRefusedError
from pandora_dagster.tools.egress import polite_client
from tests.tools.egress.conftest import FetcherOf, Web

PAGE = b"<p>text</p>"


def refused(fetch: Callable[[], object]) -> str:
    with pytest.raises(FetchRefusedError) as error:
        fetch()
    return error.value.rule


def drips(first: bytes, drop: bytes, pause_s: float = 0.05, count: int = 400) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(first)
        for _ in range(count):
            handler.wfile.write(drop)
            handler.wfile.flush()
            time.sleep(pause_s)

    return answer


def test_a_page_comes_with_its_headers_and_nothing_of_the_user_is_sent(web: Web, fetcher_of: FetcherOf) -> None:
    web.page("/x?q=1", ETag='"1"', Set_Cookie="id=7")
    fetcher = fetcher_of()
    page = fetcher.fetch("http://a.test/x?q=1#part", deadline_s=10)
    assert (page.url, page.final_url, page.status, page.body) == ("http://a.test/x?q=1", "http://a.test/x?q=1", 200, PAGE)
    assert (page.headers["etag"], page.hops, page.notices) == ('"1"', ("http://a.test/x?q=1",), ())
    assert page.fetched_at.tzinfo is not None
    fetcher.fetch("http://a.test/x?q=1", deadline_s=10)
    assert {name.lower() for name in web.headers} == {"host", "user-agent", "accept", "accept-encoding", "connection"}
    assert (web.headers["Host"], web.headers["User-Agent"]) == ("a.test", "pandora-dagster/test")


@pytest.mark.parametrize(
    ("coding", "encode"),
    [
        ("gzip", gzip.compress),
        ("GZIP", lambda body: gzip.compress(body[:3]) + gzip.compress(body[3:])),
        ("gzip", lambda body: gzip.compress(body) + b"\0" * 100),
        ("deflate", zlib.compress),
        ("deflate", lambda body: zlib.compress(body, wbits=-15)),
        ("identity", bytes),
    ],
)
def test_a_body_is_unpacked(web: Web, fetcher_of: FetcherOf, coding: str, encode: Callable[[bytes], bytes]) -> None:
    body = b"<p>" + b"word " * 50_000
    web.page("/", encode(body), Content_Encoding=coding)
    assert fetcher_of().fetch("http://a.test/", deadline_s=10).body == body


# Named, because the bytes of gzip hold the time: processes that collect the tests in different seconds would name them differently.
@pytest.mark.parametrize(
    ("coding", "body"),
    [("gzip", PAGE), ("gzip", gzip.compress(PAGE * 99)[:-9]), ("deflate", b"\xff" * 50)],
    ids=["gzip not packed", "gzip cut off", "deflate not packed"],
)
def test_a_damaged_body_is_a_failure(web: Web, fetcher_of: FetcherOf, coding: str, body: bytes) -> None:
    web.page("/", body, Content_Encoding=coding)
    with pytest.raises(FetchFailedError, match=r"http://a\.test/: (damaged|the gzip body ends)"):
        fetcher_of().fetch("http://a.test/", deadline_s=10)


def test_what_was_not_asked_for_is_not_unpacked(web: Web, fetcher_of: FetcherOf) -> None:
    web.page("/twice", gzip.compress(gzip.compress(PAGE)), Content_Encoding="gzip, gzip")
    web.page("/br", PAGE, Content_Encoding="br")
    assert {refused(lambda path=path: fetcher_of().fetch(f"http://a.test{path}", deadline_s=9)) for path in ("/twice", "/br")} == {
        "content encoding"
    }


def test_a_large_page_ends_at_the_limit(web: Web, fetcher_of: FetcherOf) -> None:
    """50 MB: declared, undeclared, packed into 50 kB, as headers."""
    web.page("/declared", b"", Content_Length=str(50_000_000))
    web.pages["/undeclared"] = drips(b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n", b"x" * 1_000_000, pause_s=0, count=50)
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(b" " * 1_000_000) for _ in range(50)) + packer.flush()
    web.page("/bomb", bomb, Content_Encoding="gzip")
    web.pages["/headers"] = drips(b"HTTP/1.0 200 OK\r\n", b"X-Fill: " + b"x" * 10_000 + b"\r\n", pause_s=0, count=50)
    fetcher = fetcher_of()
    for path in ("/declared", "/undeclared", "/bomb"):
        assert refused(lambda path=path: fetcher.fetch(f"http://a.test{path}", deadline_s=9)) == "size"
    with pytest.raises(FetchError):
        fetcher.fetch("http://a.test/headers", deadline_s=9)


@pytest.mark.parametrize(
    ("first", "drop"),
    [
        (b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n", b"x"),
        (b"HTTP/1.0 200 OK\r\n", b"X"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        (b"", b""),
    ],
)
def test_an_endless_drip_ends_at_the_deadline(web: Web, fetcher_of: FetcherOf, first: bytes, drop: bytes) -> None:
    web.pages["/"] = drips(first, drop)
    started = time.monotonic()
    with pytest.raises(FetchFailedError, match="not complete within"):
        fetcher_of(page_seconds=0.5).fetch("http://a.test/", deadline_s=10)
    assert time.monotonic() - started < 2


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshort", b"\0" * 2_000])
def test_what_is_not_http_is_a_failure(web: Web, fetcher_of: FetcherOf, answer: bytes) -> None:
    web.pages["/"] = lambda handler: handler.wfile.write(answer) and None
    with pytest.raises(FetchFailedError):
        fetcher_of().fetch("http://a.test/", deadline_s=10)


def test_redirects_are_followed_and_recorded(web: Web, fetcher_of: FetcherOf) -> None:
    web.redirect("a.test/old", "//b.test/new page")
    web.redirect("b.test/new%20page", "last?x=1#y")
    web.page("b.test/last?x=1")
    page = fetcher_of().fetch("http://a.test/old", deadline_s=10)
    assert page.hops == ("http://a.test/old", "http://b.test/new%20page", "http://b.test/last?x=1")
    assert (page.url, page.final_url) == (page.hops[0], page.hops[-1])


@pytest.mark.parametrize(
    ("target", "rule"),
    [
        *(("http://127.0.0.1/", "address"), ("http://2130706433/", "address"), ("http://inside.test/", "address")),
        *(("http://[::ffff:7f00:1]/", "address"), ("//localhost/", "address"), ("http://169.254.169.254/latest/", "address")),
        *(("file:///etc/passwd", "scheme"), ("data:text/html,x", "scheme"), ("javascript:alert(1)", "scheme"), ("ftp://b.test/", "scheme")),
        *(("http://b.test:6379/", "port"), ("http://u:p@b.test/", "credentials"), ("http://[::1", "address form")),
    ],
)
def test_a_redirect_is_judged_like_the_first_address(web: Web, fetcher_of: FetcherOf, target: str, rule: str) -> None:
    web.redirect("/", target)
    with pytest.raises(FetchRefusedError, match=r"http://a\.test/ redirects to ") as error:
        fetcher_of().fetch("http://a.test/", deadline_s=10)
    assert (error.value.rule, web.paths()) == (rule, ["/robots.txt", "/"])


def test_a_name_that_changes_to_an_inside_address_is_refused(web: Web, fetcher_of: FetcherOf) -> None:
    """Rebinding: the page of the public address redirects to its own name, which is 127.0.0.1 by then."""
    web.redirect("turns.test/", "/again")
    assert refused(lambda: fetcher_of().fetch("http://turns.test/", deadline_s=10)) == "address"
    assert web.paths() == ["/robots.txt", "/"]


def test_loops_and_long_chains_end(web: Web, fetcher_of: FetcherOf) -> None:
    web.redirect("/a", "/b")
    web.redirect("/b", "/a")
    with pytest.raises(FetchFailedError, match=r"a loop of redirects: http://a\.test/a -> http://a\.test/b -> http://a\.test/a$"):
        fetcher_of().fetch("http://a.test/a", deadline_s=10)
    for number in range(30):
        web.redirect(f"/{number}", f"/{number + 1}")
    assert refused(lambda: fetcher_of().fetch("http://a.test/0", deadline_s=10)) == "redirects"
    assert web.paths()[-1] == "/5"


@pytest.mark.parametrize(
    ("robots", "status", "path", "allowed"),
    [
        ("User-agent: *\nDisallow: /private/", 200, "/private/x", False),
        ("User-agent: *\nDisallow: /private/", 200, "/public/%2e./private/x", False),
        ("User-agent: *\nDisallow: /private/", 200, "/public", True),
        ("User-agent: *\nDisallow: /*?print=", 200, "/a?print=1", False),
        ("User-agent: pandora-dagster\nDisallow: /\n\nUser-agent: *\nAllow: /", 200, "/", False),
        ("User-agent: OtherBot\nDisallow: /", 200, "/", True),
        ("\ufeffUser-agent: *\r\nDisallow: /", 200, "/", False),
        ("not there", 404, "/", True),
        ("forbidden", 403, "/", True),
        ("broken", 500, "/", False),
        ("too many", 429, "/", False),
        ("#" * 600_000, 200, "/", False),
        ("\0\xff" * 100, 200, "/", True),
    ],
)
def test_robots_decide(web: Web, fetcher_of: FetcherOf, robots: str, status: int, path: str, allowed: bool) -> None:
    web.page("/robots.txt", robots.encode(), status, Content_Type="text/plain")
    for shown in ("/private/x", "/public", "/a?print=1", "/"):
        web.page(shown)
    if allowed:
        assert fetcher_of().fetch(f"http://a.test{path}", deadline_s=10).body == PAGE
    else:
        assert refused(lambda: fetcher_of().fetch(f"http://a.test{path}", deadline_s=10)) == "robots"
        assert web.paths() == ["/robots.txt"]


def test_robots_that_never_answer_disallow_and_are_not_asked_for_at_once_again(
    web: Web, fetcher_of: FetcherOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polite_client, "_ROBOTS_SECONDS", 0.2)
    web.pages["/robots.txt"] = lambda _: time.sleep(1)
    web.page("/")
    for _ in range(2):
        with pytest.raises(FetchRefusedError, match=r"robots.txt of a.test does not come: .* not complete"):
            fetcher_of().fetch("http://a.test/", deadline_s=10)
    time.sleep(1)
    assert web.paths() == ["/robots.txt"]


def test_robots_behind_a_redirect(web: Web, fetcher_of: FetcherOf) -> None:
    web.redirect("a.test/robots.txt", "http://b.test/rules")
    web.page("b.test/rules", b"User-agent: *\nDisallow: /x")
    web.page("/y")
    assert refused(lambda: fetcher_of().fetch("http://a.test/x", deadline_s=10)) == "robots"
    assert fetcher_of().fetch("http://a.test/y", deadline_s=10).body == PAGE
    web.redirect("b.test/robots.txt", "http://127.0.0.1/")
    assert refused(lambda: fetcher_of().fetch("http://b.test/y", deadline_s=10)) == "robots"


def test_a_host_gets_one_request_at_a_time_with_its_delay(web: Web, fetcher_of: FetcherOf) -> None:
    """Over threads and over fetchers of one store, as of two processes."""
    web.page("/robots.txt", b"User-agent: *\nCrawl-delay: 0.2", Content_Type="text/plain")
    for number in range(4):
        web.pages[f"/{number}"] = drips(b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n", b"x", pause_s=0.02, count=3)
    threads = [threading.Thread(target=fetcher_of().fetch, args=(f"http://a.test/{n}",), kwargs={"deadline_s": 10}) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    times = web.times()
    assert len(times) == 4 and web.paths().count("/robots.txt") == 1
    assert all(after[0] - before[1] > 0.15 for before, after in pairwise(times))


def test_a_delay_over_the_deadline_is_a_reason_and_no_wait(web: Web, fetcher_of: FetcherOf) -> None:
    web.page("/robots.txt", b"User-agent: *\nCrawl-delay: 3600", Content_Type="text/plain")
    web.page("/")
    fetcher_of().fetch("http://a.test/", deadline_s=10)
    started = time.monotonic()
    with pytest.raises(FetchFailedError, match="asks to wait 3600 s before the next request, which is too long"):
        fetcher_of().fetch("http://a.test/", deadline_s=10)
    assert time.monotonic() - started < 1


def answers_in_turn(*answers: tuple[int, dict[str, str]]) -> Callable[[BaseHTTPRequestHandler], None]:
    left = list(answers)

    def answer(handler: BaseHTTPRequestHandler) -> None:
        status, headers = left.pop(0) if len(left) > 1 else left[0]
        handler.send_response(status)
        for name, value in {"Content-Type": "text/html", "Content-Length": "0", **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()

    return answer


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_obeyed(web: Web, fetcher_of: FetcherOf, status: int) -> None:
    web.pages["/"] = answers_in_turn((status, {"Retry-After": "1"}), (200, {}))
    assert fetcher_of().fetch("http://a.test/", deadline_s=10).status == 200
    first, second = web.times()
    assert second[0] - first[1] > 0.9


def test_a_wait_that_is_too_long_or_never_ends_is_a_reason(web: Web, fetcher_of: FetcherOf) -> None:
    web.pages["/later"] = answers_in_turn((503, {"Retry-After": formatdate(time.time() + 3_000, usegmt=True)}))
    web.pages["/never"] = answers_in_turn((503, {"Retry-After": "0"}))
    web.pages["/broken"] = answers_in_turn((503, {"Retry-After": "soon"}))
    web.pages["/much"] = answers_in_turn((429, {"Retry-After": "3600"}))
    web.page("/other")
    fetcher = fetcher_of()
    for path, reason in (("/later", "503 and asks to wait (2999|3000) s"), ("/never", "503 and asks to wait 0 s"), ("/broken", "503$")):
        with pytest.raises(FetchFailedError, match=reason) as failed:
            fetcher.fetch(f"http://a.test{path}", deadline_s=10)
        assert failed.value.retryable
    assert web.paths().count("/never") == 3
    assert fetcher.fetch("http://a.test/other", deadline_s=10).status == 200
    with pytest.raises(FetchFailedError, match="429 and asks to wait 3600 s"):
        fetcher.fetch("http://a.test/much", deadline_s=10)
    with pytest.raises(FetchFailedError, match=r"/other: the host asks to wait 36\d\d s"):
        fetcher_of().fetch("http://a.test/other", deadline_s=10)


def test_what_is_no_page_is_not_read(web: Web, fetcher_of: FetcherOf) -> None:
    web.page("/video", b"x" * 100, Content_Type="video/mp4")
    web.page("/none", b"text", Content_Type="")
    web.page("/pdf", b"%PDF", Content_Type="Application/PDF; x=y")
    web.page("/gone", b"<h1>gone</h1>", 410)
    assert refused(lambda: fetcher_of().fetch("http://a.test/video", deadline_s=10)) == "content type"
    assert fetcher_of().fetch("http://a.test/none", deadline_s=10).body == b"text"
    assert fetcher_of().fetch("http://a.test/pdf", deadline_s=10).body == b"%PDF"
    assert fetcher_of().fetch("http://a.test/gone", deadline_s=10).status == 410


def test_a_budget_ends_pages_hosts_bytes_and_seconds(web: Web, fetcher_of: FetcherOf) -> None:
    web.page("/")
    for limits, count in (({"pages": 2}, 2), ({"seconds": 0}, 0)):
        fetcher = fetcher_of(**limits)
        for _ in range(count):
            fetcher.fetch("http://a.test/", deadline_s=10)
        with pytest.raises(FetchRefusedError, match=r"the budget of [\d,]+ (pages|seconds) is used up"):
            fetcher.fetch("http://a.test/", deadline_s=10)
    fetcher = fetcher_of(hosts=1)
    fetcher.fetch("http://a.test/", deadline_s=10)
    fetcher.fetch("http://a.test/", deadline_s=10)
    assert refused(lambda: fetcher.fetch("http://b.test/", deadline_s=10)) == "budget"


def test_bytes_count_as_they_come_also_of_what_is_refused(web: Web, fetcher_of: FetcherOf) -> None:
    """robots.txt, a page over its limit and an answer that breaks off: all of their bytes came."""
    web.page("/robots.txt", b"#" * 3_000, Content_Type="text/plain")
    web.page("/large", b"x" * 50_000)
    web.pages["/undeclared"] = drips(b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n", b"x" * 1_000, pause_s=0, count=50)
    web.page("/cut", b"x" * 4_000, Content_Length="9000")
    fetcher = fetcher_of(page_bytes=10_000, total_bytes=60_000)
    fetcher.fetch("http://a.test/robots.txt", deadline_s=10)
    assert 6_000 < fetcher.budget.spent[1] < 7_000
    assert refused(lambda: fetcher.fetch("http://a.test/undeclared", deadline_s=10)) == "size"
    assert 16_000 < (before := fetcher.budget.spent[1]) < 60_000
    with pytest.raises(FetchFailedError):
        fetcher.fetch("http://a.test/cut", deadline_s=10)
    assert fetcher.budget.spent[1] > before + 4_000
    fetcher.budget.spend(60_000)
    asked = len(web.begun)
    with pytest.raises(FetchRefusedError, match="the budget of 60,000 bytes is used up"):
        fetcher.fetch("http://b.test/", deadline_s=10)
    assert len(web.begun) == asked


def test_robots_txt_counts_as_a_host_and_not_as_a_page(web: Web, fetcher_of: FetcherOf) -> None:
    """A robots.txt that redirects from host to host reaches as many as the budget has, and their answer says nothing of the host."""
    web.redirect("a.test/robots.txt", "http://b.test/robots.txt")
    web.page("b.test/robots.txt", b"User-agent: *\nAllow: /", Content_Type="text/plain")
    web.page("/")
    fetcher = fetcher_of(hosts=1, pages=1)
    assert refused(lambda: fetcher.fetch("http://a.test/", deadline_s=10)) == "budget"
    assert [host for host, _, _ in web.begun] == ["a.test"]
    fetcher = fetcher_of(hosts=2, pages=1)
    assert fetcher.fetch("http://a.test/", deadline_s=10).status == 200
    assert fetcher.budget.spent[0] == 1


def test_a_request_after_a_wait_counts_as_a_page(web: Web, fetcher_of: FetcherOf) -> None:
    web.pages["/"] = answers_in_turn((503, {"Retry-After": "0"}), (503, {"Retry-After": "0"}), (200, {}))
    assert refused(lambda: fetcher_of(pages=2).fetch("http://a.test/", deadline_s=10)) == "budget"
    assert web.paths().count("/") == 2


def test_a_wait_that_a_host_asks_for_holds_back_its_robots_txt(web: Web, fetcher_of: FetcherOf) -> None:
    web.page("/robots.txt", b"", 429, Retry_After="3600")
    assert refused(lambda: fetcher_of().fetch("http://a.test/", deadline_s=10)) == "robots"
    later = time.time() + 600
    fetcher = fetcher_of()
    with pytest.raises(FetchFailedError, match=r"the host asks to wait 3\d\d\d s"):
        replace(fetcher, out=replace(fetcher.out, clock=lambda: later)).fetch("http://a.test/", deadline_s=10)
    assert web.paths() == ["/robots.txt"]


def test_robots_txt_of_two_hosts_that_redirect_to_each_other_do_not_wait_for_ever(
    web: Web, fetcher_of: FetcherOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polite_client, "_ROBOTS_SECONDS", 0.5)
    for host, other in (("a.test", "b.test"), ("b.test", "a.test")):
        web.pages[f"{host}/robots.txt"] = lambda handler, other=other: (time.sleep(0.2), _redirect(handler, other))[1]
    started, outcomes = time.monotonic(), list[str]()

    def fetch(host: str) -> None:
        outcomes.append(refused(lambda: fetcher_of().fetch(f"http://{host}/", deadline_s=10)))

    threads = [threading.Thread(target=fetch, args=(host,)) for host in ("a.test", "b.test")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == ["robots", "robots"]
    assert time.monotonic() - started < 5


def _redirect(handler: BaseHTTPRequestHandler, host: str) -> None:
    handler.send_response(302)
    handler.send_header("Location", f"http://{host}/robots.txt")
    handler.end_headers()


def test_a_server_that_is_not_there_is_a_failure(web: Web, fetcher_of: FetcherOf) -> None:
    web.port = 1
    fetcher = fetcher_of()
    with pytest.raises(FetchFailedError, match="Connection refused") as failed:
        fetcher.out.client.send(fetcher.out.check("http://a.test/", time.monotonic() + 1), timeout_s=1, max_bytes=9, reads=lambda _: True)
    assert failed.value.retryable
    assert fetcher.budget.seconds_left > 0


def test_a_page_that_has_not_changed_costs_no_body(web: Web, fetcher_of: FetcherOf) -> None:
    web.page("/a", b"<p>first</p>", ETag='"7"', Last_Modified="Thu, 01 Oct 2026 10:00:00 GMT")
    known = fetcher_of().fetch("http://a.test/a", deadline_s=9)
    web.page("/a", b"", 304)
    page = fetcher_of().fetch("http://a.test/a", deadline_s=9, known=known)
    assert (web.headers["If-None-Match"], web.headers["If-Modified-Since"]) == ('"7"', "Thu, 01 Oct 2026 10:00:00 GMT")
    assert (page.body, page.status, page.fetched_at > known.fetched_at) == (b"<p>first</p>", 200, True)
    assert page.notices[-1].startswith("not changed since ")
    web.page("/a", b"<p>second</p>", ETag='"8"')
    assert fetcher_of().fetch("http://a.test/a", deadline_s=9, known=known).body == b"<p>second</p>"


def test_a_page_is_asked_about_at_its_own_address_alone(web: Web, fetcher_of: FetcherOf) -> None:
    web.page("/a", b"<p>first</p>", ETag='"7"')
    known = fetcher_of().fetch("http://a.test/a", deadline_s=9)
    web.redirect("/moved", "/other")
    web.page("/other", b"<p>other</p>")
    assert fetcher_of().fetch("http://a.test/moved", deadline_s=9, known=known).body == b"<p>other</p>"
    assert "If-None-Match" not in web.headers
