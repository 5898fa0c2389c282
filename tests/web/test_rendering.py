"""What of a page a reader gets after its scripts: what a visitor sees by the style that Chromium computes."""

import os
import re
import signal
import threading
from dataclasses import replace
from pathlib import Path
from struct import unpack

import pytest

from pandora_dagster.contracts.web.page_doc import PageDoc
from pandora_dagster.documents.webpages.page_reader import read_page
from pandora_dagster.errors import BrowserError
from pandora_dagster.tools.browser.chromium_renderer import ChromiumRenderer
from pandora_dagster.tools.egress.page_fetcher import PageFetcher
from tests.tools.egress.conftest import Web
from tests.web.conftest import RendererOf, page

HIDDEN = {
    "display": "<p style='display:none'>SECRET</p>",
    "style sheet": "<style>.x{display:none}</style><p class=x>SECRET</p>",
    "visibility": "<p style='visibility:hidden'>SECRET</p>",
    "opacity": "<div style='opacity:.2'><p style='opacity:.1'>SECRET</p></div><div style='opacity:0'>SECRET</div>",
    "off screen": "<p style='position:absolute;left:-9999px'>SECRET</p>",
    "indent": "<p style='text-indent:-9999px;overflow:hidden'>SECRET</p>",
    "far right": "<div style='overflow-x:hidden'><p style='position:absolute;left:20000px;width:100px'>SECRET</p></div>",
    "font size": "<p style='font-size:0'>SECRET</p><p style='font-size:1px'>SECRET</p>",
    "color": "<p style='color:#fff'>SECRET</p><div style='background:#123'><p style='color:#123'>SECRET</p></div>",
    "transparent": "<p style='color:transparent'>SECRET</p>",
    "fill color": "<p style='-webkit-text-fill-color:#fefefe'>SECRET</p>",
    "clip": "<p style='position:absolute;clip:rect(0,0,0,0)'>SECRET</p>",
    "clip path": "<p style='clip-path:inset(50%)'>SECRET</p><p style='clip-path:circle(0)'>SECRET</p>",
    "size": "<div style='height:0;overflow:hidden'>SECRET</div><div style='width:1px;height:1px;overflow:hidden'>SECRET</div>",
    "covered": "<div style='position:relative'><p>SECRET</p><div style='position:absolute;inset:0;background:#eee'></div></div>",
    "scaled": "<p style='transform:scale(0)'>SECRET</p>",
    "set by a script": "<p id=x>SECRET</p><script>x.hidden = true</script>",
    "frame": "<iframe style='display:none' srcdoc='<p>SECRET'></iframe><iframe srcdoc='<p style=display:none>SECRET'></iframe>",
    "shadow tree": "<div id=x></div><script>x.attachShadow({mode: 'closed'}).innerHTML = '<p style=display:none>SECRET'</script>",
    "lies about style": "<script>getComputedStyle = () => ({}); Element.prototype.checkVisibility = () => true</script>"
    "<p style='display:none'>SECRET</p>",
}
SEEN = {
    "inverse": "<div style='background:#000'><p style='color:#fff'>SHOWN</p></div>",
    "over a picture": "<div style='background:url(x.png)'><p style='color:#fff'>SHOWN</p></div>",
    "over a sibling": "<div style='position:relative'><div style='position:absolute;inset:0;background:#222'></div>"
    "<p style='position:relative;color:#fff'>SHOWN</p></div>",
    "gradient": "<p style='background:linear-gradient(red,blue);-webkit-background-clip:text;color:transparent'>SHOWN</p>",
    "visible child": "<div style='visibility:hidden'>x<p style='visibility:visible'>SHOWN</p></div>",
    "details": "<details><summary>More</summary><p>SHOWN</p></details>",
    "scrolled box": "<div style='overflow:auto;height:50px'><p style='margin-top:400px'>SHOWN</p></div>",
    "far down": "<div style='height:9000px'></div><p>SHOWN</p>",
    "no pointer": "<p style='pointer-events:none'>SHOWN</p>",
    "half covered by glass": "<div style='position:relative'><p>SHOWN</p>"
    "<div style='position:absolute;inset:0;background:rgba(0,0,0,.1)'></div></div>",
    "bar at an edge": "<div style='position:fixed;bottom:0;left:0;right:0;height:90px;background:#ddd'>Bar</div><p>SHOWN</p>",
    "shadow tree": "<div id=x><b>SHOWN</b></div><script>x.attachShadow({mode: 'open'}).innerHTML = '<p><slot></slot></p>'</script>",
    "frame": "<iframe srcdoc='<p>SHOWN'></iframe>",
}


def read(renderer: ChromiumRenderer, html: str, **headers: str) -> PageDoc:
    fetched = page(html, **headers)
    rendered = renderer.render(fetched, deadline_s=30)
    shown = replace(fetched, body=rendered.html.encode(), headers={"content-type": "text/html; charset=utf-8"})
    return read_page(shown, invisible_attribute=rendered.invisible_attribute)


