"""What the extraction of a web page left of its HTML: tags, comments, scripts. Knows markup; knows no facts. Linear in the text.

Code that a page shows (fences, backticks) is content. An address in a tag is content too (000 section 23: URLs are always preserved).
"""

import re
from collections.abc import Iterator

from pandora_dagster.compression.language import word_set

_ELEMENTS = word_set(
    "a abbr address article aside audio b base bdi bdo blockquote body br button canvas caption center cite code col colgroup data dd del "
    "details dfn dialog div dl dt em embed fieldset figcaption figure font footer form h1 h2 h3 h4 h5 h6 head header hr html i iframe img "
    "input ins kbd label legend li link main map mark menu meta nav noscript object ol optgroup option output p param picture pre progress "
    "q s samp script section select small source span strong style sub summary sup svg table tbody td template textarea tfoot th thead "
    "time title tr track u ul var video wbr"
)
_QUOTED = r"\\?\"[^\"<>\\]*+\\?\"|\\?'[^'<>\\]*+\\?'|[^\s\"'<>\\]++"
_SWITCHES = (
    "allowfullscreen|async|autofocus|autoplay|checked|controls|default|defer|disabled|formnovalidate|hidden|inert|ismap|itemscope|loop|"
    "multiple|muted|nomodule|novalidate|open|playsinline|readonly|required|reversed|selected"
)
_TAG = re.compile(
    rf"(?<!`)<(?:!--|!doctype\b[^<>]*+>|/?(?P<name>[a-z][a-z0-9]{{0,10}})"
    rf"(?:\s++(?:(?:{_SWITCHES})(?=[\s/>])|[\w:@.\-]++\s*+=\s*+(?:{_QUOTED})))*+\s*+/?>)",
    re.IGNORECASE,
)
"""A word without a value is an attribute only where HTML has it: `a <b and c> d` compares."""
_URL = re.compile(r"https?://[^\s\"'<>\\]+")
_FENCE = re.compile(r"^(`{3,})[^\n]*\n.*?(?:^\1|\Z)", re.MULTILINE | re.DOTALL)
_HIDDEN = {"script": "</script>", "style": "</style>"}


def leftovers(text: str) -> Iterator[tuple[int, int]]:
    """Where left-overs stand, as (start, end), in order and without overlap; addresses in tags are no part of them."""
    if "<" not in text:
        return
    fences = [found.span() for found in _FENCE.finditer(text)] if "```" in text else []
    unclosed: set[str] = set()
    at = fence = 0
    while found := _TAG.search(text, at):
        start, at = found.span()
        while fence < len(fences) and fences[fence][1] <= start:
            fence += 1
        if fence < len(fences) and fences[fence][0] <= start:
            at = fences[fence][1]
            continue
        name = (found["name"] or "").lower()
        if name and name not in _ELEMENTS:
            continue
        close = "-->" if found.group() == "<!--" else _HIDDEN.get(name, "") if text[start + 1] != "/" else ""
        if close and (end := _closed(text, at, close, unclosed)) >= 0:
            at = end
            yield start, at
        elif found.group() != "<!--":
            yield from _around_addresses(found)


def _closed(text: str, at: int, close: str, unclosed: set[str]) -> int:
    """One past the next `close`; -1 where there is none, which is looked for once."""
    if close in unclosed:
        return -1
    end = text.find(close, at)
    if end < 0:
        unclosed.add(close)
        return -1
    return end + len(close)


def _around_addresses(tag: re.Match[str]) -> Iterator[tuple[int, int]]:
    at = tag.start()
    for url in _URL.finditer(tag.string, tag.start(), tag.end()):
        yield at, url.start()
        at = url.end()
    yield at, tag.end()
