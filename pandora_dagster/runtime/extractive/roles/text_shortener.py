"""Role `compressor`: the most telling lines of a text, verbatim and in order, within the tokens the call may write."""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from pandora_dagster.compression.numbered_units import read_numbered
from pandora_dagster.contracts.enums import OutputFormat
from pandora_dagster.contracts.model_calls import PromptPack
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.language.sentences import sentences
from pandora_dagster.runtime.extractive.evidence.header_lines import as_list, as_mapping, as_number, json_object
from pandora_dagster.runtime.extractive.output_budget import Draft
from pandora_dagster.runtime.extractive.words.answer_templates import TEMPLATES
from pandora_dagster.runtime.extractive.words.entities import URL, has_kind, identifiers
from pandora_dagster.runtime.extractive.words.query_relevance import asked_stems
from pandora_dagster.runtime.extractive.words.word_matching import terms

# Page documents (000 section 22): their JSON with fewer zones. Drops zones under 0.5, then the least telling; never edits a zone.

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


_SUFFIX = "_to_compress"
_ZONE_FRAME_TOKENS = 60
"""What the frame of one zone takes, and the escapes of its line breaks and quotes."""
_ERROR = re.compile(r"\b(?:error|failed|failure|exception|denied|unavailable|out of stock|in stock|must|not)\b", re.IGNORECASE)
_HEADING = re.compile(r"^#{1,6} ")
_QUERY_SECTION = re.compile(r"^## 0\. ")


def shorten(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """000 section 23: whole lines and sentences by what they hold; section 0 first, then addresses, money, numbers, names, errors."""
    text = next((p.text for p in pack.parts if p.kind == "document" and p.name.endswith(_SUFFIX)), "")
    if "keep" in (pack.output_schema or {}).get("properties", {}):
        return _choice(text, pack, counter)
    if pack.output_format is OutputFormat.JSON:
        return _page(text, pack.max_output_tokens, counter, pack.query)
    return condensed(text, pack.max_output_tokens, counter, about=pack.query)


def _choice(text: str, pack: PromptPack, counter: TokenMeasure) -> str:
    """Numbers of the best units, the best first, within the tokens that the call asks for; at least one."""
    units = list(read_numbered(text))
    scores = _scores([unit.text for unit in units], pack.query)
    left, keep = target_tokens(pack, "target_tokens", counter.count(text)), list[int]()
    for unit, _ in sorted(zip(units, scores, strict=True), key=lambda pair: -pair[1]):
        if unit.tokens <= left or not keep:
            keep.append(unit.number)
            left -= unit.tokens
    return _dumped({"keep": keep})


def target_tokens(pack: PromptPack, name: str, default: int) -> int:
    """The number that the call gives in its variable `name`."""
    shown = next((p.text for p in pack.parts if p.kind == "variables"), "")
    found = re.search(rf"^{name}: (\d{{1,6}})$", shown, re.MULTILINE)
    return int(found[1]) if found else default


def _page(text: str, limit: int, counter: TokenMeasure, about: str) -> str:
    """A page's JSON with fewer zones; a text that is no page becomes one zone."""
    page = shorter_page(text, limit, counter, _dumped)
    if page is None:
        short = condensed(text, max(1, limit - _ZONE_FRAME_TOKENS), counter, about=about)
        page = {"zones": [{"type": TEMPLATES["page_text"], "confidence": 1.0, "text": short}] if short else []}
    return _dumped(page)


def _dumped(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def condensed(text: str, limit: int, counter: TokenMeasure, *, about: str = "") -> str:
    """`text` itself where it has at most `limit` tokens, else its best lines in their order, at most `limit` tokens; "" where none fits."""
    if counter.count(text) <= limit:
        return text
    pieces = [
        (at, piece)
        for at, line in enumerate(text.splitlines())
        for piece in (sentences(line) if len(line) > 300 else (line,))
        if piece.strip()
    ]
    scores = _scores([piece for _, piece in pieces], about)
    kept: set[int] = set()
    used = 0
    for i in sorted(range(len(pieces)), key=lambda i: (-scores[i], i)):
        cost = counter.count(pieces[i][1]) + 1
        if scores[i] > 0 and used + cost <= limit:
            kept.add(i)
            used += cost
    return _joined([pieces[i] for i in sorted(kept)], limit, counter)


def _scores(pieces: list[str], about: str) -> list[float]:
    read = [Counter(terms(p)) for p in pieces]
    spread = Counter(t for r in read for t in r)
    asked = asked_stems(about)
    protected, scores = False, list[float]()
    for piece, stems in zip(pieces, read, strict=True):
        if _HEADING.match(piece):
            protected = bool(_QUERY_SECTION.match(piece))
            scores.append(math.inf if protected else 1.0)
        else:
            scores.append(math.inf if protected else _score(piece, stems, spread, len(pieces), asked))
    return scores


def _score(piece: str, stems: Counter[str], spread: Counter[str], total: int, asked: frozenset[str]) -> float:
    """What a piece holds for its length: facts weigh most, words of the query more than others, rare words a little."""
    hard = (
        len(identifiers(piece))
        + 2 * len(URL.findall(piece))
        + 2 * has_kind("money", piece)
        + has_kind("person", piece)
        + 2 * bool(_ERROR.search(piece))
    )
    wanted = sum(3.0 for t in stems if t in asked)
    rare = sum(math.log(total / spread[t] + 1) for t in stems)
    return (2.0 * hard + wanted + 0.2 * rare) / math.sqrt(len(piece) + 20)


def _joined(pieces: list[tuple[int, str]], limit: int, counter: TokenMeasure) -> str:
    """Pieces of one line joined by blanks, lines by line breaks; pieces are taken away from the end until it fits."""
    while pieces:
        lines: dict[int, str] = {}
        for at, piece in pieces:
            lines[at] = f"{lines[at]} {piece}" if at in lines else piece
        text = "\n".join(lines.values())
        if counter.count(text) <= limit:
            return text
        pieces = pieces[:-1]
    return ""


ANSWERS = {"compressor": shorten}
"""Recipe field `role` -> the function that answers it."""
