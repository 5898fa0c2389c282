"""Pages whose text is in a picture: the screenshot that a model or a person reads, in the real browser."""

import json
from pathlib import Path

import pytest

from pandora_dagster.app.web.page_rendering import PageReader
from tests.cli.conftest import Pandora
from tests.fakes.pictures import png
from tests.tools.egress.conftest import NAMES, Web
from tests.web.conftest import RendererOf, page

DRAWN = "<canvas id=c width=400 height=80></canvas><script>c.getContext('2d').fillText('Arc lamp 24.00', 5, 50)</script>"
IMAGE = "<title>Lamp</title><body><img src=/lamp.png width=300 height=200></body>"
TEXT = "<main><h1>Lamp</h1><p>The lamp shines for twelve hours on one charge.</p><img src=/lamp.png></main>"


@pytest.mark.parametrize(("html", "loads"), [(IMAGE, True), (DRAWN, False), (f"<body><div id=x></div>{DRAWN}", False)])
def test_a_page_whose_text_is_in_a_picture_has_a_screenshot(html: str, loads: bool, web: Web, renderer_of: RendererOf) -> None:
    web.page("/lamp.png", png(60, 40), Content_Type="image/png")
    view = PageReader(renderer_of(), "auto", 30.0).read(page(html))
    assert view.screenshot.startswith(b"\x89PNG"), view.page_doc.notices
    assert ("/lamp.png" in web.paths()) is loads


@pytest.mark.parametrize(("height", "is_longer"), [(300, False), (4_000, True)])
def test_a_page_that_is_longer_than_its_screenshot_says_so(height: int, is_longer: bool, web: Web, renderer_of: RendererOf) -> None:
    web.page("/lamp.png", png(60, 40), Content_Type="image/png")
    html = f"<title>Lamp</title><body style='margin:0'><img src=/lamp.png width=300 height={height} style='display:block'></body>"
    notices = PageReader(renderer_of(), "auto", 30.0).read(page(html)).page_doc.notices
    assert [notice for notice in notices if "screenshot" in notice] == (
        ["the screenshot shows the first 800 of 4,000 pixels of the page"] if is_longer else []
    )


def test_a_page_with_text_loads_no_pictures(web: Web, renderer_of: RendererOf) -> None:
    view = PageReader(renderer_of(), "always", 30.0).read(page(TEXT))
    assert view.screenshot == b"" and "twelve hours" in view.page_doc.text
    assert web.paths() == []


def test_the_screenshot_is_stored_and_shown(web: Web, pandora: Pandora, tmp_path: Path) -> None:
    web.page("/lamp", IMAGE.encode())
    web.page("/lamp.png", png(60, 40), Content_Type="image/png")
    dials = {address: f"127.0.0.1:{web.port}" for answers in NAMES.values() for address in answers}
    (tmp_path / "hosts.json").write_text(json.dumps({"resolver": NAMES, "dial": dials}))
    done = pandora("visit", "read", "http://a.test/lamp", "--hosts", "hosts.json", "--json", env={"PANDORA_WEB_DELAY": "0"})
    read = json.loads(done.stdout)
    assert "its picture was not read: the embedded runtime reads no pictures" in read["page_doc"]["notices"][-1]
    assert pandora("visit", "show", read["visit"], "--html", "page.html").returncode == 0
    assert '<img src="data:image/png;base64,iVBOR' in (tmp_path / "page.html").read_text()
