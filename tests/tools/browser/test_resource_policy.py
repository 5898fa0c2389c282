"""Which files a page may load."""

import pytest

from pandora_dagster.contracts.web.fetched import RobotsAnswer
from pandora_dagster.errors import FetchFailedError
from pandora_dagster.tools.browser.resource_policy import ResourcePolicy, site_of


@pytest.mark.parametrize(
    ("url", "site"),
    [
        ("https://api.shop.co.uk/x", "shop.co.uk"),
        ("http://www.example.com/", "example.com"),
        ("http://a.test/", "a.test"),
        ("http://8.8.8.8/", "8.8.8.8"),
    ],
)
def test_a_site_is_a_registrable_domain(url: str, site: str) -> None:
    assert site_of(url) == site


@pytest.mark.parametrize(
    ("url", "kind", "method", "is_allowed"),
    [
        ("https://api.shop.co.uk/rows", "fetch", "POST", True),
        ("https://cdn.example/app.js", "script", "GET", True),
        ("https://cdn.example/rows", "fetch", "GET", False),
        ("https://cdn.example/frame", "document", "GET", False),
        ("https://www.shop.co.uk/a.png", "image", "GET", False),
        ("https://www.shop.co.uk/ping", "ping", "POST", False),
        ("file:///etc/passwd", "fetch", "GET", False),
    ],
)
def test_a_file_is_loaded_by_its_kind_and_place(url: str, kind: str, method: str, *, is_allowed: bool) -> None:
    policy = ResourcePolicy("https://www.shop.co.uk/", lambda _: RobotsAnswer(text="", unavailable="", until=1.0))
    assert policy.allows_kind(url, kind, method) is is_allowed
    assert bool(policy.refused) is not is_allowed


def test_robots_txt_is_asked_once_for_a_host_and_a_fault_allows_nothing() -> None:
    asked: list[str] = []

    def robots_of(url: str) -> RobotsAnswer:
        asked.append(url)
        if "b.test" in url:
            raise FetchFailedError("no answer")
        return RobotsAnswer(text="User-agent: *\nDisallow: /private/", unavailable="", until=1.0)

    policy = ResourcePolicy("http://a.test/", robots_of)
    paths = ("http://a.test/open", "http://a.test/private/x", "http://b.test/open")
    assert [policy.allows_robots(url) for url in paths] == [True, False, False]
    assert asked == [paths[0], paths[2]]
    assert policy.refused["by robots.txt"] == 2
