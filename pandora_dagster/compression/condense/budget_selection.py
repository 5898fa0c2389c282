"""Which units of a text to keep in a budget: lazy greedy coverage of weighted facts per token.

Knows units, facts as opaque keys, and weights; knows nothing of texts. Deterministic: ties go to the earlier unit.
"""

import heapq
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece that can be kept as a whole. Of a `slot` at most one unit stands; a higher `level` replaces a lower one
    and costs the difference. The first unit of a `group` also pays the group's opening. What a unit `needs` comes with it."""

    text: str
    tokens: int
    facts: Collection[Hashable]
    position: int = 0
    group: Hashable = None
    slot: Hashable = None
    level: int = 0
    bonus: float = 0.0
    factor: float = 1.0
    needs: tuple[int, ...] = ()
    """Indexes of units without which it says something else, or nothing: they are taken with it."""


@dataclass(slots=True)
class Selection:
    """Which of the units stand. `extend` spends tokens; what did not fit is tried again by the next `extend`."""

    units: Sequence[Unit]
    weights: Mapping[Hashable, float]
    openings: Mapping[Hashable, float] = field(default_factory=dict[Hashable, float])
    least: float = 0.0
    """The gain per token at and under which nothing is taken."""
    _worths: list[float] = field(default_factory=list[float])
    """By the number of a fact: numbers are found faster than facts, of which there are many."""
    _covered: bytearray = field(default_factory=bytearray)
    _left: list[Sequence[int]] = field(default_factory=list[Sequence[int]])
    """Of each unit the facts that were not covered when it was last looked at."""
    _open_groups: set[Hashable] = field(default_factory=set[Hashable])
    _standing: dict[Hashable, int] = field(default_factory=dict[Hashable, int])
    _waiting: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])

    def __post_init__(self) -> None:
        numbers: dict[Hashable, int] = {}
        self._left = [[numbers.setdefault(fact, len(numbers)) for fact in unit.facts] for unit in self.units]
        self._worths = [self.weights[fact] for fact in numbers]
        self._covered = bytearray(len(numbers))
        self._waiting = [(-self._gain(index) / (self._cost(unit) or 1.0), index) for index, unit in enumerate(self.units)]

    @property
    def picked(self) -> list[int]:
        """Indexes of the standing units in the order they were picked."""
        return list(self._standing.values())

    def extend(self, budget: float) -> list[int]:
        """Spend up to `budget` more tokens; gives all that stands then."""
        heap, self._waiting = self._waiting, []
        heapq.heapify(heap)
        while heap:
            _, index = heapq.heappop(heap)
            unit = self.units[index]
            cost = self._cost(unit)
            if cost is None or (rate := self._gain(index) / cost) <= self.least:
                continue
            if cost > budget:
                self._waiting.append((-rate, index))
            elif heap and rate < -heap[0][0] - 1e-12:
                heapq.heappush(heap, (-rate, index))
            else:
                budget -= cost
                self._take(index, unit)
        return self.picked

    def _cost(self, unit: Unit) -> float | None:
        """Tokens that `unit` adds with what it needs; None where its slot holds as much already."""
        cost = self._own_cost(unit)
        if cost is None or not unit.needs:
            return cost
        return cost + sum(self._own_cost(other) or 0.0 for _, other in self._needed(unit))

    def _needed(self, unit: Unit) -> list[tuple[int, Unit]]:
        """The units that `unit` needs and that do not stand, with those that they need, in their order."""
        found: dict[int, Unit] = {}
        waiting = list(unit.needs)
        while waiting:
            index = waiting.pop()
            other = self.units[index]
            if index not in found and other is not unit and self._own_cost(other) is not None:
                found[index] = other
                waiting += other.needs
        return sorted(found.items())

    def _own_cost(self, unit: Unit) -> float | None:
        cost = float(unit.tokens)
        if unit.group is not None and unit.group not in self._open_groups:
            cost += self.openings.get(unit.group, 0.0)
        if unit.slot is not None and (current := self._standing.get(unit.slot)) is not None:
            if self.units[current].level >= unit.level:
                return None
            cost -= self.units[current].tokens
        return max(cost, 1.0)

    def _gain(self, index: int) -> float:
        unit = self.units[index]
        gain = self._own_gain(index, ())
        if unit.needs:
            covered = set(self._left[index])
            for needed, _ in self._needed(unit):
                gain += self._own_gain(needed, covered)
                covered.update(self._left[needed])
        return gain

    def _own_gain(self, index: int, brought: Collection[int]) -> float:
        """The worth of a unit beside the facts that stand, and those `brought` by units taken with it."""
        unit, covered, worths = self.units[index], self._covered, self._worths
        left = self._left[index] = [fact for fact in self._left[index] if not covered[fact]]
        new = [fact for fact in left if fact not in brought] if brought else left
        return unit.bonus + unit.factor * sum([worths[fact] for fact in new])

    def _take(self, index: int, unit: Unit) -> None:
        for needed, other in self._needed(unit) if unit.needs else ():
            self._take_one(needed, other)
        self._take_one(index, unit)

    def _take_one(self, index: int, unit: Unit) -> None:
        for fact in self._left[index]:
            self._covered[fact] = 1
        self._open_groups.add(unit.group)
        self._standing[unit.slot if unit.slot is not None else ("unit", index)] = index


