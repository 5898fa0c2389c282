"""Which files a page may load while it is rendered: what its text needs, from its own site; scripts and style sheets from elsewhere too.

It keeps a page from calling out needlessly. It is no guard of addresses: that is the part of the client which loads the files.
"""

from collections import Counter
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import urlsplit

from tld import get_fld  # pyright: ignore[reportUnknownVariableType]

_FOREIGN_TYPES = frozenset({"script", "stylesheet"})
_NEEDED_TYPES = frozenset({"script", "stylesheet", "xhr", "fetch", "document"})
"""Playwright's names of kinds of requests; `document` is a frame."""
_DATA_TYPES = frozenset({"xhr", "fetch", "document"})
_PICTURE_TYPES = frozenset({"image", "font"})
UNNEEDED = "not needed for the text"


def site_of(url: str) -> str:
    """The registrable domain of an address by the Public Suffix List, or its host where it has none."""
    host = urlsplit(url).hostname or ""
    try:
        return str(ip_address(host))
    except ValueError:
        return str(get_fld(url, fail_silently=True) or host)


def is_delayed(kind: str) -> bool:
    """Whether requests of a kind keep the delay of their host, as pages do: data and frames. The other files belong to a page that was
    admitted, and only wait for their turn: with a delay of 10 s, 40 of them would take minutes."""
    return kind in _DATA_TYPES


@dataclass(slots=True)
class ResourcePolicy:
    """The rule for one page."""

    page_url: str
    with_pictures: bool = False
    refused: Counter[str] = field(default_factory=Counter[str])
    """How many files were not loaded, by the reason."""

    def allows(self, url: str, kind: str, method: str) -> bool:
        """Whether a file may be loaded by its kind and place."""
        reason = ""
        if urlsplit(url).scheme not in ("http", "https"):
            reason = "scheme"
        elif kind not in _NEEDED_TYPES and not (self.with_pictures and kind in _PICTURE_TYPES):
            reason = UNNEEDED
        elif site_of(url) != site_of(self.page_url) and (kind not in _FOREIGN_TYPES or method != "GET"):
            reason = "from another site"
        if reason:
            self.refused[reason] += 1
        return not reason
