"""How much each of a few texts says about a query, by the terms they share. Knows one query's texts; keeps no index."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from pandora_dagster.language.terms import TermReader

_SATURATION = 1.2
"""How soon repeating a term stops to count (BM25's k1)."""


@dataclass(frozen=True, slots=True)
class TermOverlap:
    """Scores texts against a query: rare shared terms count most; the best text scores 1."""

    reader: TermReader

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score per text in 0..1; all 0 where nothing is shared."""
        asked = set(self.reader.counts(query))
        counted = [self.reader.counts(text) for text in texts]
        weights = {term: log(1 + len(texts) / (1 + sum(term in c for c in counted))) for term in asked}
        raw = [_score(weights, counts) for counts in counted]
        best = max(raw, default=0.0)
        return [value / best if best else 0.0 for value in raw]


def _score(weights: dict[str, float], counts: Counter[str]) -> float:
    return sum(weight * counts[term] / (counts[term] + _SATURATION) for term, weight in weights.items() if term in counts)
