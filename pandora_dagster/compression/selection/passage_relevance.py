"""How much each unit has to do with a query: BM25 of the unit, and of what is around it in a long text.

In: units with their tokens, a query, costs in tokens. A unit scores by the words of the query that it has, those of its headings and labels
at a share, and by the hits of the units around it, the nearer the more. Out: a score for each unit, 1 for the best.
"""

import math
import re
from collections.abc import Sequence

from pandora_dagster.compression.salience.text_reading import TextReading
from pandora_dagster.documents.units.unit import UnitKind
from pandora_dagster.language.bm25 import Bm25
from pandora_dagster.language.stems import stem
from pandora_dagster.language.stop_words import function_words
from pandora_dagster.language.tokens import TokenKind, tokens

_NEARBY_WIDTHS = (200.0, 1000.0)
"""Tokens over which a hit spreads to the units around it."""
_NEARBY_SATURATION = 2.0
"""Hits nearby from which further ones add little, as `k1` of BM25."""
_CONTEXT_SHARE = 0.3
"""What a hit in a heading, label or header above counts in the unit."""
_NEARBY_WEIGHT, _NEARBY_WEIGHT_OF_TENFOLD, _LONG_TEXT_UNITS = 0.2, 4.0, 200
"""Weight of what is around a unit; more for each tenfold of units beyond a long text: a question there wants a passage."""
_RUN_TOKENS = 100.0
"""Tokens over which the units of a long talk share their scores, so that what is kept of it are runs of units."""
_SPEAKER_WIDTH, _SPEAKER_WEIGHT, _OTHER_SPEAKERS_WEIGHT = 100.0, 0.6, 0.7
"""Where the query names a speaker: tokens to which his units spread, their weight, and the weight of what is around all other units."""
_WORD_IN_CODE = re.compile(r"[^\W\d_]{2,}")


def relevance(reading: TextReading, query: str, costs: Sequence[int]) -> list[float]:
    """A score for each unit, at most 1; all 0 where no word of the query is in the text."""
    keys = [_keys(unit.text, reading.language) for unit in reading.units]
    ranking = Bm25(keys)
    speaker_keys = {key for u in reading.units if u.kind is UnitKind.SPEAKER for key in keys[u.order]}
    content_keys = {key for u in reading.units if u.kind is not UnitKind.SPEAKER for key in keys[u.order]}
    query_keys = dict.fromkeys(_keys(query, reading.language))
    named_speakers = [k for k in query_keys if k in speaker_keys and k not in content_keys]
    own, nearby = [0.0] * len(keys), [0.0] * len(keys)
    for key in (k for k in query_keys if k in ranking.postings and k not in named_speakers):
        hits = [0.0] * len(keys)
        for order, count in ranking.postings[key].items():
            hits[order] = float(count)
        idf = ranking.idf(key)
        for unit in reading.units:
            if weighted_hits := hits[unit.order] + _CONTEXT_SHARE * sum(hits[n] > 0 for n in unit.needs):
                own[unit.order] += idf * ranking.saturated(weighted_hits, unit.order)
        for width in _NEARBY_WIDTHS:
            for i, value in enumerate(smoothed(hits, costs, width)):
                nearby[i] += idf * value * (_NEARBY_SATURATION + 1) / (value + _NEARBY_SATURATION) / len(_NEARBY_WIDTHS)
    if named_speakers:
        is_named = [float(u.kind is UnitKind.SPEAKER and not set(keys[u.order]).isdisjoint(named_speakers)) for u in reading.units]
        closeness = _scaled(smoothed(is_named, costs, _SPEAKER_WIDTH))
        nearby = [x * (_OTHER_SPEAKERS_WEIGHT + _SPEAKER_WEIGHT * c) for x, c in zip(nearby, closeness, strict=True)]
    nearby_weight = _NEARBY_WEIGHT + _NEARBY_WEIGHT_OF_TENFOLD * max(0.0, math.log10(max(1, len(keys)) / _LONG_TEXT_UNITS))
    scores = [o + nearby_weight * n for o, n in zip(_scaled(own), _scaled(nearby), strict=True)]
    is_long_talk = len(keys) > _LONG_TEXT_UNITS and any(u.message for u in reading.units)
    return _scaled(_shared(scores, costs) if is_long_talk else scores)


def _keys(text: str, language: str) -> list[str]:
    """The keys of the tokens of a text, function words aside: a list of stop words has things that a question is about (`order`). Of a code
    (`card_9031`) the words in it too, so that a question finds it by them."""
    keys: list[str] = []
    for token in tokens(text, language, stops=function_words(language) | function_words("en")):
        keys.append(token.key)
        if token.kind is TokenKind.CODE:
            keys += (stem(word, language or "en") for word in _WORD_IN_CODE.findall(token.key))
    return keys


def _shared(scores: Sequence[float], costs: Sequence[int]) -> list[float]:
    """For each unit, the mean score of the tokens around it."""
    score_sums = smoothed([s * c for s, c in zip(scores, costs, strict=True)], costs, _RUN_TOKENS)
    token_sums = smoothed([float(c) for c in costs], costs, _RUN_TOKENS)
    return [s / max(1.0, t) for s, t in zip(score_sums, token_sums, strict=True)]


def smoothed(hits: Sequence[float], costs: Sequence[int], width: float) -> list[float]:
    """Hits before, in and after a unit, which fall off with the tokens between. Linear."""
    total = list(hits)
    for order in (range(len(hits)), range(len(hits) - 1, -1, -1)):
        carried = 0.0
        for i in order:
            total[i] += carried
            carried = (carried + hits[i]) * math.exp(-max(1, costs[i]) / width)
    return total


def _scaled(values: list[float]) -> list[float]:
    """The values over the largest one."""
    top = max(values, default=0.0)
    return [v / top for v in values] if top else values
