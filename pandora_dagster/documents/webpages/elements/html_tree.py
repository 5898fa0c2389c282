"""A page's elements: parsing of any HTML or XHTML, and what all readers of the tree ask of it."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from pandora_dagster.documents.webpages.libraries import library

Element = Any
"""An element of lxml, which has no types."""

MAX_DEPTH = 1000
"""Levels of elements: the parser drops what is nested deeper than 2,048, and Python code of libraries recurses."""
_XML_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")
_BLOCK_TAGS_NAMES = (
    "address article aside blockquote body br button center dd details dialog div dl dt fieldset figcaption figure footer form h1 "
    "h2 h3 h4 h5 h6 header hgroup hr label legend li main menu nav ol optgroup option p pre search section select summary table "
    "tbody td tfoot th thead tr ul caption"
)
BLOCK_TAGS = frozenset(_BLOCK_TAGS_NAMES.split())
_UNSEEN_TAGS_NAMES = (
    "script style noscript template head title iframe frame object embed applet svg math canvas audio video map textarea datalist "
    "noframes param source track"
)
UNSEEN_TAGS = frozenset(_UNSEEN_TAGS_NAMES.split())
HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_TAG = re.compile(r"<(/?)([a-zA-Z][\w:-]{0,40})(?![\w:-])[^<>]{0,5000}>")
_VOID_NAMES = "area base br col embed hr img input link meta source track wbr"
_HEAD_TAGS = frozenset(("base", "link", "meta", "noscript", "script", "style", "template", "title"))
_VOID = frozenset(_VOID_NAMES.split())


def parse_html(text: str) -> tuple[Element, tuple[str, ...]]:
    """The root element, always `html` with a body, and notices of what was left out."""
    html = library("lxml.html")
    notices: list[str] = []
    text = _XML_DECLARATION.sub("", text)
    flat = _without_depth(text)
    if flat != text:
        notices.append(f"elements nested deeper than {MAX_DEPTH} levels were flattened")
    parser = html.HTMLParser(encoding="utf-8", huge_tree=True)
    try:
        root = html.document_fromstring(flat.encode(), parser=parser, ensure_head_body=True)
    except library("lxml.etree").ParserError:  # an empty text, or one of a comment alone
        root = html.document_fromstring(b"<p></p>", parser=parser, ensure_head_body=True)
    _move_to_body(root)
    return root, tuple(notices)


def _move_to_body(root: Element) -> None:
    """Move what no head holds into the body: where a page has no `body` tag, libxml2 leaves elements that it does not know in the head."""
    head, body = root.find("head"), root.find("body")
    if head is None or body is None:
        return
    place = next((n for n, child in enumerate(head) if isinstance(child.tag, str) and tag_of(child) not in _HEAD_TAGS), len(head))
    for number, child in enumerate(list(head)[place:]):
        body.insert(number, child)


def _without_depth(text: str) -> str:
    """`text` without the tags that open or close an element deeper than MAX_DEPTH; unchanged for all but hostile pages."""
    if text.count("<") <= MAX_DEPTH:
        return text
    depth, last, kept = 0, 0, list[str]()
    for tag in _TAG.finditer(text):
        name = tag[2].lower()
        if name in _VOID or tag[0].endswith("/>"):
            continue
        depth += -1 if tag[1] else 1
        if depth >= MAX_DEPTH + (not tag[1]) or (tag[1] and depth >= MAX_DEPTH):
            kept.append(text[last : tag.start()])
            last = tag.end()
        depth = max(depth, 0)
    if not kept:
        return text
    kept.append(text[last:])
    return "".join(kept)


def is_element(node: Element) -> bool:
    """Whether a node is an element and not a comment or an instruction."""
    return isinstance(node.tag, str)


def elements(root: Element) -> Iterator[Element]:
    """The elements below and with `root` in document order."""
    return (node for node in root.iter() if isinstance(node.tag, str))


def tag_of(element: Element) -> str:
    """The name of an element in lower case, without a namespace."""
    return _local_name(element.tag)


@lru_cache(1024)
def _local_name(tag: object) -> str:
    return str(tag).rpartition("}")[2].rpartition(":")[2].lower()


def words(text: str | None) -> str:
    """`text` with single spaces."""
    return " ".join((text or "").split())


def same_words(one: str, other: str) -> bool:
    """Whether two texts have the same letters and digits, or one is the beginning or end of the other."""
    a, b = (re.sub(r"\W", "", text.lower()) for text in (one, other))
    return bool(a and b) and (a == b or (min(len(a), len(b)) >= 4 and (a in b or b in a)))


def full_text(element: Element) -> str:
    """All text of an element in one line, with a space where a block ends."""
    parts: list[str] = []
    for event, node in library("lxml.etree").iterwalk(element, events=("start", "end")):
        block = is_element(node) and tag_of(node) in BLOCK_TAGS
        if event == "start" and is_element(node):
            parts.extend([" " if block else "", node.text or ""])
        elif event == "end":
            parts.append(" " if block else "")
            if node is not element:
                parts.append(node.tail or "")
    return words("".join(parts))


def selector_of(element: Element) -> str:
    """A path to an element, such as `html>body>main#content>p:nth-of-type(2)`, of at most 6 levels up to an element with an id."""
    steps: list[str] = []
    while element is not None and len(steps) < _MAX_STEPS:
        name, own = tag_of(element), str(element.get("id") or "")
        if re.fullmatch(r"[A-Za-z][\w-]{0,60}", own):
            steps.append(f"{name}#{own}")
            break
        position = 1 + sum(1 for _ in element.itersiblings(element.tag, preceding=True)) if name not in ("html", "body") else 1
        steps.append(name if position == 1 else f"{name}:nth-of-type({position})")
        element = element.getparent()
    return ">".join(reversed(steps))


_MAX_STEPS = 6
