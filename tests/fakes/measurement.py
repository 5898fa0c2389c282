"""Figures and ratios in memory."""

from collections import defaultdict
from dataclasses import dataclass, field

from pandora_dagster.contracts.enums import ModelLayer

Series = tuple[str, tuple[tuple[str, str], ...]]
"""The name of a series and its labels, sorted by name."""


@dataclass
class MemoryMetrics:
    """`Metrics` over a dictionary."""

    values: defaultdict[Series, float] = field(default_factory=lambda: defaultdict(float))

    def count(self, name: str, amount: float = 1.0, **labels: str) -> None:
        if amount:
            self.values[name, tuple(sorted(labels.items()))] += amount

    def gauge(self, name: str, value: float, **labels: str) -> None:
        self.values[name, tuple(sorted(labels.items()))] = value


@dataclass
class MemoryTokenRatios:
    """`TokenRatios` over a dictionary: one model of each layer, the last one that answered there."""

    stored: dict[ModelLayer, tuple[str, float]] = field(default_factory=dict[ModelLayer, tuple[str, float]])

    def find(self, layer: ModelLayer, model: str) -> float | None:
        known, ratio = self.stored.get(layer, ("", 0.0))
        return ratio if known == model else None

    def keep(self, layer: ModelLayer, model: str, ratio: float) -> None:
        self.stored[layer] = (model, ratio)
