"""Where the visible links of a page lead."""

from urllib.parse import urljoin, urlsplit, urlunsplit

from pandora_dagster.documents.webpages.elements.html_tree import Element

_MAX_LINKS = 5000
_MAX_URL = 2000


def base_address(root: Element, url: str) -> str:
    """The address against which relative links count."""
    base = next((str(element.get("href")) for element in root.iter("base") if element.get("href")), "")
    return absolute_address(base, url) or url


def links_of(body: Element, base: str) -> tuple[str, ...]:
    """Distinct http and https targets of the anchors in order, without fragments."""
    seen: dict[str, None] = {}
    for anchor in body.iter("a"):
        href = str(anchor.get("href") or "").strip()
        if href and not href.startswith("#") and (address := absolute_address(href, base)):
            seen[address] = None
            if len(seen) >= _MAX_LINKS:
                break
    return tuple(seen)


def next_address(root: Element, base: str) -> str:
    """The page of the same host that a link of the page names as its next one; "" where none does."""
    for element in root.iter("link", "a"):
        if "next" in str(element.get("rel") or "").lower().split():
            address = absolute_address(str(element.get("href") or ""), base)
            if address and urlsplit(address).hostname == urlsplit(base).hostname:
                return address
    return ""


def absolute_address(href: str, base: str) -> str:
    """The http or https address of a link; "" for any other."""
    try:
        parts = urlsplit(urljoin(base, "".join(href.split("\n")).strip()))
        host = parts.hostname
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or not host:
        return ""
    address = urlunsplit(parts._replace(fragment=""))
    return address if len(address) <= _MAX_URL else ""
