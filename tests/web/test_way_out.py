"""No page reaches an address that is not public: a server on loopback counts connections."""

import pytest

from pandora_dagster.tools.browser.resource_policy import ResourcePolicy
from pandora_dagster.tools.egress import address_guard
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
def test_every_way_to_an_internal_server_ends_at_the_proxy(
    canary: Canary, renderer_of: RendererOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the browser loads whatever a page asks for; without the guard most attempts arrive, so that they are real."""
    assert hits_of_attempts(canary, renderer_of) == {}
    for rule in ("allows_kind", "allows_robots"):
        monkeypatch.setattr(ResourcePolicy, rule, lambda *_: True)
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
    assert "files of the page that were not loaded: 1 by robots.txt" in rendered.notices


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


def test_a_web_socket_obeys_the_rules_of_other_requests(web: Web, canary: Canary, renderer_of: RendererOf) -> None:
    """One to another site is not opened, nor one to a host whose robots.txt does not come, as here without TLS."""
    for target, reason in (("wss://b.test/s", "from another site"), ("wss://a.test/s", "by robots.txt")):
        notices = renderer_of().render(page(f"<p>Text.</p><script>new WebSocket('{target}')</script>"), deadline_s=30).notices
        assert f"files of the page that were not loaded: 1 {reason}" in notices, notices
    assert canary.hits == []
