"""Budgeted coverage: the order in which units are kept, the one with most new weight per token next.

In: units with their terms, costs in tokens and salience. Each step takes the unit with the highest gain: the weights of its terms that are
new, times its salience, over the tokens of the unit and of what it needs and does not have yet. With a query the relevance of the unit
takes the place of its weights. Out: tuples of unit numbers in the order of the choice, each a unit with what it needs.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pandora_dagster.compression.selection.term_weights import Term
from pandora_dagster.documents.units.unit import Unit, UnitKind

_REPEATED_SHARE = 0.6
"""What a term still counts in the next unit that says it."""
_MAX_MENTIONS = 3
"""Kept units with a term from which it counts nothing."""
_COST_OFFSET_TOKENS = 2.0
"""Tokens added to every cost, against very short units."""
_NOVELTY_SHARE = 0.02
"""What new terms, weighted by salience, count beside the relevance to a query: they decide between equals."""
_UNCHANGED_SHARE = 0.999
"""Share of its gain in the heap from which a unit's gain counts as unchanged."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Units to choose from, with what the choice depends on, each by the number of the unit."""

    units: Sequence[Unit]
    terms: Sequence[Mapping[Term, float]]
    costs: Sequence[int]
    """Tokens."""
    salience: Sequence[float]
    relevance: Sequence[float] | None = None
    """To a query; None without one."""
    always: frozenset[int] = frozenset()
    """Units that are kept before any other."""
    last: frozenset[int] = frozenset()
    """Units that get only the tokens that no other unit takes."""


class CoverageChoice:
    """One choice of units by lazy greedy: a gain in the heap is an upper bound, counted again when it comes to the top."""

    def __init__(self, candidates: Candidates, *, mandatory: Mapping[Term, float] | None = None) -> None:
        """`mandatory`: weights of terms that come first, up to a share of the target."""
        self._candidates = candidates
        self._needs = [closure(candidates.units, i) for i in range(len(candidates.units))]
        labels = introductions(candidates.units)
        self._eligible = [i for i, u in enumerate(candidates.units) if not u.is_context and i not in labels | candidates.last]
        self._dependents: defaultdict[int, list[int]] = defaultdict(list)
        for i in self._eligible:
            for n in self._needs[i]:
                self._dependents[n].append(i)
        self._mandatory = mandatory or {}
        self._covered: Counter[Term] = Counter()
        self._kept: set[int] = set()
        self._used_tokens = 0
        self._order: list[tuple[int, ...]] = []

    def fill(self, target: int, *, mandatory_share: float = 0.0) -> list[tuple[int, ...]]:
        """Choose until `target` tokens are reached; the mandatory terms have `mandatory_share` of them at most."""
        if always := self._candidates.always:
            self._used_tokens += sum(self._candidates.costs[i] for i in always)
            self._kept |= always
            self._cover(always)
            self._order.append(tuple(sorted(always)))
        if self._mandatory:
            self._take_best(self._mandatory_gain, mandatory_share * target)
        self._take_best(self._gain, float(target))
        return self._order

    def _take_best(self, gain: Callable[[int], float], max_tokens: float) -> None:
        heap = [(-value, i) for i in self._eligible if i not in self._kept and (value := gain(i)) > 0]
        heapq.heapify(heap)
        while heap:
            bound, i = heapq.heappop(heap)
            if i in self._kept:
                continue
            if (value := gain(i)) < -bound * _UNCHANGED_SHARE:
                if value > 0:
                    heapq.heappush(heap, (-value, i))
                continue
            if self._used_tokens + self._cost(i) <= max_tokens:
                for dependent in self._take(i):
                    if dependent not in self._kept and (value := gain(dependent)) > 0:
                        heapq.heappush(heap, (-value, dependent))  # it became cheaper

    def _take(self, i: int) -> set[int]:
        """Keep a unit with what it needs; the units that need some of that too are returned."""
        added = [n for n in self._needs[i] if n not in self._kept]
        self._used_tokens += self._cost(i)
        self._cover(added)
        self._kept.update(added)
        self._order.append(self._needs[i])
        return {dependent for n in added for dependent in self._dependents[n]}

    def _cover(self, added: Iterable[int]) -> None:
        for n in added:
            self._covered.update(self._candidates.terms[n].keys())

    def _cost(self, i: int) -> int:
        """Tokens of the unit and of what it needs and does not have yet."""
        return max(1, sum(self._candidates.costs[n] for n in self._needs[i] if n not in self._kept))

    def _gain(self, i: int) -> float:
        candidates, covered = self._candidates, self._covered
        weights = candidates.terms[i].items()
        new_weight = sum(weight * _REPEATED_SHARE ** covered[t] for t, weight in weights if covered[t] < _MAX_MENTIONS)
        value = new_weight * candidates.salience[i]
        if candidates.relevance is not None:
            own_tokens = max(1, candidates.costs[i])
            return (candidates.relevance[i] + _NOVELTY_SHARE * value / own_tokens) * own_tokens / self._cost(i)
        return value / (self._cost(i) + _COST_OFFSET_TOKENS)

    def _mandatory_gain(self, i: int) -> float:
        new_weight = sum(self._mandatory.get(t, 0.0) for t in self._candidates.terms[i] if not self._covered[t])
        return new_weight / (self._cost(i) + _COST_OFFSET_TOKENS)


def introductions(units: Sequence[Unit]) -> frozenset[int]:
    """Units that only lead to others (`Our standards prohibit:`): they are kept with one of those, never alone."""
    needed = {n for u in units for n in u.needs}
    return frozenset(n for n in needed if units[n].text.rstrip("*_ ").endswith((":", "\uff1a")))


def closure(units: Sequence[Unit], index: int) -> tuple[int, ...]:
    """A unit with all that it needs, and what those need. Of its headings that is the nearest one, and those above with a number: a
    version, a date, a paragraph."""
    closed: dict[int, None] = {}
    pending = [index]
    while pending:
        order = pending.pop()
        if order not in closed:
            closed[order] = None
            nearest = max((n for n in units[order].needs if units[n].kind is UnitKind.HEADING), default=-1)
            is_heading = units[order].kind is UnitKind.HEADING
            pending += [n for n in units[order].needs if (n == nearest and not is_heading) or _is_always_needed(units[n])]
    return tuple(closed)


def _is_always_needed(unit: Unit) -> bool:
    return unit.kind is not UnitKind.HEADING or any(map(str.isdigit, unit.text))
