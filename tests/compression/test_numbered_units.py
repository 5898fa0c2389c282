"""Numbered pieces of units, and the choices that answers make of them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.compression.numbered_units import MAX_NUMBERS, UnitPiece, merged_order, read_choice, read_numbered, unit_pieces
from pandora_dagster.documents.units.unit_reader import read_units

TALK = "user: The desk costs 429 euros. It must arrive before May.\nassistant: I have ordered it. The order is ORD-77120.\n"
PIECE = UnitPiece("[1] (2) a\n[2] (2) b\n[3] (2) c", (4, 6, 9), 6)


def words(text):
    return len(text.split())


def test_a_piece_shows_number_tokens_and_context():
    """Speakers stand without a number, in every piece whose units need them."""
    whole, *others = unit_pieces(read_units(TALK), size=100, count=words)
    assert not others and whole.text.splitlines() == [
        "user:",
        "[1] (5) The desk costs 429 euros.",
        "[2] (5) It must arrive before May.",
        "assistant:",
        "[3] (4) I have ordered it.",
        "[4] (4) The order is ORD-77120.",
    ]
    pieces = unit_pieces(read_units(TALK), size=10, count=words)
    assert len(pieces) == 4 and [piece.text.splitlines()[0] for piece in pieces] == ["user:", "user:", "assistant:", "assistant:"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(["Ana: ", "A sentence is here. ", "- item\n", "\n\n", "# Head\n", "| a | b |\n", "```\nx = 1\n```\n"]), max_size=60
    )
)
def test_each_unit_is_in_one_piece_and_reads_back(parts):
    """In order, within size and number; the numbers of a piece lead to its units."""
    units = read_units("".join(parts))
    pieces = unit_pieces(units, size=30, count=words)
    assert [order for piece in pieces for order in piece.orders] == [u.order for u in units if not u.is_context and words(u.text) < 20]
    for piece in pieces:
        assert len(piece.orders) <= MAX_NUMBERS
        shown = list(read_numbered(piece.text))
        assert [(one.number, one.text) for one in shown] == [(n, units[order].text) for n, order in enumerate(piece.orders, start=1)]


def test_a_unit_larger_than_a_piece_is_left_to_the_structure():
    """It is never cut; what is beside it is asked for."""
    units = read_units(f"A short sentence. {'word ' * 200}.\n\nAnother short one.")
    (piece,) = unit_pieces(units, size=50, count=words)
    assert "word word" not in piece.text and len(piece.orders) == 2


@pytest.mark.parametrize(
    ("answer", "orders"),
    [
        ({"keep": [3, 1]}, (9, 4)),
        ({"keep": [2, 2, 2]}, (6,)),
        ({"keep": []}, ()),
        ({"keep": [0]}, ()),
        ({"keep": [4]}, ()),
        ({"keep": [1, True]}, ()),
        ({"keep": ["1"]}, ()),
        ({"keep": [[1]]}, ()),
        ({"keep": "1-3"}, ()),
        ({"keep": [1, 2, 3]}, ()),
        ({}, ()),
        ("[1]", ()),
        (None, ()),
    ],
)
def test_an_answer_is_a_choice_or_refused_with_the_reason(answer, orders):
    """Known numbers, each once, in the model's order; all of a piece that is too large is no choice."""
    choice = read_choice(answer, PIECE, 4)
    assert choice.orders == orders and bool(choice.refused) is not bool(orders)


def test_all_units_are_a_choice_where_they_fit():
    """Nothing had to be left out."""
    assert read_choice({"keep": [3, 2, 1]}, PIECE, 6).orders == (9, 6, 4)


def test_pieces_are_merged_by_the_share_of_their_target():
    """Of two pieces with one target each, the first units come first, then the second ones."""
    tokens = dict.fromkeys(range(6), 10)
    assert merged_order([((0, 1, 2), 30.0), ((5, 4), 30.0)], tokens) == (0, 5, 1, 4, 2)
    assert merged_order([((0, 1), 10.0), ((5, 4), 100.0)], tokens) == (0, 5, 4, 1)
