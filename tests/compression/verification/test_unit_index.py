"""What the index of a text says about the places of its units."""

import pytest

from pandora_dagster.compression.verification.unit_index import UnitIndex


@pytest.mark.parametrize(
    ("text", "after_gaps"),
    [
        ("It rains.\n\nBuses wait.\n\n[3 left out]: Trams stop.\nBoats go home.", ["Buses wait.", "Trams stop."]),
        ("It rains.\n\nBuses wait.\n\nTrams stop.\nBoats go home.", []),
    ],
)
def test_an_empty_line_is_a_gap_only_in_a_text_with_marks(text: str, after_gaps: list[str]) -> None:
    """In other texts it only divides paragraphs."""
    index = UnitIndex(text, "en")
    assert [u.text for u in index.units if index.follows_gap(u.order)] == after_gaps
