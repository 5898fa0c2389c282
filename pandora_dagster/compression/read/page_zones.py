"""A PAGE_DOC as zones with type, confidence, fields and text (000 section 22). Knows its JSON; chooses nothing.

`{"url", ..., "zones": [{"type", "confidence", "fields", "raw_text"}], "ocr_items": [{"text", "confidence"}]}`; all names but
`zones` and `ocr_items` have the spellings below.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pandora_dagster.compression.read.json_parts import is_list, is_object

PRIORITY = ("pricing", "product_info", "reviews", "navigation", "other")
KEEP_FULL, KEEP_KEY_FIELDS = 0.8, 0.5
DROP_RULE = "page_doc: zone under confidence 0.5"
_LISTS = ("zones", "content_zones", "ocr_items")
_TYPE_NAMES = ("zone_type", "type", "zone", "kind", "name")
_TEXT_NAMES = ("raw_text", "text", "content", "narrative")
_START = re.compile(r'"(?:' + "|".join(_LISTS) + r')"\s*:\s*\[\s*')
_BETWEEN = re.compile(r"\s*,\s*")
_DECODER = json.JSONDecoder(parse_float=str)


@dataclass(frozen=True, slots=True)
class PageZone:
    """One zone. `fields` are its structured members, `text` its narrative; without a confidence it counts as sure."""

    kind: str
    confidence: float
    fields: Mapping[str, Any]
    text: str
    text_name: str

    @property
    def order(self) -> int:
        return PRIORITY.index(self.kind) if self.kind in PRIORITY else len(PRIORITY) - 1


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its metadata (URL, title, timestamps) and its zones in the order they stand."""

    metadata: Mapping[str, Any]
    zones: tuple[PageZone, ...]


def read_page(text: str) -> Page | None:
    """The page that a text holds, None where it is not the JSON of one."""
    try:
        value = json.loads(text, parse_float=str)
    except (ValueError, RecursionError):
        return None
    if not is_object(value) or not any(is_list(value.get(name)) for name in _LISTS):
        return None
    zones = tuple(_zone(item) for name in _LISTS for item in value.get(name) or () if is_object(item))
    return Page({k: v for k, v in value.items() if k not in _LISTS}, zones)


def _zone(item: Mapping[str, Any]) -> PageZone:
    kind = next((str(item[n]).lower().replace(" ", "_").replace("-", "_") for n in _TYPE_NAMES if isinstance(item.get(n), str)), "other")
    text = " ".join(str(item[n]) for n in _TEXT_NAMES if isinstance(item.get(n), str))
    known = {"confidence", *_TEXT_NAMES, *_TYPE_NAMES}
    fields = {
        k: v
        for k, v in item.items()
        if k not in known or (k in _TYPE_NAMES and str(v).lower() != kind.replace("_", " ") and str(v) != kind)
    }
    return PageZone(
        kind,
        _confidence(item.get("confidence", 1.0)),
        fields,
        text,
        next((n for n in _TEXT_NAMES if isinstance(item.get(n), str)), _TEXT_NAMES[0]),
    )


def _confidence(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return 1.0


def dropped_spans(text: str) -> tuple[tuple[int, int, str], ...]:
    """Where zones stand that the confidence rule drops, as (start, end, rule), in order; one inside another is not told of."""
    found: list[tuple[int, int, str]] = []
    for span in sorted(_dropped(text)):
        if not found or span[0] >= found[-1][1]:
            found.append(span)
    return tuple(found)


def _dropped(text: str) -> Iterator[tuple[int, int, str]]:
    for begin in _START.finditer(text):
        at = begin.end()
        while at < len(text) and text[at] == "{":
            try:
                item, end = _DECODER.raw_decode(text, at)
            except (ValueError, RecursionError):
                break
            if _confidence(item.get("confidence", 1.0)) < KEEP_KEY_FIELDS:
                yield at, end, DROP_RULE
            between = _BETWEEN.match(text, end)
            at = between.end() if between else len(text)
