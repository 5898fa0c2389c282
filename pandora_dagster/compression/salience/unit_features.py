"""General features of a unit in its document. Nothing here knows a subject, a source or a name.

All features of a document are centred on the mean of its units, headings aside: a question says little where everybody asks.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pandora_dagster.compression.salience.text_reading import TextReading
from pandora_dagster.documents.units.unit import Unit, UnitKind
from pandora_dagster.language.cues import Cue, cues
from pandora_dagster.language.tokens import Token, TokenKind

LENGTH_FEATURES = frozenset({"log_length", "relative_length"})
"""Features that the coverage of the selection counts already: fitted as controls, left out of the score."""
_NEAR = 5
"""Holders of a key beyond which it does not make two units alike; bounds the comparison, so that it stays linear."""
_FACTS = (UnitKind.ROW, UnitKind.LOG, UnitKind.CODE, UnitKind.HUNK)
_WORD = re.compile(r"[^\W\d_]+")
_PIECE = re.compile(r"\w+|[^\w\s]")
_OWN_CUES = tuple(c for c in Cue if c not in (Cue.QUESTION,))
Features = dict[str, float]


@dataclass(frozen=True, slots=True)
class _Document:
    """What the features of every unit look up."""

    units: tuple[Unit, ...]
    tokens: tuple[tuple[Token, ...], ...]
    mean_tokens: float
    cues: tuple[frozenset[Cue], ...]
    holders: dict[str, list[int]]
    rarity: dict[str, float]
    vectors: list[dict[str, float]]
    centre: dict[str, float]
    title: int
    row_rarity: dict[int, float]
    messages: tuple[list[int], Counter[int]]
    runs: tuple[list[int], Counter[int]]


def unit_features(reading: TextReading) -> list[Features]:
    """A row of named features for each unit of the text but those that only name a speaker; {} for those."""
    places = [i for i, u in enumerate(reading.units) if u.kind is not UnitKind.SPEAKER]
    rows: list[Features] = [{} for _ in reading.units]
    if not places:
        return rows
    document = _document(reading, places)
    found = [{k: float(v) for group in _GROUPS for k, v in group(document, i).items()} for i in range(len(places))]
    own = [f for f, u in zip(found, document.units, strict=True) if not u.is_context] or found
    mean = {name: sum(f[name] for f in own) / len(own) for name in found[0]}
    for place, features in zip(places, found, strict=True):
        rows[place] = {name: value - mean[name] for name, value in features.items()}
    return rows


def _document(reading: TextReading, places: list[int]) -> _Document:
    units = tuple(reading.units[i] for i in places)
    found = tuple(reading.tokens[i] for i in places)
    holders: dict[str, list[int]] = defaultdict(list)
    for i, held in enumerate(found):
        for key in {t.key for t in held}:
            holders[key].append(i)
    rarity = {key: math.log((len(units) + 1) / len(where)) for key, where in holders.items()}
    vectors = [_unit_vector({k: n * rarity[k] for k, n in Counter(t.key for t in held).items()}) for held in found]
    centre: dict[str, float] = defaultdict(float)
    for vector in vectors:
        for key, value in vector.items():
            centre[key] += value
    return _Document(
        units,
        found,
        sum(map(len, found)) / len(found),
        tuple(cues(u.text, reading.language) for u in units),
        holders,
        rarity,
        vectors,
        _unit_vector(centre),
        next((i for i, u in enumerate(units) if u.kind is UnitKind.HEADING), 0),
        _row_rarity(units, found),
        _spans(units, lambda a, b: a.message != b.message or a.speaker != b.speaker),
        _spans(units, lambda a, b: a.message != b.message or a.kind != b.kind or b.kind is UnitKind.HEADING),
    )


def _row_rarity(units: Sequence[Unit], found: Sequence[Sequence[Token]]) -> dict[int, float]:
    """Place of a row -> how rare its tokens are among the rows of its table; tables of fewer than four rows have none."""
    tables: dict[int, list[int]] = defaultdict(list)
    for i, unit in enumerate(units):
        if unit.kind is UnitKind.ROW:
            tables[unit.block].append(i)
    rarity: dict[int, float] = {}
    for rows in tables.values():
        if len(rows) < 4:
            continue
        keys = {i: {t.key for t in found[i]} for i in rows}
        counts = Counter(key for held in keys.values() for key in held)
        rarity |= {i: sum(math.log(len(rows) / counts[k]) for k in held) / max(1, len(held)) for i, held in keys.items()}
    return rarity


def _unit_vector(values: dict[str, float]) -> dict[str, float]:
    norm = math.sqrt(sum(v * v for v in values.values())) or 1.0
    return {k: v / norm for k, v in values.items()}


def _spans(units: Sequence[Unit], begins: Callable[[Unit, Unit], bool]) -> tuple[list[int], Counter[int]]:
    """First unit of the span that each unit is in, and the size of the span by its first unit."""
    first = [0] * len(units)
    for i in range(1, len(units)):
        first[i] = i if begins(units[i - 1], units[i]) else first[i - 1]
    return first, Counter(first)


def _kind(d: _Document, i: int) -> Features:
    """A row of a table of fewer than four rows is a record, which says what a sentence says."""
    kind = d.units[i].kind
    return {
        "is_item": kind is UnitKind.ITEM,
        "is_row": i in d.row_rarity,
        "row_rarity": d.row_rarity.get(i, 0.0),
        "is_code": kind in (UnitKind.CODE, UnitKind.HUNK, UnitKind.CALL),
        "is_log": kind in (UnitKind.LOG, UnitKind.ERROR),
    }


def _position(d: _Document, i: int) -> Features:
    last = max(1, len(d.units) - 1)
    place = i / last
    talk = bool(d.units[i].speaker)
    (message, messages), (run, runs) = d.messages, d.runs
    return {
        "start": math.exp(-8 * place),
        "end": math.exp(-8 * (1 - place)),
        "place": place,
        "talk_place": talk * place,
        "message_place": (i - message[i]) / messages[message[i]] if talk else 0.0,
        "first_of_run": i == run[i],
        "last_of_run": i == run[i] + runs[run[i]] - 1,
        "log_run": math.log(runs[run[i]]),
    }


def _length(d: _Document, i: int) -> Features:
    text = d.units[i].text
    return {
        "log_length": math.log(len(_PIECE.findall(text)) or 1),
        "relative_length": math.log((len(d.tokens[i]) + 1) / (d.mean_tokens + 1)),
    }


def _values(d: _Document, i: int) -> Features:
    kinds = {t.kind for t in d.tokens[i]}
    return {f"has_{kind.value}": kind in kinds for kind in (TokenKind.VALUE, TokenKind.CODE, TokenKind.NAME)}


def _cues(d: _Document, i: int) -> Features:
    return {cue.value: cue in d.cues[i] for cue in _OWN_CUES}


def _talk(d: _Document, i: int) -> Features:
    opened = d.messages[0][i]
    before = range(max(0, opened - 2), opened)
    asks = Cue.QUESTION in d.cues[i]
    role = d.units[i].speaker.lower()
    return {
        "question": asks,
        "answer": not asks and (_asks(d, i - 1) or (i - opened < 2 and any(_asks(d, j) for j in before))),
        "by_user": role.startswith(("user", "customer", "human", "patient", "caller")),
        "by_assistant": role.startswith(("assistant", "agent", "ai", "doctor", "support")),
        "by_tool": role.startswith(("tool", "system", "function")),
    }


def _asks(d: _Document, i: int) -> bool:
    return 0 <= i < len(d.units) and Cue.QUESTION in d.cues[i]


def _similarity(d: _Document, i: int) -> Features:
    vector = d.vectors[i]
    alike: dict[int, float] = defaultdict(float)
    for key, value in vector.items():
        if len(d.holders[key]) <= _NEAR:
            for j in d.holders[key]:
                alike[j] += value * d.vectors[j][key]
    return {
        "to_title": _cosine(vector, d.vectors[d.title]) if i != d.title else 0.0,
        "to_centre": _cosine(vector, d.centre),
        "similar_before": max((s for j, s in alike.items() if j < i), default=0.0),
        "similar_after": max((s for j, s in alike.items() if j > i), default=0.0),
        "links": math.log1p(len(alike)),
    }


def _cosine(a: dict[str, float], b: dict[str, float]) -> float:
    return sum(v * b.get(k, 0.0) for k, v in a.items())


def _signs(d: _Document, i: int) -> Features:
    text = d.units[i].text
    bare = text.strip().strip("*_ ")
    words = _WORD.findall(text)
    return {
        "exclaims": bare.endswith("!"),
        "bold": "**" in text,
        "upper": sum(w[0].isupper() for w in words[1:]) / max(1, len(words)),
        "link": "http" in text or "](" in text,
    }


_GROUPS: tuple[Callable[[_Document, int], Features], ...] = (*(_kind, _position, _length, _values, _cues, _talk, _similarity, _signs),)
