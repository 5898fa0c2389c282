"""Which addresses are one page."""

import pytest

from pandora_dagster.research.addresses import page_key


@pytest.mark.parametrize(
    "url",
    [
        *("http://shop.test/lamp?id=7", "https://www.shop.test/lamp/?id=7#price", "https://shop.test/lamp?utm_source=a&id=7&utm_id=b"),
        *("https://shop.test/lamp?id=7&gclid=x&mc_cid=1&mc_eid=2", "https://shop.test/lamp?SID=0f6c1d2a9b8e47c35d21&id=7&PHPSESSID=1"),
    ],
)
def test_spellings_tracking_and_sessions_are_no_other_page(url: str) -> None:
    assert page_key(url) == "shop.test/lamp?id=7"


@pytest.mark.parametrize(
    "query",
    [
        *("refurbished=1", "side=left", "refine=blue", "reference=4711", "sidebar=2", "gclids=1", "sessionids=3", "referrers=4", "mcode=5"),
        *("utm=32", "utmzone=3", "refs=2", "ref=v1", "referrer=a", "sid=2", "session_id=14", "mc_size=4"),
    ],
)
def test_a_name_that_begins_like_one_of_tracking_is_another_page(query: str) -> None:
    name, _, value = query.partition("=")
    assert len({page_key(f"https://shop.test/lamp{end}") for end in ("", f"?{query}", f"?{name}={value}0")}) == 3


def test_another_port_is_another_page() -> None:
    assert page_key("http://a.test:8080/x") != page_key("http://a.test/x") == page_key("https://a.test:443/x")
