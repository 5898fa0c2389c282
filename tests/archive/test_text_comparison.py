"""Rows of two texts: each unit beside what was made from it, each character once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandora_dagster.archive.text_comparison import ComparedRow, Mark, RowState, TextComparison, compare
from pandora_dagster.compression.verification.text_facts import find_facts

ORIGINAL = """## Desk

The desk costs 429 euros. It weighs 31 kg. Delivery takes 9 days.

## Chair

Never sit on the chair before 2026-03-01. The chair is blue.
"""


def compared(original: str, shortened: str) -> TextComparison:
    return compare(find_facts(original), shortened)


def sides(comparison: TextComparison) -> list[tuple[str, str, str]]:
    """State and both texts of each row."""
    return [(r.state.value, r.original.text if r.original else "", r.shortened.text if r.shortened else "") for r in comparison.rows]


def characters(rows: tuple[ComparedRow, ...], side: str) -> str:
    return "".join("".join(excerpt.text.split()) for row in rows if (excerpt := getattr(row, side)))


def test_units_are_beside_their_originals() -> None:
    """What both texts have is one row; what only the original has is marked as left out."""
    shortened = "## Desk\n\nThe desk costs 429 euros. Delivery takes 9 days.\n\n## Chair\n\n[2 left out]: The chair is blue.\n"
    comparison = compared(ORIGINAL, shortened)
    assert sides(comparison) == [
        ("same", "## Desk", "## Desk"),
        ("same", "The desk costs 429 euros.", "The desk costs 429 euros."),
        ("left_out", "It weighs 31 kg.", ""),
        ("same", "Delivery takes 9 days.", "Delivery takes 9 days."),
        ("same", "## Chair", "## Chair"),
        ("left_out", "Never sit on the chair before 2026-03-01.", ""),
        ("same", "The chair is blue.", "[2 left out]: The chair is blue."),
    ]
    assert comparison.counts["left_out"] == 2 and comparison.counts["missing"] == len(comparison.facts) > 0
    assert comparison.rows[2].verdicts >= {"left_out", "missing"} and comparison.rows[1].verdicts == {"kept"}
    assert [row.original.line for row in comparison.rows if row.original] == [1, 3, 3, 3, 5, 7, 7]


def test_a_changed_unit_is_beside_its_original() -> None:
    """Another value is one row with the difference, and a fact with what is there instead."""
    comparison = compared(ORIGINAL, ORIGINAL.replace("429", "492"))
    (changed,) = [row for row in comparison.rows if row.state is RowState.REWORDED]
    assert changed.original is not None and "429" in changed.original.text
    assert changed.shortened is not None and "492" in changed.shortened.text and changed.differences
    assert "mutated" in changed.verdicts and any(v.evidence == "492 euros" for v in comparison.facts)


def test_a_moved_unit_is_beside_its_original() -> None:
    """In the order of the shortened text, and nowhere else; a change in it is named."""
    original = "".join(f"The {name} costs {n} euros.\n\n" for n, name in enumerate(("desk", "chair", "lamp", "shelf"), 20))
    first, *others = original.strip().split("\n\n")
    rows = compared(original, "\n\n".join([*others, first.replace("20", "21")])).rows
    assert [row.state for row in rows] == [RowState.SAME] * 3 + [RowState.MOVED]
    assert rows[-1].original and rows[-1].original.text == first and rows[-1].original.line == 1 and rows[-1].differences


def test_an_addition_has_one_side() -> None:
    """It is no unit of the original."""
    added = compared("The desk costs 429 euros.\n", "The desk costs 429 euros.\n\nZebras graze quietly under 77 baobabs.\n").rows[-1]
    assert (added.state, added.original) == (RowState.ADDED, None)


LINES = st.lists(
    st.sampled_from(["The desk costs 9 euros.", "## A", "- item 4", "- item 5", "x", "", "```", "| a | b |", "[3 left out]: y", "No."]),
    max_size=9,
)


@given(LINES, LINES)
def test_each_character_is_in_one_row(original: list[str], shortened: list[str]) -> None:
    """Whatever is repeated, moved or no unit at all."""
    texts = "\n".join(original), "\n".join(shortened)
    rows = compared(*texts).rows
    assert characters(rows, "shortened") in ("".join(texts[1].split()), "")
    assert sorted(characters(rows, "original")) in (sorted("".join(texts[0].split())), [])


@pytest.mark.parametrize("place", [(0, 8), (3, 40), (10, 10), (0, len(ORIGINAL))])
def test_marks_stay_where_they_are(place: tuple[int, int]) -> None:
    """A mark over several units is in each of their rows; an anchor is in one."""
    comparison = compare(find_facts(ORIGINAL), "The chair is blue.\n", original_marks=[Mark(*place, kind="span", anchor="here")])
    found = [(row.original, mark) for row in comparison.rows if row.original for mark in row.original.marks if mark.anchor == "here"]
    marked = "".join("".join(excerpt.text[mark.start : mark.end].split()) for excerpt, mark in found)
    assert found and marked == "".join(ORIGINAL[slice(*place)].split())
