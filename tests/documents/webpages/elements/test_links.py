"""Which page follows in a list, as the page itself says."""

import pytest

from tests.documents.webpages.pages import read

LIST = '<html><head><title>Lamps</title>{head}</head><body><ul><li><a href="/vela">Vela 30</a></li></ul>{body}</body></html>'


@pytest.mark.parametrize(
    ("head", "body", "following"),
    [
        ('<link rel="next" href="/lamps?page=3">', "", "https://shop.example/lamps?page=3"),
        ("", '<a rel="nofollow Next" href="?page=3">More</a>', "https://shop.example/lamps?page=3"),
        ('<link rel="next" href="https://evil.example/lamps?page=3">', "", ""),
        ('<link rel="prev" href="?page=1">', '<a rel="next" href="javascript:go()">More</a>', ""),
    ],
    ids=["head", "anchor", "other host", "none"],
)
def test_the_next_page_is_of_the_same_host(head: str, body: str, following: str) -> None:
    assert read(LIST.format(head=head, body=body), url="https://shop.example/lamps?page=2").next_page == following
