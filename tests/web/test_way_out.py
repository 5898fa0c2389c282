"""No page reaches an address that is not public: a server on loopback counts connections."""

from itertools import pairwise

import pytest

from pandora_dagster.errors import FetchFailedError
from pandora_dagster.tools.browser.resource_policy import ResourcePolicy
from pandora_dagster.tools.egress import address_guard, robots
from pandora_dagster.tools.egress.page_fetcher import PageFetcher
from tests.tools.egress.conftest import Web
from tests.web.conftest import Canary, RendererOf, page

ATTEMPTS = {
    "fetch": "<script>fetch('http://127.0.0.1:PORT/').catch(() => {})</script>",
    "fetch of the same site that redirects": "<script>fetch('/to-canary', {mode: 'no-cors'}).catch(() => {})</script>",
    "image": "<img src='http://127.0.0.1:PORT/x.png'>",
    "image that redirects": "<img src='/to-canary'>",
    "script that redirects": "<script src='/to-canary'></script>",
    "style sheet that redirects": "<link rel=stylesheet href='http://b.test/to-canary'>",
    "frame": "<iframe src='http://127.0.0.1:PORT/'></iframe>",
    "frame that redirects": "<iframe src='/to-canary'></iframe>",
    "meta refresh": "<meta http-equiv=refresh content='0;url=http://127.0.0.1:PORT/'>",
    "script that moves on": "<script>location = 'http://127.0.0.1:PORT/'</script>",
    "window": "<script>open('http://127.0.0.1:PORT/')</script>",
    "WebSocket": "<script>new WebSocket('ws://127.0.0.1:PORT/')</script>",
    "encrypted WebSocket": "<script>new WebSocket('wss://127.0.0.1:PORT/')</script>",
    "beacon": "<script>navigator.sendBeacon('http://127.0.0.1:PORT/', 'x')</script>",
    "preconnect": "<link rel=preconnect href='http://127.0.0.1:PORT/'><link rel=dns-prefetch href='//127.0.0.1'>",
    "event source": "<script>new EventSource('http://127.0.0.1:PORT/')</script>",
    "worker": "<script>new Worker(URL.createObjectURL(new Blob([\"fetch('http://127.0.0.1:PORT/')\"])))</script>",
    "form": "<form action='http://127.0.0.1:PORT/' method=post><input name=a></form><script>document.forms[0].submit()</script>",
    "decimal address": "<script>fetch('http://2130706433:PORT/').catch(() => {})</script>",
    "mapped address": "<script src='http://[::ffff:127.0.0.1]:PORT/'></script>",
    "internal name": "<script src='http://inside.test/'></script><script>fetch('http://inside.test/').catch(() => {})</script>",
    "name that changes its address": "<script src='http://turns.test/a.js'></script><script src='http://turns.test/b.js'></script>"
    "<script src='http://turns.test/c.js'></script>",
    "WebRTC": "<script>new RTCPeerConnection({iceServers: [{urls: 'turn:127.0.0.1:PORT?transport=tcp', username: 'a', credential: 'b'}]})"
    ".createDataChannel('x')</script>",
}


@pytest.fixture
def redirecting(web: Web, canary: Canary) -> Web:
    web.redirect("/to-canary", f"http://127.0.0.1:{canary.port}/")
    return web


def hits_of_attempts(canary: Canary, renderer_of: RendererOf) -> dict[str, int]:
    """Connections that the internal server counts, by the attempt."""
    renderer, hits = renderer_of(), dict[str, int]()
    for name, attempt in ATTEMPTS.items():
        before = len(canary.hits)
        rendered = renderer.render(page(f"<p>The text.</p>{attempt.replace('PORT', str(canary.port))}"), deadline_s=30)
        assert "The text." in rendered.html, name
        hits[name] = len(canary.hits) - before
    return {name: number for name, number in hits.items() if number}


