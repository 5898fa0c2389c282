"""Budgeted coverage: the next unit is the one with most new weight per token, counting what it needs and does not have yet."""

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pandora_dagster.compression.selection.term_weights import Term
from pandora_dagster.documents.units.unit import Unit, UnitKind

_REPEATED_SHARE = 0.6
"""What a term still counts in the next unit that says it."""
_MAX_MENTIONS = 3
"""Kept units with a term from which it counts nothing."""
_TIE = 0.02
"""What new terms, weighted by salience, count beside the relevance to a query."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Units to choose from, with their terms, costs and factors."""

    units: Sequence[Unit]
    terms: Sequence[dict[Term, float]]
    costs: Sequence[int]
    """Tokens of each unit."""
    factors: Sequence[float]
    """Salience of each unit."""
    relevance: Sequence[float] | None = None
    """To a query: decides then, and what is new only between equals."""
    always: frozenset[int] = frozenset()
    """Units that are kept before any other."""
    offset: float = 2.0
    """Tokens added to every cost, against very short units."""


class CoverageChoice:
    """Lazy greedy over the gain per token. Linear in units but for the heap."""

    def __init__(self, candidates: Candidates, *, forced: dict[Term, float] | None = None) -> None:
        self._given = candidates
        self._needs = [closure(candidates.units, i) for i in range(len(candidates.units))]
        labels = introductions(candidates.units)
        self._own = [i for i, u in enumerate(candidates.units) if not u.is_context and i not in labels]
        self._place = {unit: n for n, unit in enumerate(self._own)}
        self._forced = forced or {}
        self._covered: Counter[Term] = Counter()
        self._kept: set[int] = set()
        self.used = 0
        self.order: list[tuple[int, ...]] = []
        """What was chosen, best first: each unit with what it needs."""

    def fill(self, target: int, *, forced_share: float = 0.0) -> list[tuple[int, ...]]:
        """Chooses until the target is reached; terms that are forced come first, up to a share of the target."""
        if always := self._given.always:
            self.used += sum(self._given.costs[k] for k in always)
            self._kept |= always
            self.order.append(tuple(sorted(always)))
        if forced_share and self._forced:
            self._run(self._forced_gain, forced_share * target)
        self._run(self._gain, float(target))
        return self.order

    def _run(self, score: Callable[[int], float], limit: float) -> None:
        heap = [(-s, i) for i in self._own if i not in self._kept and (s := score(i)) > 0]
        heapq.heapify(heap)
        while heap:
            value, i = heapq.heappop(heap)
            if i in self._kept:
                continue
            if (now := score(i)) < -value * 0.999:
                if now > 0:
                    heapq.heappush(heap, (-now, i))
                continue
            cost = self._cost(i)
            if self.used + cost > limit:
                continue
            self._take(i, cost)
            for near in self._neighbours(i):
                if near not in self._kept and (s := score(near)) > 0:
                    heapq.heappush(heap, (-s, near))

    def _take(self, i: int, cost: int) -> None:
        self.used += cost
        for k in self._needs[i]:
            if k not in self._kept:
                self._covered.update(self._given.terms[k].keys())
        self._kept.update(self._needs[i])
        self.order.append(self._needs[i])

    def _neighbours(self, i: int) -> list[int]:
        at = self._place[i]
        return [self._own[k] for k in (at - 1, at + 1) if 0 <= k < len(self._own)]

    def _cost(self, i: int) -> int:
        """Tokens of the unit and of what it needs."""
        return max(1, sum(self._given.costs[k] for k in self._needs[i] if k not in self._kept))

    def _gain(self, i: int) -> float:
        given, covered = self._given, self._covered
        new = sum(weight * _REPEATED_SHARE ** covered[t] for t, weight in given.terms[i].items() if covered[t] < _MAX_MENTIONS)
        cost = self._cost(i)
        if given.relevance is not None:
            own = max(1, given.costs[i])
            return (given.relevance[i] + _TIE * new * given.factors[i] / own) * own / cost
        return new * given.factors[i] / (cost + given.offset)

    def _forced_gain(self, i: int) -> float:
        new = sum(self._forced[t] for t in self._given.terms[i] if t in self._forced and not self._covered[t])
        return new / (self._cost(i) + self._given.offset)


def introductions(units: Sequence[Unit]) -> frozenset[int]:
    """Units that only lead to others (`Our standards prohibit:`): they are kept with one of those, never alone."""
    needed = {k for u in units for k in u.needs}
    return frozenset(k for k in needed if units[k].text.rstrip("*_ ").endswith((":", "\uff1a")))


def closure(units: Sequence[Unit], index: int) -> tuple[int, ...]:
    """A unit with all that it needs, and what those need. Of its headings that is the nearest one, and those above with a number: a
    version, a date, a paragraph."""
    found: dict[int, None] = {}
    stack = [index]
    while stack:
        at = stack.pop()
        if at not in found:
            found[at] = None
            nearest = max((n for n in units[at].needs if units[n].kind is UnitKind.HEADING), default=-1)
            is_heading = units[at].kind is UnitKind.HEADING
            stack += [n for n in units[at].needs if (n == nearest and not is_heading) or _travels(units[n])]
    return tuple(found)


def _travels(unit: Unit) -> bool:
    return unit.kind is not UnitKind.HEADING or any(map(str.isdigit, unit.text))
