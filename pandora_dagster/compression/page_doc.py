"""Condenses a PAGE_DOC by zones (000 section 22): priority, confidence, and 70/20/10 of the budget. JSON in, JSON out."""

import json
import re
from collections.abc import Mapping
from typing import Any

from pandora_dagster.compression.page_zones import KEEP_FULL, KEEP_KEY_FIELDS, Page, PageZone
from pandora_dagster.compression.prose import condense_prose
from pandora_dagster.contracts.ports import TokenMeasure

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
