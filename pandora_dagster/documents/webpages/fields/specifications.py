"""Names and values that a page gives of its subject: rows of two cells, terms and descriptions, and lines of the form `name: value`."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from pandora_dagster.contracts.web.page_doc import OUTSIDE_KINDS, ZoneKind
from pandora_dagster.documents.webpages.elements.blocks import is_heading
from pandora_dagster.documents.webpages.elements.html_tree import Element, tag_of, words
from pandora_dagster.documents.webpages.layout.zones import JudgedBlock

_LINE = re.compile(r"^(?:- )?([^\W\d_][^:\n]{1,50}?)\s*:\s+(\S.{0,150})$")
_MAX_NAME = 60
_MAX_VALUE = 200
_MIN_LINES = 2
_MIN_PAIRS = 3
_MIN_PAIR_CONFIDENCE = 0.35
"""Names and values are too short to look like a part of a text."""
_MAX_LINK_SHARE = 0.3
_MAX_SPECS = 200


def specifications(judged: Sequence[JudgedBlock], *, columns: bool) -> dict[str, str]:
    """The specifications of the main part in order. `columns`: whether rows of several values belong to one subject."""
    found: dict[str, str] = {}
    lines: defaultdict[Element, list[tuple[str, str]]] = defaultdict(list)
    for item in judged:
        if item.kind in OUTSIDE_KINDS or item.kind in (ZoneKind.COMMENTS, ZoneKind.REVIEWS) or item.confidence < 0.5:
            continue
        if item.block.rows:
            for row in item.block.rows:
                if len(row) == 2 or (columns and len(row) > 2):
                    _add(found, row[0], " / ".join(dict.fromkeys(cell for cell in row[1:] if cell)))
        elif (
            item.kind is not ZoneKind.TITLE
            and not is_heading(item.block)
            and item.block.link_share < _MAX_LINK_SHARE
            and (line := _LINE.match(item.block.text.strip()))
            and len(item.block.text.split()) <= 20
        ):
            lines[item.block.element.getparent()].append((line[1], line[2]))
    for pair in _pairs(judged):
        _add(found, *pair)
    for pairs in lines.values():
        if len(pairs) >= _MIN_LINES:
            for name, value in pairs:
                _add(found, name, value)
    return found


def _pairs(judged: Sequence[JudgedBlock]) -> Iterator[tuple[str, str]]:
    """Names and values in two elements beside each other, where at least three such pairs have the same form."""
    by_parent: defaultdict[Element, list[str]] = defaultdict(list)
    forms: defaultdict[Element, list[str]] = defaultdict(list)
    groups: defaultdict[tuple[Element, str], list[tuple[str, str]]] = defaultdict(list)
    for item in judged:
        block = item.block
        if item.kind in OUTSIDE_KINDS or item.confidence < _MIN_PAIR_CONFIDENCE or block.rows or is_heading(block):
            continue
        by_parent[block.element.getparent()].append(block.text)
        forms[block.element.getparent()].append(_form(block.element))
        texts = [words("".join(part.itertext())) for part in block.parts if part is not block.element and part.getparent() is block.element]
        if len(block.parts) == len(texts) == 2:
            groups[block.element.getparent(), _form(block.element)].append((texts[0], texts[1]))
    for parent, texts in by_parent.items():
        if len(texts) == 2 and parent is not None:
            groups[parent.getparent(), _form(parent)].append((texts[0], texts[1]))
        elif _alternates(texts, forms[parent]):
            groups[parent, ""].extend(zip(texts[::2], texts[1::2], strict=True))
    for pairs in groups.values():
        if len(pairs) >= _MIN_PAIRS and all(
            len(name.split()) <= 5 and not name.endswith(".") and len(value.split()) <= 15 for name, value in pairs
        ):
            yield from pairs


def _alternates(texts: Sequence[str], forms: Sequence[str]) -> bool:
    """Whether texts in elements of one form, or of two in turn, are names and values: no name has a number, most values do."""
    names, values = texts[::2], texts[1::2]
    return (
        len(names) == len(values) >= _MIN_PAIRS
        and len(set(forms[::2])) == len(set(forms[1::2])) == 1
        and len(set(names)) == len(names)
        and not any(any(ch.isdigit() for ch in name) for name in names)
        and sum(any(ch.isdigit() for ch in value) for value in values) * 2 > len(values)
    )


def _form(element: Element) -> str:
    return f"{tag_of(element)}.{element.get('class') or ''}"


def written_specifications(text: str) -> dict[str, str]:
    """The lines of the form `name: value`, or with wide white space between both, of a text without elements."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        pair = _LINE.match(line.strip()) or re.match(r"^([^\W\d_].{1,50}?)(?: {3,}|\t+)(\S.{0,150})$", line.strip())
        if pair and len(line.split()) <= 25:
            _add(found, pair[1], pair[2])
    return found


def _add(found: dict[str, str], name: str, value: str) -> None:
    name, value = name.strip().rstrip(":").strip(), value.strip().replace("\\|", "|")
    if name and value and len(name) <= _MAX_NAME and len(value) <= _MAX_VALUE and len(found) < _MAX_SPECS:
        found.setdefault(name, value)
