"""How much each unit has to do with a query: BM25 of the unit, and of what is around it in a long text."""

import math
from collections.abc import Sequence

from pandora_dagster.compression.salience.text_reading import TextReading
from pandora_dagster.documents.units.unit import UnitKind
from pandora_dagster.language.bm25 import Bm25
from pandora_dagster.language.tokens import tokens

_WIDTHS = (50.0, 200.0, 1000.0)
"""Tokens over which hits are smoothed."""
_CONTEXT = 0.3
"""What a hit in a heading, label or header above counts in the unit."""
_NEAR, _PASSAGE, _LONG = 0.2, 4.0, 200
"""Weight of what is around a unit; more for each tenfold of units beyond a long text: a question there wants a passage."""
_VOICE = 0.6
"""Weight of a speaker's nearness where the query names him."""


def relevance(reading: TextReading, query: str, costs: Sequence[int]) -> list[float]:
    """A score for each unit, at most 1; all 0 where no word of the query is in the text."""
    keys = [[t.key for t in held] for held in reading.tokens]
    ranking = Bm25(keys)
    speakers = {key for u in reading.units if u.kind is UnitKind.SPEAKER for key in keys[u.order]}
    asked = dict.fromkeys(t.key for t in tokens(query, reading.language))
    named = [k for k in asked if k in speakers]
    own, near = [0.0] * len(keys), [0.0] * len(keys)
    for key in (k for k in asked if k in ranking.postings and k not in named):
        hits = [0.0] * len(keys)
        for place, count in ranking.postings[key].items():
            hits[place] = float(count)
        direct = hits.copy()
        for unit in reading.units:
            if unit.needs:
                hits[unit.order] += _CONTEXT * sum(direct[n] > 0 for n in unit.needs)
        idf = ranking.idf(key)
        for i, count in enumerate(hits):
            own[i] += idf * ranking.saturated(count, i) if count else 0.0
        for width in _WIDTHS:
            for i, value in enumerate(smoothed(direct, costs, width)):
                near[i] += idf * value * 3 / (value + 2) / len(_WIDTHS)
    if named:
        spoken = [float(u.kind is UnitKind.SPEAKER and not set(keys[u.order]).isdisjoint(named)) for u in reading.units]
        voice = _scaled(smoothed(spoken, costs, 100.0))
        near = [x * (0.7 + _VOICE * v) for x, v in zip(near, voice, strict=True)]
    passage = _NEAR + _PASSAGE * max(0.0, math.log10(max(1, len(keys)) / _LONG))
    return _scaled([o + passage * n for o, n in zip(_scaled(own), _scaled(near), strict=True)])


def smoothed(hits: Sequence[float], costs: Sequence[int], width: float) -> list[float]:
    """Hits before, in and after a unit, falling off with the tokens between. Linear."""
    total = list(hits)
    for order in (range(len(hits)), range(len(hits) - 1, -1, -1)):
        held = 0.0
        for i in order:
            total[i] += held
            held = (held + hits[i]) * math.exp(-max(1, costs[i]) / width)
    return total


def _scaled(values: list[float]) -> list[float]:
    top = max(values, default=0.0)
    return [v / top for v in values] if top else values