def texts(doc: PageDoc, *, visible: bool) -> str:
    return "\n".join(zone.text for zone in doc.zones if zone.visible is visible)


def test_text_that_nobody_sees_is_apart(renderer_of: RendererOf) -> None:
    renderer = renderer_of()
    leaks = [
        name
        for name, html in HIDDEN.items()
        if "SECRET" in texts(read(renderer, f"<body style='background:#fff'><h1>Title</h1><p>Some words of text.</p>{html}"), visible=True)
    ]
    assert leaks == []


def test_text_that_a_visitor_sees_is_read(renderer_of: RendererOf) -> None:
    renderer = renderer_of()
    lost = [
        name
        for name, html in SEEN.items()
        if "SHOWN"
        not in texts(read(renderer, f"<body style='background:#fff'><h1>Title</h1><p>Some words of text.</p>{html}"), visible=True)
    ]
    assert lost == []


def test_the_mark_is_new_for_each_page_and_a_page_cannot_take_it_off(renderer_of: RendererOf) -> None:
    renderer = renderer_of()
    first, second = (renderer.render(page("<p style='display:none'>x"), deadline_s=30) for _ in range(2))
    assert first.invisible_attribute != second.invisible_attribute
    assert re.fullmatch(r"data-[0-9a-f]{16}", first.invisible_attribute)
    assert f'<p {first.invisible_attribute}="">x' in first.html


def test_scripts_that_request_data_are_waited_for(web: Web, renderer_of: RendererOf) -> None:
    web.page("/api", b'{"name": "Kettle", "price": "31.40"}', Content_Type="application/json")
    show = "fetch('/api').then(r => r.json()).then(d => setTimeout(() => { app.textContent = d.name + ' costs ' + d.price }, 100))"
    assert "Kettle costs 31.40" in renderer_of().render(page(f"<div id=app></div><script>{show}</script>"), deadline_s=30).html


def test_a_list_is_loaded_to_its_end_or_to_the_limit(renderer_of: RendererOf) -> None:
    row = "for (let i = 0; i < 5; i++) { list.insertAdjacentHTML('beforeend', '<p style=height:200px>row ' + n++ + '</p>') }"
    start = f"let n = 0; function add() {{ {row} }} add()"
    scrolled = f"<div id=list></div><script>{start}; addEventListener('scroll', () => n < LAST && add())</script>"
    button = f"<div id=list></div><button onclick='n < LAST ? add() : this.remove()'>Show more</button><script>{start}</script>"
    renderer = renderer_of(more_steps=4)
    for html in (scrolled, button):
        whole = renderer.render(page(html.replace("LAST", "15")), deadline_s=30)
        assert "row 14" in whole.html
        assert whole.notices == ()
        endless = renderer.render(page(html.replace("LAST", "9999")), deadline_s=30)
        assert "the page loads more after 4 steps: the rest was not loaded" in endless.notices


@pytest.mark.parametrize(
    ("dialogue", "is_closed"),
    [
        ("<button onclick=done()>Accept all</button><button onclick=done()>Reject all</button>", True),
        ("<button onclick=done()>Alle akzeptieren</button><button onclick=done()>Nur notwendige Cookies</button>", True),
        (
            "Our letter <button aria-label=Close onclick=done()>&times;</button><form><input type=email><button>Subscribe</button></form>",
            True,
        ),
        ("We use cookies. <button onclick=done()>Continue</button> <a href=/pay>Pay</a>", False),
        ("You must be an adult. <button onclick=done()>I am 18 years old</button>", False),
        ("<button onclick=done()>Buy access</button>", False),
        ("<form><input type=password><button onclick=done()>Log in</button></form>", False),
    ],
)
def test_a_dialogue_is_closed_where_that_commits_to_nothing(dialogue: str, is_closed: bool, renderer_of: RendererOf) -> None:
    front = f"<div role=dialog id=front style='position:fixed;inset:0;background:#fff'>{dialogue}</div>"
    script = "<script>function done() { front.remove(); text.hidden = false }</script>"
    rendered = renderer_of().render(page(f"{front}<p id=text hidden>Behind it.</p>{script}"), deadline_s=30)
    assert (re.search(r"<p[^>]*>Behind it", rendered.html) is not None) is True
    assert (rendered.invisible_attribute not in re.search(r"<p[^>]*>Behind it", rendered.html)[0]) is is_closed  # type: ignore[index]


def test_a_screenshot_has_the_asked_width(renderer_of: RendererOf) -> None:
    picture = renderer_of(screenshot_width=640).render(page("<h1>Title</h1>"), deadline_s=30, screenshot=True).screenshot
    assert picture.startswith(b"\x89PNG")
    assert unpack(">II", picture[16:24]) == (640, 400)


def test_what_does_not_end_is_a_reason_and_the_next_page_goes_on(renderer_of: RendererOf) -> None:
    renderer = renderer_of(seconds=4)
    with pytest.raises(BrowserError, match=r"not rendered within 4 s|Timeout 4000ms exceeded"):
        renderer.render(page("<p>x</p><script>while (true) {}</script>"), deadline_s=20)
    assert "after" in renderer.render(page("<p>after</p>"), deadline_s=30).html


