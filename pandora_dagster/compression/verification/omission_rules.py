"""What a rule allows to leave out (DECISIONS 5): zones of a page under confidence 0.5, and the less sure of two equal claims.

Knows the JSON of a PAGE_DOC (000 section 22) and how a claim states its confidence (001 section 3). Linear in the text.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from pandora_dagster.compression.verification.forms import unit_key
from pandora_dagster.documents.units.unit import Unit

_LEAST = 0.5
_ZONES = re.compile(r'"(?:zones|content_zones|ocr_items)"\s*:\s*\[\s*')
_BETWEEN = re.compile(r"\s*,\s*")
_DECODER = json.JSONDecoder(parse_float=str)
_CONFIDENCE = re.compile(r"[,;(\[]?\s{0,3}\bconfidence(?: of)?\s{0,3}[:=]?\s{0,3}([01](?:\.\d{1,4})?|\.\d{1,4})\b[)\]]?", re.IGNORECASE)
_SOURCE = re.compile(r"\[\d{1,4}\]|\((?:source: )?[\w.-]{1,80}[,;]?\s*\)|https?://\S+")
ZONE_RULE, CLAIM_RULE = "page_doc: zone under confidence 0.5", "the less sure of two equal claims"


def rules_of_units(text: str, units: Sequence[Unit]) -> dict[int, str]:
    """Order of a unit that may be left out -> the rule."""
    found = dict.fromkeys(_weaker_claims(units), CLAIM_RULE)
    spans = tuple(_zones(text))
    at = 0
    for unit in units:
        while at < len(spans) and spans[at][1] <= unit.start:
            at += 1
        if at < len(spans) and spans[at][0] <= unit.start and unit.end <= spans[at][1]:
            found[unit.order] = ZONE_RULE
    return found


def _zones(text: str) -> Iterator[tuple[int, int]]:
    last = 0
    for begin in _ZONES.finditer(text):
        at = begin.end()
        while last <= at < len(text) and text[at] == "{":
            try:
                item, end = _DECODER.raw_decode(text, at)
            except (ValueError, RecursionError):
                break
            if _number(item.get("confidence", 1)) < _LEAST:
                yield at, end
            between = _BETWEEN.match(text, end)
            at = last = between.end() if between else len(text)


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return 1.0


def _weaker_claims(units: Sequence[Unit]) -> Iterator[int]:
    """Units that say the same as another one with more confidence; of equally sure ones none."""
    claims: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)
    for unit in units:
        if found := _CONFIDENCE.search(unit.text):
            said = unit.text[: found.start()] + unit.text[found.end() :]
            claims[unit_key(_SOURCE.sub("", said))].append((float(found[1]), unit.order))
    for same in claims.values():
        best = max(confidence for confidence, _ in same)
        yield from (order for confidence, order in same if confidence < best)
