"""Condenses a PAGE_DOC by zones (000 section 22): priority, confidence, and 70/20/10 of the budget. JSON in, JSON out."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pandora_dagster.compression.condense.prose import Prose, condense_prose
from pandora_dagster.compression.read.page_zones import KEEP_FULL, KEEP_KEY_FIELDS, PRIORITY, Page, PageZone
from pandora_dagster.contracts.ports.measurement import TokenMeasure

_STRUCTURED, _TEXT, _METADATA = 0.7, 0.2, 0.1
_KEY_FIELD = re.compile(
    r"(?:^|_)(?:name|title|product|price|cost|amount|total|currency|url|link|href|id|sku|rating|stock|availability|seller|store|brand)s?(?:_|$)",
    re.IGNORECASE,
)
_SHORTEST_TEXT = 12
_ROUNDS = 12


def condense_page(page: Page, target: int, counter: TokenMeasure) -> str:
    """The page in at most `target` tokens: sure zones whole, doubtful ones with their key fields, the rest named as dropped."""
    budget = target
    text = _rendered(page, budget, counter)
    for _ in range(_ROUNDS):
        if (tokens := counter.count(text)) <= target:
            return text
        budget -= max(tokens - target, budget // 20, 1)
        text = _rendered(page, max(budget, 1), counter)
    return text if counter.count(text) <= target else ""


def _rendered(page: Page, budget: int, counter: TokenMeasure) -> str:
    ordered = sorted((z for z in page.zones if z.confidence >= KEEP_KEY_FIELDS), key=lambda zone: zone.order)
    metadata, spent = _metadata(page.metadata, int(budget * _METADATA), counter)
    room = int(budget * _STRUCTURED) + int(budget * _METADATA) - spent
    kept: list[tuple[PageZone, dict[str, Any]]] = []
    for zone in ordered:
        entry, tokens = _structured(zone, room, counter)
        room -= tokens
        kept.append((zone, entry))
    entries = _with_texts(kept, int(budget * _TEXT) + max(room, 0), counter)
    dropped = [zone.kind for zone in page.zones if zone.confidence < KEEP_KEY_FIELDS]
    result = {**metadata, "zones": entries} | ({"dropped": dropped} if dropped else {})
    return _json(result)


def _metadata(values: Mapping[str, Any], room: int, counter: TokenMeasure) -> tuple[dict[str, Any], int]:
    """URL and times first, then what fits."""
    ordered = sorted(values, key=lambda name: not re.search(r"url|time|date|title", name, re.IGNORECASE))
    kept: dict[str, Any] = {}
    spent = 0
    for name in ordered:
        tokens = counter.count(_json({name: values[name]}))
        if spent + tokens <= room or (name == "url" and not kept):
            kept[name] = values[name]
            spent += tokens
    return kept, spent


def _structured(zone: PageZone, room: int, counter: TokenMeasure) -> tuple[dict[str, Any], int]:
    """A zone's fields: all of a sure zone, the key fields of a doubtful one, none where they do not fit."""
    head = {"type": zone.kind, "confidence": zone.confidence}
    choices = [zone.fields] if zone.confidence >= KEEP_FULL else []
    for fields in (*choices, _key_fields(zone.fields)):
        entry = {**head, **fields}
        if (tokens := counter.count(_json(entry))) <= room:
            return entry, tokens
    return {}, 0


def _key_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _pruned(value) for name, value in fields.items() if _KEY_FIELD.search(name) or isinstance(value, dict | list)}


def _pruned(value: Any) -> Any:  # Any: JSON nests without bound
    if isinstance(value, dict):
        return _key_fields(value)  # pyright: ignore[reportUnknownArgumentType]
    return [_pruned(item) for item in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]