def test_a_page_that_never_becomes_quiet_is_read(web: Web, renderer_of: RendererOf) -> None:
    html = "<p id=x>Text.</p><script>setInterval(() => { x.append('.'); fetch('/api') }, 50)</script>"
    assert "Text." in renderer_of(quiet_seconds=1.0).render(page(html), deadline_s=30).html


def test_a_missing_or_broken_chromium_is_a_reason(way_out: PageFetcher, tmp_path: Path) -> None:
    with ChromiumRenderer(way_out, program=str(tmp_path / "none")) as renderer, pytest.raises(BrowserError, match="no such program"):
        renderer.render(page("x"), deadline_s=5)
    broken = tmp_path / "chromium"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    with ChromiumRenderer(way_out, program=str(broken)) as renderer:
        for _ in range(2):
            with pytest.raises(BrowserError, match="does not start"):
                renderer.render(page("x"), deadline_s=30)


def test_chromium_starts_again_after_a_crash(renderer_of: RendererOf) -> None:
    renderer = renderer_of()
    assert "one" in renderer.render(page("<p>one</p>"), deadline_s=30).html
    browser = renderer._browser
    assert browser is not None
    renderer._submit(browser.close()).result(10)
    assert "two" in renderer.render(page("<p>two</p>"), deadline_s=30).html


def children_of(process: int) -> list[int]:
    """The processes that a process has started, and those that these have."""
    found = [int(child) for task in Path(f"/proc/{process}/task").iterdir() for child in (task / "children").read_text().split()]
    return [*found, *(further for child in found for further in children_of(child))]


def test_a_chromium_that_crashes_is_a_reason_and_the_next_page_goes_on(renderer_of: RendererOf) -> None:
    """All processes of the browser are killed while a page is being rendered."""
    renderer = renderer_of(seconds=30)
    assert "one" in renderer.render(page("<p>one</p>"), deadline_s=60).html
    crash = threading.Timer(1.0, lambda: [os.kill(child, signal.SIGKILL) for child in browser_processes()])
    crash.start()
    with pytest.raises(BrowserError) as crashed:
        renderer.render(page("<p>x</p><script>while (true) {}</script>"), deadline_s=60)
    crash.join()
    assert "not rendered within" not in str(crashed.value) and "Timeout" not in str(crashed.value)
    assert "two" in renderer.render(page("<p>two</p>"), deadline_s=60).html


def browser_processes() -> list[int]:
    return [child for child in children_of(os.getpid()) if b"chrom" in Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")[0]]


STORY = (
    "<main><h1>Why lamps hum</h1>" + "<p>A lamp hums because its transformer shakes one hundred times in every second.</p>" * 4 + "</main>"
)
WALL = "<div role=dialog id=front style='position:fixed;inset:0;background:#fff'>We use cookies. {}</div>"
ACCEPT = "<button onclick=accept()>{}</button>"
ACCEPTED = "<script>function accept() {{ front.remove(); veil.remove(); document.title = 'accepted'; {} }}</script>"
VEIL = "<div id=veil style='position:fixed;inset:0;background:#000'></div>"


@pytest.mark.parametrize("choices", [("Continue",), ("Accept all", "Settings")])
def test_a_dialogue_that_can_be_left_alone_is_not_answered(choices: tuple[str, ...], renderer_of: RendererOf) -> None:
    front = WALL.format("".join(ACCEPT.format(choice) for choice in choices))
    rendered = renderer_of().render(page(f"{STORY}{VEIL}{front}{ACCEPTED.format('')}"), deadline_s=30)
    page_doc = read_page(page(rendered.html), invisible_attribute=rendered.invisible_attribute)
    assert "its transformer shakes" in page_doc.text
    assert "<title>accepted" not in rendered.html
    assert rendered.notices[0].startswith("a dialogue was not answered, and the page under it was read: 'We use cookies.")


@pytest.mark.parametrize(
    ("choices", "accepts", "is_read"),
    [(("Continue",), False, False), (("Continue",), True, True), (("Accept all", "Settings"), True, False)],
)
def test_a_page_that_is_nothing_without_an_answer(choices: tuple[str, ...], accepts: bool, is_read: bool, renderer_of: RendererOf) -> None:
    """Its only button is pressed where a setting allows it; where there are several, a person has to decide, and the dialogue stays."""
    front = WALL.format("".join(ACCEPT.format(choice) for choice in choices))
    shows = "document.body.insertAdjacentHTML('beforeend', document.getElementById('story').innerHTML)"
    html = f"<template id=story>{STORY}</template>{VEIL}{front}{ACCEPTED.format(shows)}"
    rendered = renderer_of(accept_privacy=accepts).render(page(html), deadline_s=30)
    page_doc = read_page(page(rendered.html), invisible_attribute=rendered.invisible_attribute)
    assert ("its transformer shakes" in page_doc.text) is is_read
    assert ("We use cookies" in "".join(zone.text for zone in page_doc.zones if zone.visible)) is not is_read