# Which stretches of a sequence to keep: contiguous spans of best score within a budget, by dynamic programming. Knows scores and
# costs; knows nothing of texts. Linear in the number of units for a fixed number of bisection steps.

_STEPS = 18


def smoothed(hits: Mapping[int, float], decay: Sequence[float], length: int) -> list[float]:
    """Two-sided exponential smoothing of `hits`; `decay[i]` is what is left from unit i to unit i + 1."""
    values = [0.0] * length
    level = 0.0
    for i in range(length):
        if i:
            level *= decay[i - 1]
        level += hits.get(i, 0.0)
        values[i] = level
    level = 0.0
    for i in range(length - 1, -1, -1):
        if i < length - 1:
            level *= decay[i]
        values[i] += level
        level += hits.get(i, 0.0)
    return values


def best_spans(scores: Sequence[float], costs: Sequence[int], budget: float, start_penalty: float) -> set[int]:
    """Units of the best spans that cost at most `budget`: the price of a token is bisected, gaps are filled by score."""
    most = max(scores, default=0.0)
    level = [s / most for s in scores] if most > 0 else [1.0] * len(scores)
    low, high = 0.0, 1.0
    best: list[int] = []
    spent = 0
    for _ in range(_STEPS):
        price = (low + high) / 2
        chosen = _viterbi([(s - price) * c for s, c in zip(level, costs, strict=True)], start_penalty)
        cost = sum(costs[i] for i in chosen)
        if cost > budget:
            low = price
        else:
            high = price
            if cost > spent:
                best, spent = chosen, cost
    kept = set(best)
    for i in sorted((i for i in range(len(level)) if i not in kept), key=lambda i: -level[i]):
        if spent + costs[i] <= budget:
            kept.add(i)
            spent += costs[i]
    return kept


def _viterbi(gains: Sequence[float], start_penalty: float) -> list[int]:
    """The units inside the spans whose gains sum highest; each span costs `start_penalty`."""
    length = len(gains)
    stays = bytearray(length)
    was_inside = bytearray(length)
    inside, outside = float("-inf"), 0.0
    for i, gain in enumerate(gains):
        was_inside[i] = inside > outside
        longer, begun = inside + gain, outside - start_penalty + gain
        outside = max(outside, inside)
        stays[i] = longer >= begun
        inside = max(longer, begun)
    state = inside > outside
    chosen: list[int] = []
    for i in range(length - 1, -1, -1):
        if state:
            chosen.append(i)
            state = bool(stays[i])
        else:
            state = bool(was_inside[i])
    return chosen
