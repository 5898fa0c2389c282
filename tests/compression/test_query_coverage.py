"""Which parts of a query a text has."""

import pytest

from pandora_dagster.compression.query_coverage import query_coverage

DESK = "Ordered: the desk Lofta 140, order ORD-77120, 429.00 euros, delivery on 10 September 2026."


@pytest.mark.parametrize(
    ("query", "missing"),
    [
        ("Which desk did we order, and what did it cost?", ()),
        ("When is the warranty of the desk over?", ("warranty",)),
        ("Is it the desk of 10 September 2026 or of 12 October 2027?", ("12 October 2027",)),
        ("What did ORD-77121 cost?", ("ORD-77121",)),
        ("What did we say last week about the desk?", ()),
        ("Wie teuer war der Schreibtisch Lofta 140, den wir bestellt haben?", ()),
        ("Wie teuer war der Schreibtisch Ekvik 200, den wir bestellt haben?", ("200",)),
    ],
)
def test_what_the_text_does_not_have_is_named(query: str, missing: tuple[str, ...]) -> None:
    """Words in one language; values, names and codes in any; a price covers the word that asks for it."""
    assert query_coverage(query, DESK).missing == missing


def test_a_long_list_of_gaps_is_short() -> None:
    """Eight parts are named, the others counted; a long word is shortened."""
    codes = ", ".join(f"CODE-{n}X" for n in range(12))
    gap = query_coverage(f"What did we say about the {'x' * 90} and about {codes}?", DESK).gaps[0]
    assert "and 5 more" in gap and len(gap) < 200
