"""Which files a page may load while it is rendered: what its text needs, from its own site; scripts and style sheets from elsewhere too.

It keeps a page from calling out needlessly. It is no guard of addresses, since a browser does not ask it about redirects: that is the
proxy's part.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import urlsplit

from tld import get_fld  # pyright: ignore[reportUnknownVariableType]

from pandora_dagster.contracts.web.fetched import RobotsAnswer
from pandora_dagster.errors import FetchError
from pandora_dagster.tools.egress.robots import is_allowed

_FOREIGN_TYPES = frozenset({"script", "stylesheet"})
_NEEDED_TYPES = frozenset({"script", "stylesheet", "xhr", "fetch", "document"})
"""Playwright's names of kinds of requests; `document` is a frame."""
_PICTURE_TYPES = frozenset({"image", "font"})
UNNEEDED = "not needed for the text"


def site_of(url: str) -> str:
    """The registrable domain of an address by the Public Suffix List, or its host where it has none."""
    host = urlsplit(url).hostname or ""
    try:
        return str(ip_address(host))
    except ValueError:
        return str(get_fld(url, fail_silently=True) or host)


@dataclass(slots=True)
class ResourcePolicy:
    """The rule for one page."""

    page_url: str
    robots_of: Callable[[str], RobotsAnswer]
    """May block, and raise FetchError."""
    with_pictures: bool = False
    refused: Counter[str] = field(default_factory=Counter[str])
    """How many files were not loaded, by the reason."""
    _rules: dict[str, RobotsAnswer | None] = field(default_factory=dict[str, RobotsAnswer | None])

    def allows_kind(self, url: str, kind: str, method: str) -> bool:
        """Whether a file may be loaded by its kind and place."""
        reason = ""
        if urlsplit(url).scheme not in ("http", "https"):
            reason = "scheme"
        elif kind not in _NEEDED_TYPES and not (self.with_pictures and kind in _PICTURE_TYPES):
            reason = UNNEEDED
        elif site_of(url) != site_of(self.page_url) and (kind not in _FOREIGN_TYPES or method != "GET"):
            reason = "from another site"
        return self._is_allowed(reason)

    def allows_robots(self, url: str) -> bool:
        """Whether robots.txt of its host allows a file; may block."""
        host = urlsplit(url).netloc
        if host not in self._rules:
            try:
                self._rules[host] = self.robots_of(url)
            except FetchError:
                self._rules[host] = None
        rules = self._rules[host]
        return self._is_allowed("" if rules and is_allowed(rules, url) else "by robots.txt")

    def _is_allowed(self, reason: str) -> bool:
        if reason:
            self.refused[reason] += 1
        return not reason
