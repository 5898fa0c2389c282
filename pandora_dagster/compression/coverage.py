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
