"""A text of units that somebody chose, in at most a number of tokens; what the choice leaves free is filled by coverage."""

from collections.abc import Sequence
from dataclasses import replace

from pandora_dagster.compression.salience.salience import reading_salience
from pandora_dagster.compression.salience.text_reading import TextReading
from pandora_dagster.compression.selection.budget_selection import longest_prefix, select
from pandora_dagster.compression.selection.coverage import Candidates, closure
from pandora_dagster.compression.selection.omission_marks import Omission
from pandora_dagster.compression.selection.rendering import render
from pandora_dagster.compression.selection.term_weights import TermWeights, weighted_terms
from pandora_dagster.contracts.ports.measurement import TokenMeasure


def select_units(
    reading: TextReading,
    order: Sequence[int],
    target: int,
    counter: TokenMeasure,
    *,
    salience: Sequence[float] | None = None,
    earlier: dict[int, list[Omission]] | None = None,
) -> str:
    """The units of `order`, each with what it needs, then those that cover most, as whole units with counted marks; "" where none fits.

    What is over `target` goes from the end of the order. `earlier`: what earlier compressions left out before each unit.
    """
    units, marks = reading.units, earlier or {}
    needs = [closure(units, place) for place in order]
    chosen = longest_prefix(needs, target, lambda kept: counter.count(render(units, kept, marks)))
    costs = [counter.count(unit.text) + 1 for unit in units]
    scores = salience if salience is not None else reading_salience(reading)
    candidates = Candidates(units, weighted_terms(reading, TermWeights()), costs, scores)
    return select(replace(candidates, always=chosen), target, counter, earlier=marks).text
