"""Which files a page may load."""

import pytest

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
    policy = ResourcePolicy("https://www.shop.co.uk/")
    assert policy.allows(url, kind, method) is is_allowed
    assert bool(policy.refused) is not is_allowed
