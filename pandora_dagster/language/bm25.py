"""BM25 over documents of keys: the one ranking by words."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

K1, B = 1.2, 0.6


def idf(documents: int, holders: int) -> float:
    """How rare a key is among `documents`, `holders` of which have it."""
    return math.log(1 + (max(documents, holders) - holders + 0.5) / (holders + 0.5))


class Bm25:
    """Documents, each a sequence of keys, ready for queries."""

    def __init__(self, documents: Sequence[Sequence[str]]) -> None:
        self._sizes = [len(keys) for keys in documents]
        self._mean = sum(self._sizes) / max(1, len(documents)) or 1.0
        self.postings: dict[str, dict[int, int]] = {}
        """Key -> the documents that hold it, with how often."""
        for place, keys in enumerate(documents):
            for key, count in Counter(keys).items():
                self.postings.setdefault(key, {})[place] = count

    def __len__(self) -> int:
        return len(self._sizes)

    def idf(self, key: str) -> float:
        """Inverse document frequency, 0 for a key that no document holds."""
        holders = len(self.postings.get(key, ()))
        return idf(len(self), holders) if holders else 0.0

    def saturated(self, frequency: float, place: int) -> float:
        """What so many hits count in a document of this size."""
        size = 1 - B + B * self._sizes[place] / self._mean
        return frequency * (K1 + 1) / (frequency + K1 * size)

    def scores(self, query: Iterable[str]) -> list[float]:
        """A score for each document; 0 where it holds no key of the query."""
        found = [0.0] * len(self)
        for key in dict.fromkeys(query):
            idf = self.idf(key)
            for place, count in self.postings.get(key, {}).items():
                found[place] += idf * self.saturated(count, place)
        return found
