"""Addresses in a form in which two spellings of one page meet."""

import re
from collections.abc import Iterable
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

_TRACKING_FAMILY = "utm_"
"""What campaigns of Urchin and Google add: the family is in the prefix."""
_TRACKING = frozenset({"gclid", "fbclid", "msclkid", "mc_cid", "mc_eid", "phpsessid", "jsessionid"})
_SESSIONS = frozenset({"sessionid", "session_id", "sid"})
_MIN_SESSION_CHARACTERS = 16
"""The least of a value that tells visitors apart: `sid=2` says which page it is, and two addresses of one page cost a visit at most."""
_NUMBER = re.compile(r"\d+")


def page_key(url: str) -> str:
    """The address without scheme, fragment, parameters of tracking and sessions, and a slash at the end."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").removeprefix("www.") + (f":{parts.port}" if parts.port not in (None, 80, 443) else "")
        query = sorted(pair for pair in parse_qsl(parts.query, keep_blank_values=True) if not _is_tracking(pair[0].lower(), pair[1]))
    except ValueError:
        return url
    return f"{host}{parts.path.rstrip('/')}?{urlencode(query)}"


def _is_tracking(name: str, value: str) -> bool:
    is_session = name in _SESSIONS and len(value) >= _MIN_SESSION_CHARACTERS
    return name in _TRACKING or name.startswith(_TRACKING_FAMILY) or is_session


def host_of(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").removeprefix("www.")
    except ValueError:
        return ""


def document_name(url: str) -> str:
    """The name of the file at a `file:` address; "" for an address of the web."""
    return unquote(url.rpartition("/")[2]) if url.startswith("file:") else ""


def without_address(error: Exception, url: str) -> str:
    """The message of an error without the address that it begins with: a report has both side by side."""
    return str(error).removeprefix(f"{url}: ")


def words_of(url: str) -> str:
    """The words of an address's host and path, as text."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return (
        f"{host_of(url)} {parts.path} {parts.query}".replace(".", " ")
        .replace("/", " ")
        .replace("-", " ")
        .replace("_", " ")
        .replace("=", " ")
    )


def pages_of_list(url: str, links: Iterable[str]) -> list[str]:
    """Links that may be other pages of the list at `url`: of its host and path, and differing from it in numbers or parameters only."""
    try:
        own = urlsplit(url)
        targets = [(link, urlsplit(link)) for link in links]
    except ValueError:
        return []
    own_path, own_page = _NUMBER.sub("", own.path.rstrip("/")), page_key(url)
    return [
        link
        for link, parts in targets
        if parts.hostname == own.hostname
        and _NUMBER.sub("", parts.path.rstrip("/")) == own_path
        and _NUMBER.search(f"{parts.path}?{parts.query}")
        and page_key(link) != own_page
    ]


def names_host(word: str, url: str) -> bool:
    """Whether a word of at least four letters is part of the host's name: a shop's name that is also its domain."""
    return len(word) >= 4 and word.lower() in host_of(url).replace("-", "")