def _with_texts(kept: list[tuple[PageZone, dict[str, Any]]], room: int, counter: TokenMeasure) -> list[dict[str, Any]]:
    """Narratives, condensed, in the order of priority while there is room."""
    entries: list[dict[str, Any]] = []
    texts = sum(bool(zone.text) for zone, _ in kept)
    for zone, entry in kept:
        share = max(room // max(texts, 1), min(room, _SHORTEST_TEXT))
        text = _shortened(zone.text, share, counter) if zone.text else ""
        texts -= bool(zone.text)
        if text:
            room -= counter.count(text) + 4
            entry = {**(entry or {"type": zone.kind, "confidence": zone.confidence}), zone.text_name: text}
        if entry:
            entries.append(entry)
    return entries


def _shortened(text: str, room: int, counter: TokenMeasure) -> str:
    if room < _SHORTEST_TEXT:
        return ""
    return text if counter.count(text) <= room else condense_prose(text, room, counter)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# Condenses a web page that came as Markdown by the zones of its headings, in the order of priority of 000 section 22.

_HEADING = re.compile(r"^#{1,6} \S.*$", re.MULTILINE)
_KINDS: Mapping[str, re.Pattern[str]] = {
    "navigation": re.compile(
        r"\b(?:related|similar|also (?:like|viewed|bought)|recommended|sponsored|menu|navigation|sitemap|footer|newsletter|subscribe"
        r"|follow us|cookies?|categories|breadcrumbs?|more from)\b",
        re.IGNORECASE,
    ),
    "pricing": re.compile(r"\b(?:pric(?:e|es|ing)|costs?|offers?|deals?|buy|availability|stock|shipping|delivery)\b", re.IGNORECASE),
    "reviews": re.compile(r"\b(?:reviews?|ratings?|testimonials?|opinions?|comments?)\b", re.IGNORECASE),
    "product_info": re.compile(
        r"\b(?:spec(?:s|ifications?)?|products?|features?|details?|description|overview|technical|dimensions?|in the box|warranty)\b",
        re.IGNORECASE,
    ),
}
"""What a heading announces. Navigation is asked first: "Related products" leads away from the page."""
_SHARES: Mapping[str, float] = {"pricing": 0.7, "product_info": 0.7, "reviews": 0.2, "other": 0.2, "navigation": 0.1}
"""Structured fields 70 %, narrative 20 %, the rest 10 %; what a zone leaves goes to the next."""


@dataclass(frozen=True, slots=True)
class MarkdownPage:
    """Zones in the order in which they stand, as (kind, text)."""

    zones: tuple[tuple[str, str], ...]

    def condensed(self, target: int, counter: TokenMeasure, must: frozenset[str]) -> str:
        """The page in at most `target` tokens: each zone by its place in the priority, all in their own order."""
        made: dict[int, str] = {}
        left = target
        pools = {share: int(share * target) for share in (0.7, 0.2, 0.1)}
        order = sorted(range(len(self.zones)), key=lambda n: (PRIORITY.index(self.zones[n][0]), n))
        for again in (False, True):
            for number in order:
                kind, text = self.zones[number]
                share, before = _SHARES[kind], counter.count(made.get(number, ""))
                room = left + before if again else min(left, pools[share])
                shown = text if counter.count(text) < room else self._shortened(number, room - 1, target, counter, must)
                spent = counter.count(shown) + 1 if shown else 0
                if shown and spent <= room and spent > before:
                    made[number] = shown
                    left -= spent - before
                    pools[share] = max(0, pools[share] - spent)
        text = "\n\n".join(made[number] for number in sorted(made))
        while made and counter.count(text) > target:
            del made[next(number for number in reversed(order) if number in made)]
            text = "\n\n".join(made[number] for number in sorted(made))
        return text

    def _shortened(self, number: int, room: int, target: int, counter: TokenMeasure, must: frozenset[str]) -> str:
        """A zone in `room` tokens; what leads away from the page stands whole or not at all."""
        kind, text = self.zones[number]
        return "" if kind == "navigation" or room < 1 else Prose(text, counter, must=must, of=target).condensed(room)


def read_markdown_page(text: str) -> MarkdownPage | None:
    """The page by its headings; None where none of them tells of a price, a product or reviews, so that there is nothing to prefer.

    What stands before the second heading is the page's own title: it tells of the product.
    """
    starts = [m.start() for m in _HEADING.finditer(text)]
    ends = [*starts[1:], len(text)][: len(starts)]
    parts = [(_kind(text[start:end]), text[start:end].strip()) for start, end in zip(starts, ends, strict=True)]
    lead = text[: starts[0]].strip() if starts else ""
    if not any(kind in ("pricing", "product_info", "reviews") for kind, _ in parts):
        return None
    first_kind, first = parts[0]
    opening = f"{lead}\n\n{first}" if lead else first
    return MarkdownPage((("product_info" if first_kind == "other" else first_kind, opening), *parts[1:]))


def _kind(zone: str) -> str:
    heading = zone.split("\n", 1)[0]
    return next((kind for kind, pattern in _KINDS.items() if pattern.search(heading)), "other")
