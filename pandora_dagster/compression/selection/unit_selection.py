"""A text of units that somebody chose, in at most a number of tokens; what the choice leaves free is filled by coverage."""

from collections.abc import Mapping, Sequence

from pandora_dagster.compression.salience.salience import reading_salience
from pandora_dagster.compression.salience.text_reading import TextReading
from pandora_dagster.compression.selection.budget_selection import BudgetSelector, longest_prefix
from pandora_dagster.compression.selection.coverage import Candidates, closure
from pandora_dagster.compression.selection.omission_marks import Omission
from pandora_dagster.compression.selection.rendering import render
from pandora_dagster.compression.selection.term_weights import weighted_terms
from pandora_dagster.contracts.ports.measurement import TokenMeasure


def select_units(
    reading: TextReading,
    order: Sequence[int],
    target: int,
    counter: TokenMeasure,
    *,
    salience: Sequence[float] | None = None,
    earlier: Mapping[int, Sequence[Omission]] | None = None,
) -> str:
    """The units of `order`, each with what it needs, then those that cover most, as whole units with counted marks; "" where none fits.

    Where their text is over `target`, the last ones of `order` are left out. `earlier`: what earlier compressions left out before
    each unit.
    """
    units, omissions = reading.units, earlier or {}
    closures = [closure(units, unit) for unit in order]
    chosen = longest_prefix(closures, target, lambda kept: counter.count(render(units, kept, omissions)))
    costs = [counter.count(unit.text) + 1 for unit in units]
    scores = salience if salience is not None else reading_salience(reading)
    candidates = Candidates(units, weighted_terms(reading), costs, scores, always=chosen)
    return BudgetSelector(candidates, counter, omissions).select(target).text
