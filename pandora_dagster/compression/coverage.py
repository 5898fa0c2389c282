"""Which units of a text to keep in a budget: lazy greedy coverage of weighted facts per token.

Knows units, facts as opaque keys, and weights; knows nothing of texts. Deterministic: ties go to the earlier unit.
"""

import heapq
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece that can be kept as a whole. Of a `slot` at most one unit stands; a higher `level` replaces a lower one
    and costs the difference. The first unit of a `group` also pays the group's opening."""

    text: str
    tokens: int
    facts: Collection[Hashable]
    position: int = 0
    group: Hashable = None
    slot: Hashable = None
    level: int = 0
    bonus: float = 0.0
    factor: float = 1.0


@dataclass(slots=True)
class _State:
    weights: Mapping[Hashable, float]
    openings: Mapping[Hashable, float]
    used: float = 0.0
    covered: set[Hashable] = field(default_factory=set[Hashable])
    open_groups: set[Hashable] = field(default_factory=set[Hashable])
    standing: dict[Hashable, int] = field(default_factory=dict[Hashable, int])

    def cost(self, unit: Unit, units: Sequence[Unit]) -> float | None:
        """Tokens that `unit` adds; None where its slot holds as much already."""
        cost = float(unit.tokens)
        if unit.group is not None and unit.group not in self.open_groups:
            cost += self.openings.get(unit.group, 0.0)
        if unit.slot is not None and (current := self.standing.get(unit.slot)) is not None:
            if units[current].level >= unit.level:
                return None
            cost -= units[current].tokens
        return max(cost, 1.0)

    def gain(self, unit: Unit) -> float:
        weights, covered = self.weights, self.covered
        return unit.bonus + unit.factor * sum(weights[f] for f in unit.facts if f not in covered)

    def take(self, index: int, unit: Unit, cost: float) -> None:
        self.used += cost
        self.covered.update(unit.facts)
        self.open_groups.add(unit.group)
        self.standing[unit.slot if unit.slot is not None else ("unit", index)] = index


def choose(
    units: Sequence[Unit], weights: Mapping[Hashable, float], openings: Mapping[Hashable, float], budget: float, *, least: float = 0.0
) -> list[int]:
    """Indexes of the kept units in the order they were picked. `least` is the gain per token under which nothing is taken."""
    state = _State(weights, openings)
    heap = [(-state.gain(unit) / (state.cost(unit, units) or 1.0), index) for index, unit in enumerate(units)]
    heapq.heapify(heap)
    while heap:
        _, index = heapq.heappop(heap)
        unit = units[index]
        cost = state.cost(unit, units)
        if cost is None or state.used + cost > budget:
            continue
        rate = state.gain(unit) / cost
        if rate <= least:
            continue
        if heap and rate < -heap[0][0] - 1e-12:
            heapq.heappush(heap, (-rate, index))
            continue
        state.take(index, unit, cost)
    return list(state.standing.values())