@pytest.mark.usefixtures("redirecting")
def test_no_way_leads_to_an_internal_server(canary: Canary, renderer_of: RendererOf, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the browser loads whatever a page asks for; without the guard most attempts arrive, so that they are real."""
    assert hits_of_attempts(canary, renderer_of) == {}
    monkeypatch.setattr(ResourcePolicy, "allows", lambda *_: True)
    monkeypatch.setattr(robots, "is_allowed", lambda *_: True)
    assert hits_of_attempts(canary, renderer_of) == {}
    monkeypatch.setattr(address_guard, "address_fault", lambda _: "")
    monkeypatch.setattr(address_guard, "_check_port", lambda *_: None)
    assert len(hits_of_attempts(canary, renderer_of)) > len(ATTEMPTS) / 2


def test_the_redirects_are_tried(redirecting: Web, canary: Canary, renderer_of: RendererOf) -> None:
    attempt = ATTEMPTS["script that redirects"]
    notices = renderer_of().render(page(attempt), deadline_s=30).notices
    assert "/to-canary" in redirecting.paths()
    assert any("by the rule 'port'" in notice or "by the rule 'address'" in notice for notice in notices), notices


def test_a_disallowed_file_is_not_loaded(web: Web, renderer_of: RendererOf) -> None:
    web.page("/robots.txt", b"User-agent: *\nDisallow: /private/", Content_Type="text/plain")
    web.page("/open/a.js", b"document.body.append('loaded')", Content_Type="text/javascript")
    scripts = "<script src=/private/a.js></script><script src=/open/a.js></script>"
    rendered = renderer_of().render(page(f"<body>{scripts}"), deadline_s=30)
    assert "loaded" in rendered.html
    assert web.paths() == ["/robots.txt", "/open/a.js"]
    assert "files of the page that were not loaded: 1 by the rule 'robots'" in rendered.notices


def test_another_site_gives_scripts_and_learns_nothing_else(web: Web, renderer_of: RendererOf) -> None:
    web.page("b.test/a.js", b"document.body.append('loaded')", Content_Type="text/javascript")
    calls = "fetch('http://b.test/collect?d=1', {mode: 'no-cors'}).catch(() => {}); navigator.sendBeacon('http://b.test/collect', 'x')"
    html = f"<body><img src=http://b.test/collect><script src=http://b.test/a.js></script><script>{calls}</script>"
    assert "loaded" in renderer_of().render(page(html), deadline_s=30).html
    assert web.paths() == ["/robots.txt", "/a.js"]


def test_the_page_itself_is_not_requested_again(web: Web, renderer_of: RendererOf) -> None:
    assert "Text." in renderer_of().render(page("<p>Text.</p>", "https://a.test/"), deadline_s=30).html
    assert web.paths() == []


def test_requests_and_bytes_of_a_page_have_limits(web: Web, renderer_of: RendererOf) -> None:
    for number in range(20):
        web.page(f"/api/{number}", b"x" * 50_000, Content_Type="text/plain")
    calls = "for (let i = 0; i < 20; i++) fetch('/api/' + i)"
    for limits, rule in (({"requests": 5}, "requests of the page"), ({"total_bytes": 120_000}, "bytes of the page")):
        notices = renderer_of(**limits).render(page(f"<script>{calls}</script>"), deadline_s=30).notices
        assert any(rule in notice for notice in notices), notices


def test_a_web_socket_is_not_opened(web: Web, canary: Canary, renderer_of: RendererOf) -> None:
    for target in ("wss://a.test/s", "ws://a.test/s"):
        notices = renderer_of().render(page(f"<p>Text.</p><script>new WebSocket('{target}')</script>"), deadline_s=30).notices
        assert "files of the page that were not loaded: 1 a WebSocket" in notices, notices
    assert (web.paths(), canary.hits) == ([], [])


def test_a_browser_keeps_the_turn_and_the_delay_of_a_host(web: Web, renderer_of: RendererOf) -> None:
    """Scripts come one after the other without the delay; data, also of a host that a redirect leads to, keeps it."""
    web.page("/robots.txt", b"User-agent: *\nCrawl-delay: 0.5", Content_Type="text/plain")
    for number in range(4):
        web.page(f"/{number}.js", f"document.body.append('script {number}.')".encode(), Content_Type="text/javascript")
        web.page(f"/{number}.json", b"{}", Content_Type="application/json")
    scripts = "".join(f"<script async src=/{number}.js></script>" for number in range(4))
    calls = "for (let i = 0; i < 4; i++) fetch(`/${i}.json`).then(() => document.body.append(`data ${i}.`))"
    html = renderer_of().render(page(f"<body>{scripts}<script>{calls}</script>"), deadline_s=60).html
    assert all(f"script {number}." in html and f"data {number}." in html for number in range(4))
    paths, times = [path for path in web.paths() if path != "/robots.txt"], web.times()
    assert all(after[0] >= before[1] - 0.01 for before, after in pairwise(times))
    data = [time for time, path in zip(times, paths, strict=True) if path.endswith(".json")]
    assert all(after[0] - before[1] > 0.4 for before, after in pairwise(data))
    assert times[-1][1] - times[0][0] < 4


def test_a_host_that_has_enough_is_asked_no_more(web: Web, way_out: PageFetcher, renderer_of: RendererOf) -> None:
    web.page("/0.js", b"", 429, Retry_After="3600")
    web.page("/1.js", b"document.body.append('loaded')", Content_Type="text/javascript")
    renderer_of().render(page("<body><script src=/0.js></script><script src=/1.js></script>"), deadline_s=30)
    assert web.paths() == ["/robots.txt", "/0.js"]
    with pytest.raises(FetchFailedError, match="the host asks to wait"):
        way_out.fetch("http://a.test/", deadline_s=10)


def test_cookies_of_a_page_go_to_its_own_site_alone(web: Web, renderer_of: RendererOf) -> None:
    sent: dict[str, str] = {}
    for host, script in (("a.test", "fetch('/rows')"), ("b.test", "document.body.append('loaded')")):
        web.page(f"{host}/first.js", script.encode(), Content_Type="text/javascript", Set_Cookie="id=7; Path=/")
    for path in ("a.test/rows", "b.test/second.js"):
        web.page(path)
        web.pages[path] = lambda handler, path=path, answer=web.pages[path]: (
            sent.update({path: handler.headers.get("Cookie", "")}),
            answer(handler),
        )[1]
    renderer_of().render(page("<body>" + "".join(f"<script src=http://{p}></script>" for p in COOKIE_FILES)), deadline_s=30)
    assert sent == {"a.test/rows": "id=7", "b.test/second.js": ""}


COOKIE_FILES = ("a.test/first.js", "b.test/first.js", "b.test/second.js")
