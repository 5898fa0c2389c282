"""General features of a unit in its document: kind, position, values, cues, likeness to other units. None depends on a subject.

All features of a document are centred on the mean of its units, headings aside: a question says little where everybody asks.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

from pandora_dagster.compression.salience.text_reading import TextReading
from pandora_dagster.documents.units.unit import Unit, UnitKind
from pandora_dagster.language.cues import Cue, cues
from pandora_dagster.language.tokens import Token, TokenKind

LENGTH_FEATURES = frozenset({"log_length", "relative_length"})
"""Features that the coverage of the selection counts already: fitted as controls, left out of the score."""
_MAX_ALIKE_HOLDERS = 5
"""A key that more units have does not make two of them alike; bounds the comparison, so that it stays linear."""
_MIN_TABLE_ROWS = 4
"""Rows from which a table is one; a row of a smaller one is a record, which says what a sentence says."""
_END_DECAY = 8
"""How fast `start` and `end` fall off: to a third after an eighth of the units."""
_MAX_ANSWER_UNITS = 2
"""A question among so many last units of a message is answered by as many first units of the next."""
_WORD = re.compile(r"[^\W\d_]+")
_PIECE = re.compile(r"\w+|[^\w\s]")
Features = dict[str, float]


@dataclass(frozen=True, slots=True)
class _Document:
    """What the features of every unit look up."""

    units: tuple[Unit, ...]
    tokens: tuple[tuple[Token, ...], ...]
    mean_tokens: float
    cues: tuple[frozenset[Cue], ...]
    holders: dict[str, list[int]]
    """Key of a token -> the units that have it."""
    vectors: list[dict[str, float]]
    """Of each unit: key of a token -> its share of the unit, by rarity, as a vector of length 1."""
    centre: dict[str, float]
    """The sum of the vectors, of length 1."""
    title: int
    """The first heading, or the first unit where there is none."""
    row_rarity: dict[int, float]
    message_starts: list[int]
    """First unit of the message that each unit is in."""
    message_sizes: Counter[int]
    """Units of a message, by its first unit."""
    run_starts: list[int]
    """First unit of the run of one kind that each unit is in."""
    run_sizes: Counter[int]
    """Units of a run, by its first unit."""


def unit_features(reading: TextReading) -> list[Features]:
    """A row of named features for each unit of the text but those that only name a speaker; {} for those."""
    orders = [i for i, u in enumerate(reading.units) if u.kind is not UnitKind.SPEAKER]
    rows: list[Features] = [{} for _ in reading.units]
    if not orders:
        return rows
    document = _document(reading, orders)
    raw = [{k: float(v) for group in _GROUPS for k, v in group(document, i).items()} for i in range(len(orders))]
    content = [f for f, u in zip(raw, document.units, strict=True) if not u.is_context] or raw
    mean = {name: sum(f[name] for f in content) / len(content) for name in raw[0]}
    for order, features in zip(orders, raw, strict=True):
        rows[order] = {name: value - mean[name] for name, value in features.items()}
    return rows


def _document(reading: TextReading, orders: list[int]) -> _Document:
    units = tuple(reading.units[i] for i in orders)
    tokens = tuple(reading.tokens[i] for i in orders)
    holders: dict[str, list[int]] = defaultdict(list)
    for i, unit_tokens in enumerate(tokens):
        for key in {t.key for t in unit_tokens}:
            holders[key].append(i)
    rarity = {key: math.log((len(units) + 1) / len(where)) for key, where in holders.items()}
    vectors = [_normalized({k: n * rarity[k] for k, n in Counter(t.key for t in unit_tokens).items()}) for unit_tokens in tokens]
    centre: dict[str, float] = defaultdict(float)
    for key, value in chain.from_iterable(vector.items() for vector in vectors):
        centre[key] += value
    message_starts = _span_starts(units, lambda a, b: a.message != b.message or a.speaker != b.speaker)
    run_starts = _span_starts(units, lambda a, b: a.message != b.message or a.kind != b.kind or b.kind is UnitKind.HEADING)
    return _Document(
        units=units,
        tokens=tokens,
        mean_tokens=sum(map(len, tokens)) / len(tokens),
        cues=tuple(cues(u.text, reading.language) for u in units),
        holders=holders,
        vectors=vectors,
        centre=_normalized(centre),
        title=next((i for i, u in enumerate(units) if u.kind is UnitKind.HEADING), 0),
        row_rarity=_row_rarity(units, tokens),
        message_starts=message_starts,
        message_sizes=Counter(message_starts),
        run_starts=run_starts,
        run_sizes=Counter(run_starts),
    )


def _row_rarity(units: Sequence[Unit], tokens: Sequence[Sequence[Token]]) -> dict[int, float]:
    """Row -> how rare its tokens are among the rows of its table; without the rows of small tables."""
    tables: dict[int, list[int]] = defaultdict(list)
    for i, unit in enumerate(units):
        if unit.kind is UnitKind.ROW:
            tables[unit.block].append(i)
    rarity: dict[int, float] = {}
    for rows in tables.values():
        if len(rows) < _MIN_TABLE_ROWS:
            continue
        keys = {i: {t.key for t in tokens[i]} for i in rows}
        counts = Counter(key for row_keys in keys.values() for key in row_keys)
        rarity |= {i: sum(math.log(len(rows) / counts[k]) for k in row_keys) / max(1, len(row_keys)) for i, row_keys in keys.items()}
    return rarity


def _normalized(values: dict[str, float]) -> dict[str, float]:
    norm = math.sqrt(sum(v * v for v in values.values())) or 1.0
    return {k: v / norm for k, v in values.items()}


def _span_starts(units: Sequence[Unit], begins: Callable[[Unit, Unit], bool]) -> list[int]:
    """First unit of the span that each unit is in; `begins` says whether the second of two units begins one."""
    starts = [0] * len(units)
    for i in range(1, len(units)):
        starts[i] = i if begins(units[i - 1], units[i]) else starts[i - 1]
    return starts


def _kind(d: _Document, i: int) -> Features:
    kind = d.units[i].kind
    return {
        "is_item": kind is UnitKind.ITEM,
        "is_row": i in d.row_rarity,
        "row_rarity": d.row_rarity.get(i, 0.0),
        "is_code": kind in (UnitKind.CODE, UnitKind.HUNK, UnitKind.CALL),
        "is_log": kind in (UnitKind.LOG, UnitKind.ERROR),
    }


def _position(d: _Document, i: int) -> Features:
    place = i / max(1, len(d.units) - 1)
    start, run = d.message_starts[i], d.run_starts[i]
    return {
        "start": math.exp(-_END_DECAY * place),
        "end": math.exp(-_END_DECAY * (1 - place)),
        "place": place,
        "talk_place": place if d.units[i].speaker else 0.0,
        "message_place": (i - start) / d.message_sizes[start] if d.units[i].speaker else 0.0,
        "first_of_run": i == run,
        "last_of_run": i == run + d.run_sizes[run] - 1,
        "log_run": math.log(d.run_sizes[run]),
    }


def _length(d: _Document, i: int) -> Features:
    return {
        "log_length": math.log(len(_PIECE.findall(d.units[i].text)) or 1),
        "relative_length": math.log((len(d.tokens[i]) + 1) / (d.mean_tokens + 1)),
    }


def _values(d: _Document, i: int) -> Features:
    kinds = {t.kind for t in d.tokens[i]}
    return {f"has_{kind.value}": kind in kinds for kind in (TokenKind.VALUE, TokenKind.CODE, TokenKind.NAME)}


def _cues(d: _Document, i: int) -> Features:
    return {cue.value: cue in d.cues[i] for cue in Cue}


def _talk(d: _Document, i: int) -> Features:
    start = d.message_starts[i]
    is_answer = _asks(d, i - 1) or (i - start < _MAX_ANSWER_UNITS and any(_asks(d, n) for n in range(start - _MAX_ANSWER_UNITS, start)))
    role = d.units[i].role
    return {
        "answer": is_answer and not _asks(d, i),
        "by_user": role in ("user", "customer", "human", "patient", "caller"),
        "by_assistant": role in ("assistant", "agent", "ai", "doctor", "support"),
        "by_tool": role in ("tool", "system", "function"),
    }


def _asks(d: _Document, i: int) -> bool:
    return 0 <= i < len(d.units) and Cue.QUESTION in d.cues[i]


def _similarity(d: _Document, i: int) -> Features:
    """Likeness to title, text and the most similar unit before and after, and how many units, itself included, have a rare key of it."""
    alike: dict[int, float] = defaultdict(float)
    for key, value in d.vectors[i].items():
        if len(d.holders[key]) <= _MAX_ALIKE_HOLDERS:
            for j in d.holders[key]:
                alike[j] += value * d.vectors[j][key]
    return {
        "to_title": _cosine(d.vectors[i], d.vectors[d.title]) if i != d.title else 0.0,
        "to_centre": _cosine(d.vectors[i], d.centre),
        "similar_before": max((s for j, s in alike.items() if j < i), default=0.0),
        "similar_after": max((s for j, s in alike.items() if j > i), default=0.0),
        "links": math.log1p(len(alike)),
    }


def _cosine(a: dict[str, float], b: dict[str, float]) -> float:
    return sum(value * b.get(key, 0.0) for key, value in a.items())


def _marks(d: _Document, i: int) -> Features:
    text = d.units[i].text
    words = _WORD.findall(text)
    return {
        "exclaims": text.strip().strip("*_ ").endswith("!"),
        "bold": "**" in text,
        "upper": sum(w[0].isupper() for w in words[1:]) / max(1, len(words)),
        "link": "http" in text or "](" in text,
    }


_GROUPS: tuple[Callable[[_Document, int], Features], ...] = (_kind, _position, _length, _values, _cues, _talk, _similarity, _marks)
