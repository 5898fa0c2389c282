"""Which pages need a browser, by their form alone."""

from datetime import UTC, datetime

import pytest

from pandora_dagster.contracts.web.fetched import FetchedPage
from pandora_dagster.documents.webpages.page_reader import read_page
from pandora_dagster.tools.browser.script_need import script_need

TEXT = (
    "<main><h1>Kettle</h1>"
    + "<p>The kettle holds a litre and a half, and its lid opens wide enough for a hand to clean it.</p>" * 4
    + "</main>"
)
NO_TEXT = "it has no text of its own"


@pytest.mark.parametrize(
    ("html", "need"),
    [
        (TEXT, ""),
        (TEXT + "<script src=/menu.js></script><script>document.getElementById('menu').hidden = true</script>", ""),
        (TEXT + "<noscript><img src=/pixel.gif></noscript><script src=/a.js></script>", ""),
        ("<p></p>", ""),
        ("<div id=root></div><script src=/app.js></script>", NO_TEXT),
        (
            "<div id=app>Loading</div><script src=/app.js></script><noscript>Please enable scripts.</noscript>",
            "it has little text of its own",
        ),
        (TEXT + "<ul id=list></ul><script>fetch('/rows').then(show)</script>", "its scripts request data"),
        (TEXT + "<div id=prices></div><script>fill(document.getElementById('prices'))</script>", "its scripts fill an empty element"),
        (f"<p>Welcome.</p><div style='display:none'>{TEXT}</div><script src=/a.js></script>", "most of its text is hidden"),
    ],
)
def test_a_page_needs_a_browser_by_its_form(html: str, need: str) -> None:
    address = "http://a.test/kettle"
    body = f"<!doctype html><title>Kettle</title><body>{html}".encode()
    page = FetchedPage(address, address, 200, {"content-type": "text/html"}, body, datetime(2026, 10, 15, tzinfo=UTC), (address,))
    assert script_need(body.decode(), read_page(page)) == need
