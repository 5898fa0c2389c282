"""Facts that a rule allows to leave out (decision 5, docs/decisions/05-dropped-by-rule.md): zones of a page under confidence 0.5, and the
less sure of two equal claims.

Reads the JSON of a PAGE_DOC (specification 000, section 22) and stated confidences (specification 001, section 3). Linear in the text.
"""

import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence

from pandora_dagster.compression.verification.forms import unit_key
from pandora_dagster.documents.units.unit import Unit

_MIN_CONFIDENCE = 0.5
_ZONES = re.compile(r'"(?:zones|content_zones|ocr_items)"\s*:\s*\[\s*')
_BETWEEN = re.compile(r"\s*,\s*")
_DECODER = json.JSONDecoder(parse_float=str)
_SITE = r"(?:source: )?[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}|source: [\w.-]{1,80}"
_STATED = r"\bconfidence(?: of)?\s{0,3}[:=]?\s{0,3}([01](?:\.\d{1,4})?|\.\d{1,4})\b"
_CONFIDENCE = re.compile(rf"[(\[](?:(?:{_SITE})[,;]?\s{{0,3}})?{_STATED}[)\]]|[,;]?\s{{0,3}}{_STATED}", re.IGNORECASE)
"""A stated confidence, with the site beside it in one pair of brackets: `(lenovo.com, confidence 0.95)`."""
_SOURCE = re.compile(rf"\[\d{{1,4}}\]|\((?:{_SITE})[,;]?\s*\)|https?://\S+", re.IGNORECASE)
ZONE_RULE, CLAIM_RULE = "page_doc: zone under confidence 0.5", "the less sure of two equal claims"


class OmissionRules:
    """The rules that apply to the facts of a text."""

    def __init__(self, text: str, units: Sequence[Unit]) -> None:
        self._weaker = weaker_claims(units)
        self._zones = tuple(_zones(text))
        self._starts = [start for start, _ in self._zones]

    def of(self, unit: int, start: int, end: int) -> str:
        """The rule by which a fact of a unit, at these characters, may be left out; "" for none."""
        if unit in self._weaker:
            return CLAIM_RULE
        at = bisect_right(self._starts, start) - 1
        return ZONE_RULE if at >= 0 and end <= self._zones[at][1] else ""


def _zones(text: str) -> Iterator[tuple[int, int]]:
    read_until = 0
    for begin in _ZONES.finditer(text):
        at = begin.end()
        while read_until <= at < len(text) and text[at] == "{":
            try:
                item, end = _DECODER.raw_decode(text, at)
            except (ValueError, RecursionError):
                break
            if _number(item.get("confidence", 1)) < _MIN_CONFIDENCE:
                yield at, end
            between = _BETWEEN.match(text, end)
            at = read_until = between.end() if between else len(text)


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return 1.0


def weaker_claims(units: Sequence[Unit]) -> frozenset[int]:
    """Numbers of the units that say the same as another one with more confidence; of equally sure ones none."""
    claims: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)
    for unit in units:
        if found := _CONFIDENCE.search(unit.text):
            claim = unit.text[: found.start()] + unit.text[found.end() :]
            claims[unit_key(_SOURCE.sub("", claim))].append((float(found[1] or found[2]), unit.order))
    weaker: set[int] = set()
    for equal_claims in claims.values():
        best = max(confidence for confidence, _ in equal_claims)
        weaker.update(order for confidence, order in equal_claims if confidence < best)
    return frozenset(weaker)
