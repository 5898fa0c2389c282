"""The order of found turns. Knows scores, sessions and recency; knows nothing of where the scores come from.

Measured on real conversations: terms carry the order; the dates that a question names come next; a neighbour in the same session
lends a part of its score, because what answers often stands beside what was asked; among equals the newer turn stands first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

DATE_WEIGHT = 0.5
NEIGHBOUR_WEIGHTS = {-1: 0.35, 1: 0.3}
"""Distance in the session -> the part of that neighbour's score that a turn takes over."""
RECENCY_WEIGHT = 0.03


@dataclass(frozen=True, slots=True)
class Found:
    """One turn that matched: its number, its session, what its terms and its date scored."""

    number: int
    session: str
    terms: float
    dates: float = 0.0


@dataclass(frozen=True, slots=True)
class Ranked:
    """A turn with its final score, best first in a result."""

    number: int
    score: float


def ranked(found: Sequence[Found], sessions: Mapping[str, Sequence[int]]) -> tuple[Ranked, ...]:
    """Found turns and their session neighbours, best first.

    `sessions` gives the turn numbers of each found session, ascending. A turn that neither matched nor stands beside a
    match is not in the result.
    """
    if not found:
        return ()
    own = _own_scores(found)
    total = {number: score for number, score in own.items() if score > 0}
    for numbers in sessions.values():
        for number, lent in _lent(numbers, own).items():
            total[number] = total.get(number, 0.0) + lent
    newest = max(total, default=1)
    scored = (Ranked(n, score * (1 + RECENCY_WEIGHT * n / newest)) for n, score in total.items())
    return tuple(sorted(scored, key=lambda r: (-r.score, -r.number)))


def _own_scores(found: Sequence[Found]) -> dict[int, float]:
    best_terms = max(f.terms for f in found) or 1.0
    best_dates = max(f.dates for f in found) or 1.0
    return {f.number: f.terms / best_terms + DATE_WEIGHT * f.dates / best_dates for f in found}


def _lent(numbers: Sequence[int], own: Mapping[int, float]) -> dict[int, float]:
    lent: dict[int, float] = {}
    for place, number in enumerate(numbers):
        for distance, weight in NEIGHBOUR_WEIGHTS.items():
            beside = place + distance
            if 0 <= beside < len(numbers) and (score := own.get(numbers[beside], 0.0)):
                lent[number] = lent.get(number, 0.0) + weight * score
    return lent
