"""Which wordings of a fact say the same, and what the ledger makes of those that do not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandora_dagster.language.terms import TermReader
from pandora_dagster.retrieval.known_facts import apply_diff, changes_value
from tests.retrieval.test_known_facts import EMPTY, at, says

READER = TermReader()
CHANGED = [
    ("My budget is $900.", "My budget is $700 now."),
    ("My flight leaves on 2026-05-04.", "My flight leaves on 2026-05-14."),
    ("The meeting is on Monday.", "The meeting is on tuesday."),
    ("My sister is called Anna.", "My sister is called Maria."),
    ("Anna is my sister.", "Maria is my sister."),
    ("I eat meat.", "I don't eat meat."),
    ("I have two dogs.", "I have three dogs."),
    ("My favourite colour is blue.", "My favourite colour is green."),
    ("I live in berlin.", "I live in new york."),
    ("My jacket is red.", "My jacket is dark blue."),
    ("I work as a nurse.", "I work as a school teacher."),
    ("I eat meat.", "I hardly eat meat."),
    ("My limit is 900 euros.", "My limit is 1100 euros instead of 900."),
]
SAME = [
    ("Budget 900.", "Budget 900 dollars."),
    ("My budget is $900.", "The budget is $900.00."),
    ("Budget 1,900.", "My budget is 1900."),
    ("I never eat meat.", "I do not eat meat."),
    ("Anna is my sister.", "My sister is Anna."),
    ("Likes green tea.", "I like green tea."),
]


@pytest.mark.parametrize(("old", "new"), CHANGED)
def test_another_value_is_found_in_either_direction(old, new):
    """Figures, dates, days, names, denials, and one telling word in the place of another."""
    assert changes_value(old, new, READER) and changes_value(new, old, READER)


@pytest.mark.parametrize(("old", "new"), SAME)
def test_better_words_change_nothing(old, new):
    """The same values in another form or order."""
    assert not changes_value(old, new, READER) and not changes_value(new, old, READER)


@pytest.mark.parametrize(("old", "new"), CHANGED)
def test_another_value_under_a_known_id_keeps_both(old, new):
    """The older keeps words and date and is no longer current; the same diff again changes nothing."""
    ledger, _ = apply_diff(EMPTY, says(old), at(3), max_facts=20)
    ledger, audit = apply_diff(ledger, says(new, id="f1"), at(5), max_facts=20)
    assert [(f.fact, f.is_current, f.stated_at[:10], f.superseded_by) for f in ledger.facts] == [
        (old, False, "2026-01-04", "f2"),
        (new, True, "2026-01-06", None),
    ]
    assert [c.kind for c in audit] == ["add", "supersede"]
    assert apply_diff(ledger, says(new, id="f1"), at(5), max_facts=20) == (ledger, ())


@given(st.lists(st.tuples(st.integers(1, 9), st.sampled_from(["f1", "f2", "f3", None]), st.booleans()), min_size=1, max_size=12))
def test_no_value_is_ever_lost_and_one_is_current(steps):
    """Whatever ids a model gives: every amount that was said stays in the ledger with the turn that said it, and what was said last of
    a chain is its one current fact."""
    ledger, _ = apply_diff(EMPTY, says("My budget is $1000."), at(1), max_facts=20)
    for turn, (amount, id, by_id) in enumerate(steps, 2):
        known = id if id in {f.id for f in ledger.facts} else "f1"
        diff = says(f"My budget is ${amount}00.", id=known) if by_id else says(f"My budget is ${amount}00.", replaces=known)
        before = {f.fact for f in ledger.facts}
        ledger, _ = apply_diff(ledger, diff, at(turn), max_facts=50)
        assert before <= {f.fact for f in ledger.facts}
    assert {f"My budget is ${a}00." for a, _, _ in steps} <= {f.fact for f in ledger.facts}
    assert sum(f.is_current for f in ledger.facts) == 1
