"""Page documents (000 section 22): their JSON with fewer zones. Drops zones under 0.5, then the least telling; never edits a zone."""

from collections.abc import Callable, Mapping
from typing import Any

from pandora_dagster.contracts.ports import TokenMeasure
from pandora_dagster.runtime.extractive.entities import has_kind, identifiers
from pandora_dagster.runtime.extractive.headers import as_list, as_mapping, as_number, json_object

_LEAST_CONFIDENCE = 0.5
_TELLING = ("pric", "product", "review")
"""Zone types by priority; all others come after them."""


def shorter_page(text: str, limit: int, counter: TokenMeasure, dump: Callable[[Mapping[str, Any]], str]) -> Mapping[str, Any] | None:
    """The page with as many whole zones as `limit` tokens hold, in their order; None where `text` is no page."""
    page = json_object(text)
    zones = [as_mapping(z) for z in as_list(page.get("zones")) if as_mapping(z)]
    if not zones:
        return None
    kept = [z for z in zones if (as_number(z.get("confidence")) or 0.0) >= _LEAST_CONFIDENCE]
    plain = {k: v for k, v in page.items() if not isinstance(v, (dict, list)) and k == "url"}
    while kept:
        made = {**plain, "zones": [dict(z) for z in kept]}
        if counter.count(dump(made)) <= limit:
            return made
        least = min(kept, key=_worth)
        kept = [z for z in kept if z is not least]
    return {**plain, "zones": []}


def _worth(zone: Mapping[str, Any]) -> tuple[int, float, int]:
    named = str(zone.get("type") or "").lower()
    place = next((len(_TELLING) - i for i, cue in enumerate(_TELLING) if cue in named), 0)
    text = str(dict(zone))
    return place + has_kind("money", text), as_number(zone.get("confidence")) or 0.0, len(identifiers(text))
