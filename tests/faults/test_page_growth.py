"""Reading a page takes time linear in its size."""

import time
from time import process_time

import pytest

from tests.documents.webpages.pages import read

PARAGRAPH = "<div class='a'><p>The lamp lights the table and the wall <b>behind</b> it. <a href='/x'>More</a></p></div>"


def test_reading_grows_with_the_page() -> None:
    seconds: list[float] = []
    for count in (12_000, 48_000):  # 1.3 and 5.1 MB
        page = "<style>.a{color:#222}.b{display:none}</style><h1>Lamps</h1>" + PARAGRAPH * count
        started = time.perf_counter()
        assert "lights the table" in read(page).text
        seconds.append(time.perf_counter() - started)
    assert seconds[1] < 8 * seconds[0]


SHAPES = {
    "paragraphs": "<p>Lamp {0} costs £{0}.00 in our shop.</p>",
    "amounts in one line": "<b>£{0}.00</b> ",
    "a list": "<ul><li><a href='/p/{0}'>Lamp {0}</a> £{0}.00</li></ul>",
    "choices in one element": "<p>£{0}.00 <input type=radio></p>",
    "terms": "<dl><dt>Name {0}</dt><dd>{0} g</dd></dl>",
    "names and values": "<div>Weight</div><div>{0} g</div>",
    "hidden siblings": "<p style='display:none'>Lamp {0}</p>",
    "open elements": "<div><i>Lamp {0} ",
    "days": "<time datetime='2026-01-01'>1 January 2026</time> ",
    "scripts of data": '<script type="application/ld+json">{{"@type": "Product", "name": "Lamp {0}"}}</script>',
}


@pytest.mark.parametrize("shape", SHAPES)
def test_reading_grows_with_a_page_of_one_shape(shape: str) -> None:
    """2,000 amounts in one line took 10 s, 8,000 choices in one element 24 s."""

    def seconds(count: int) -> float:
        page = "<main><h1>Lamps</h1><li>" + "".join(SHAPES[shape].format(number) for number in range(count))
        started = process_time()
        read(page)
        return process_time() - started

    for _ in range(3):
        small, large = seconds(500), seconds(4000)
        if large < 16 * max(small, 0.1):
            return
    pytest.fail(f"{small:.2f} s and {large:.2f} s for n and 8n")
