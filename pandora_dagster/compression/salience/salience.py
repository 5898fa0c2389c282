"""How much a reader needs each unit: a linear model over general features, fitted by `benchmarks/fit_salience.py`."""

import math
from functools import cache
from importlib.resources import files

from pydantic import BaseModel

from pandora_dagster.compression.salience.text_reading import TextReading
from pandora_dagster.compression.salience.unit_features import unit_features

_MIN_SCORE = 0.02


class LinearModel(BaseModel, frozen=True):
    """The logit of a probability: a bias, and a weight for each feature."""

    bias: float
    weights: dict[str, float]

    def probability(self, features: dict[str, float]) -> float:
        logit = self.bias + sum(weight * features[name] for name, weight in self.weights.items())
        return 1 / (1 + math.exp(-max(-50.0, min(50.0, logit))))


class SalienceTable(BaseModel, frozen=True):
    """Two models: a unit is needed in a text shortened to one third; a unit is also needed in one shortened to one sixth."""

    needed: LinearModel
    needed_most: LinearModel
    power: float
    """A score is raised to this power; over 1, it contrasts needed units with others."""


@cache
def shipped_table() -> SalienceTable:
    """The table that comes with the package; its provenance is in the file."""
    return SalienceTable.model_validate_json(files("pandora_dagster.compression.salience").joinpath("salience_table.json").read_bytes())


def reading_salience(reading: TextReading, table: SalienceTable | None = None) -> list[float]:
    """A score for each unit, 1 on average over the units that are no context; `table` is the shipped one where none is given."""
    table = table or shipped_table()
    scores: list[float] = []
    for features in unit_features(reading):
        score = table.needed.probability(features) + table.needed_most.probability(features) if features else 0.0
        scores.append(max(score, _MIN_SCORE))
    return _over_mean([s**table.power for s in _over_mean(scores, reading)], reading)


def _over_mean(scores: list[float], reading: TextReading) -> list[float]:
    """The scores divided by their mean over the units that are no context."""
    content_scores = [s for s, u in zip(scores, reading.units, strict=True) if not u.is_context] or scores
    mean = sum(content_scores) / max(1, len(content_scores)) or 1.0
    return [s / mean for s in scores]
