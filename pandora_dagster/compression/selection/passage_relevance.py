"""How much each unit has to do with a query: BM25 of the unit, and of what is around it in a long text."""

import math
import re
from collections.abc import Sequence

from pandora_dagster.compression.salience.text_reading import TextReading
from pandora_dagster.documents.units.unit import UnitKind
from pandora_dagster.language.bm25 import Bm25
from pandora_dagster.language.stems import stem
from pandora_dagster.language.stop_words import function_words
from pandora_dagster.language.tokens import TokenKind, tokens

_WIDTHS = (200.0, 1000.0)
"""Tokens over which hits are smoothed."""
_CONTEXT = 0.3
"""What a hit in a heading, label or header above counts in the unit."""
_NEAR, _PASSAGE, _LONG = 0.2, 4.0, 200
"""Weight of what is around a unit; more for each tenfold of units beyond a long text: a question there wants a passage."""
_RUN = 100.0
"""Tokens over which the units of a long talk share their scores, so that what is kept of it are runs of units."""
_WORDS = re.compile(r"[^\W\d_]{2,}")
_VOICE = 0.6
"""Weight of a speaker's nearness where the query names him."""


def relevance(reading: TextReading, query: str, costs: Sequence[int]) -> list[float]:
    """A score for each unit, at most 1; all 0 where no word of the query is in the text."""
    keys = [_keys(unit.text, reading.language) for unit in reading.units]
    ranking = Bm25(keys)
    speakers = {key for u in reading.units if u.kind is UnitKind.SPEAKER for key in keys[u.order]}
    said = {key for u in reading.units if u.kind is not UnitKind.SPEAKER for key in keys[u.order]}
    asked = dict.fromkeys(_keys(query, reading.language))
    named = [k for k in asked if k in speakers and k not in said]
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
    scores = [o + passage * n for o, n in zip(_scaled(own), _scaled(near), strict=True)]
    is_long_talk = len(keys) > _LONG and any(u.message for u in reading.units)
    return _scaled(_shared(scores, costs) if is_long_talk else scores)


def _keys(text: str, language: str) -> list[str]:
    """The keys of the tokens of a text, function words aside: a list of stop words has things that a question is about (`order`). Of a code
    (`card_9031`) the words in it too, so that a question finds it by them."""
    keys: list[str] = []
    for token in tokens(text, language, stops=function_words(language) | function_words("en")):
        keys.append(token.key)
        if token.kind is TokenKind.CODE:
            keys += (stem(word, language or "en") for word in _WORDS.findall(token.key))
    return keys


def _shared(scores: Sequence[float], costs: Sequence[int]) -> list[float]:
    """For each unit, the mean score of the tokens around it."""
    near = smoothed([s * c for s, c in zip(scores, costs, strict=True)], costs, _RUN)
    all_ = smoothed([float(c) for c in costs], costs, _RUN)
    return [s / max(1.0, a) for s, a in zip(near, all_, strict=True)]


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
