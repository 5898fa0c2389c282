"""Reading a page takes time linear in its size."""

import time

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
