"""Whether a page as it was fetched needs a browser: its content is not there, or its own scripts request the rest."""

import re
from html.parser import HTMLParser

from pandora_dagster.contracts.web.page_doc import PageDoc, PageType

_MIN_CHARACTERS = 250
"""A page with less text of its own and a place for a script to fill is taken for one that a script fills."""
_REQUESTS = re.compile(r"\bfetch\(|\bXMLHttpRequest\b|\$\.(?:get|getJSON|ajax)\(|\baxios\b|\bIntersectionObserver\b")
"""How a script requests data, or waits for a reader to come to the end of a list."""
_VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"))
_PICTURE_ONLY = frozenset(("img", "iframe"))


class _Form(HTMLParser):
    """The inline scripts of a page, the ids of its empty elements, and whether it says something where scripts do not run."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.scripts: list[str] = []
        self.has_scripts = False
        self.empty_ids: set[str] = set()
        self.has_notice = False
        self._open_id = ""
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open_id = "" if tag in _VOID else dict(attrs).get("id") or ""
        self.has_scripts |= any(name.startswith("on") for name, _ in attrs)
        if tag in ("script", "style", "noscript"):
            self._inside = tag
            self.has_scripts |= tag == "script" and (dict(attrs).get("type") or "text/javascript").endswith(("javascript", "module"))

    def handle_endtag(self, tag: str) -> None:
        if self._open_id and tag not in ("script", "style"):
            self.empty_ids.add(self._open_id)
        self._open_id = ""
        if tag == self._inside:
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts.append(data)
        elif self._inside == "noscript":
            self.has_notice |= not data.isspace() and not data.lstrip().startswith(tuple(f"<{tag}" for tag in _PICTURE_ONLY))
        elif not data.isspace():
            self._open_id = ""


def script_need(html: str, page_doc: PageDoc) -> str:
    """Why a page needs a browser; "" where it can be read as it was fetched. `page_doc`: how it reads without one."""
    if page_doc.page_type in (PageType.LOGIN, PageType.CAPTCHA, PageType.ERROR, PageType.PDF):
        return ""
    if page_doc.page_type is PageType.CONSENT:
        return "a consent dialogue is in front of it"
    form = _Form()
    form.feed(html)
    if not form.has_scripts:
        return ""
    size = len(page_doc.text)
    scripts = "\n".join(form.scripts)
    if not size:
        return "it has no text of its own"
    hidden = [zone for zone in page_doc.zones if not zone.visible and zone.fields.get("hidden_by") != "noscript"]
    if sum(len(zone.text) for zone in hidden) > size:
        return "most of its text is hidden"
    if _REQUESTS.search(scripts):
        return "its scripts request data"
    if any(f"'{name}'" in scripts or f'"{name}"' in scripts for name in form.empty_ids):
        return "its scripts fill an empty element"
    if size < _MIN_CHARACTERS and (form.has_notice or form.empty_ids):
        return "it has little text of its own"
    return ""
