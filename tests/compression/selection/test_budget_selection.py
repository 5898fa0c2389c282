"""A selection is within its budget, holds what its units need, and does not depend on chance."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.compression.salience.salience import reading_salience
from pandora_dagster.compression.salience.text_reading import TextReading, read_text
from pandora_dagster.compression.selection.budget_selection import BudgetSelector, Selection
from pandora_dagster.compression.selection.coverage import Candidates, closure
from pandora_dagster.compression.selection.term_weights import weighted_terms
from pandora_dagster.runtime.token_counter import TokenCounter

from ..conftest import VOCABULARY

COUNTER = TokenCounter(VOCABULARY)
_LINES = (
    "# Rules",
    "## Fees",
    "A berth costs 32 € a night.",
    "You must not swim here.",
    "- bring a lamp",
    "- bring two ropes",
    "Ann: yes, at 7",
    "",
)
texts = st.lists(st.sampled_from(_LINES), min_size=3, max_size=40).map("\n".join)


def candidates(reading: TextReading) -> Candidates:
    costs = [COUNTER.count(u.text) + 1 for u in reading.units]
    return Candidates(reading.units, weighted_terms(reading), costs, reading_salience(reading))


def select(candidates: Candidates, target: int) -> Selection:
    return BudgetSelector(candidates, COUNTER, {}).select(target)


@given(texts, st.integers(5, 120))
@settings(max_examples=40, deadline=None)
def test_within_the_budget_with_all_that_is_needed_and_the_same_again(text: str, target: int) -> None:
    """For any text and target."""
    given_ = candidates(read_text(text))
    made = select(given_, target)
    assert COUNTER.count(made.text) <= target
    assert all(set(closure(given_.units, i)) <= made.kept for i in made.kept)
    assert select(candidates(read_text(text)), target) == made


def test_a_rule_comes_before_a_remark() -> None:
    """What a reader needs first, where only one of two sentences of the same length fits."""
    remark = "We sat near the wall and looked at the sea."
    text = f"{remark}\n\nYou must never leave the gate open at night.\n\nSome people like it there very much."
    assert "must never" in select(candidates(read_text(text)), 16).text


def test_the_newer_of_two_values_of_one_thing_stays() -> None:
    """The older one counts little once a later message gives another."""
    text = "Ann: The budget is 400 €.\nBob: Fine with me then.\nAnn: Sorry, the budget is 650 €.\nBob: Good, thanks."
    shown = select(candidates(read_text(text)), 24).text
    assert "650 €" in shown and "400 €" not in shown
