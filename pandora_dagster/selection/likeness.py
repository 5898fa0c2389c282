"""How like a question messages are by their vectors, as a signal of the ranking. Knows cosines; knows no model.

A cosine says little by itself: any two texts about daily life are somewhat alike. What counts is how far a message stands out
from the others looked at, in standard deviations. Less like than the mean counts as nothing; nothing else is taken away.
"""

from collections.abc import Mapping, Sequence
from math import sqrt

from pandora_dagster.selection.ranking import WINDOW, Neighbourhood, Signal, MessageUnit

SIMILARITY_WEIGHT = 1.0
"""As much as the words."""
_FULL = 4.0
"""Standard deviations that earn the whole weight."""


def similarity_signal(units: Sequence[MessageUnit], cosines: Mapping[int, float]) -> Signal:
    """A message stands out as far as itself or its window does, whichever is farther; `cosines`: document -> cosine with the
    question, -1 to 1.

    A message without a vector has no such score. No message has one where nothing stands out.
    """
    around = Neighbourhood.of(units)
    own = {doc: cosines[doc] for doc in around.seats if doc in cosines}
    weights = around.windowed(dict.fromkeys(own, 1.0), WINDOW)
    lent = around.windowed(own, WINDOW)
    alone, window = _standing_out(own), _standing_out({doc: lent[doc] / weights[doc] for doc in own})
    farther = {doc: max(alone.get(doc, 0.0), window.get(doc, 0.0)) for doc in own if doc in alone or doc in window}
    return Signal(SIMILARITY_WEIGHT, farther, _FULL)


def _standing_out(values: Mapping[int, float]) -> dict[int, float]:
    """Standard deviations over the mean, those under it left out."""
    if not values:
        return {}
    mean = sum(values.values()) / len(values)
    spread = sqrt(sum((value - mean) ** 2 for value in values.values()) / len(values))
    if spread < 1e-6:
        return {}
    return {doc: (value - mean) / spread for doc, value in values.items() if value > mean}
