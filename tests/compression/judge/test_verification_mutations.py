"""Whatever lie is told about a value, a force or a denial, it is found out; other spellings of the truth are not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.compression import Ledger, Outcome, build_ledger, verify
from pandora_dagster.compression.judge.grounding import SourceIndex

TEXT = (
    "user: You must pay the deposit of $1,299 by 5 May 2026.\n"
    "assistant: The rate of the loan is 4.5 % and the fee fell by 2 percentage points.\n"
    "assistant: Delivery takes 3 to 5 weeks and the parcel weighs 12 kg.\n"
    "assistant: The shop does not ship to Malta. The town has 1.5 million people.\n"
    "user: At least 40 people will come at 14:30 to the hall.\n"
    "assistant: The pool is 25 m long and was filled for 310 EUR per month.\n"
)
LIES = {
    "$1,299": ("about $1,300", "$1,399", "€1,299", "1,299 EUR", "$1,299 million", "-$1,299", "$1,299 per month", "more than $1,299"),
    "5 May 2026": ("6 May 2026", "May 6, 2026", "5 June 2026", "5 May 2027", "2026-05-06"),
    "by 5 May": ("after 5 May",),
    "4.5 %": ("4.5 percentage points", "45 %", "-4.5 %", "about 5 %", "4.5 basis points"),
    "2 percentage points": ("2 %", "3 percentage points"),
    "fell": ("rose",),
    "3 to 5 weeks": ("3 to 6 weeks", "3 to 5 days"),
    "12 kg": ("12 g", "12 lbs", "21 kg"),
    "does not ship": ("does ship", "ships"),
    "1.5 million": ("1.5 billion", "15 million", "1.5"),
    "must pay": ("may pay", "should pay", "must not pay", "might pay"),
    "At least 40": ("At most 40", "About 40", "40"),
    "will come": ("will not come",),
    "14:30": ("14:40", "2:30 am"),
    "25 m": ("25 km", "25 cm"),
    "310 EUR per month": ("310 EUR per year", "310 USD per month"),
}
_LEDGER, _SOURCE = build_ledger(TEXT), SourceIndex(TEXT)
_PAIRS = [(true, lie) for true, lies in LIES.items() for lie in lies]
_LINES = TEXT.splitlines(keepends=True)


@pytest.mark.parametrize(("true", "lie"), _PAIRS)
def test_each_lie_alone_is_found_out(true: str, lie: str) -> None:
    """In a text that says all else as it was."""
    assert not verify(_LEDGER, _SOURCE, TEXT.replace(true, lie)).facts_preserved


@given(st.lists(st.sampled_from(_PAIRS), min_size=1, max_size=4), st.permutations(_LINES), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_lies_in_a_summary_are_found_out(pairs: list[tuple[str, str]], lines: list[str], left_out: int) -> None:
    """Lines in any order, some left out, several lies: what is told of a lie's line is never all preserved."""
    summary = told = "".join(lines[left_out:])
    for true, lie in pairs:
        told = told.replace(true, lie)
    known = Ledger(tuple(f for f in _LEDGER.facts if f.text in summary))
    assert verify(known, _SOURCE, summary + " ").facts_preserved
    if told != summary:
        assert not verify(known, _SOURCE, told).facts_preserved


@pytest.mark.parametrize(
    ("true", "same"),
    [
        ("$1,299", "1299 USD"),
        ("4.5 %", "4.5 percent"),
        ("1.5 million", "1,500,000"),
        ("3 to 5 weeks", "3 weeks to 5 weeks"),
        ("3 to 5 weeks", "3-5 weeks"),
        ("2 percentage points", "2 percent points"),
        ("does not ship", "doesn't ship"),
        ("fell by", "decreased by"),
    ],
)
def test_another_spelling_is_no_lie(true: str, same: str) -> None:
    """Equal values and the same denial in other words."""
    assert not verify(_LEDGER, _SOURCE, TEXT.replace(true, same)).of(Outcome.MUTATED, Outcome.INVENTED)
