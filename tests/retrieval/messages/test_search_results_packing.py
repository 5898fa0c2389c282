"""Whole pieces into a token budget."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.retrieval.messages.search_results import Piece, pack_pieces


def _words(text: str) -> int:
    return len(text.split())


_PIECES = st.lists(
    st.builds(
        lambda text, score, place, group: (text, score, place, group),
        st.text(alphabet="ab \n", max_size=40),
        st.floats(0, 10),
        st.integers(0, 20),
        st.sampled_from(["", "day one", "day two"]),
    ),
    max_size=12,
).map(lambda raw: [Piece(str(i), text, score, (place, i), group) for i, (text, score, place, group) in enumerate(raw)])


@given(_PIECES, st.integers(-1, 60))
@settings(max_examples=150)
def test_the_budget_is_never_exceeded(pieces: list[Piece], budget: int) -> None:
    """What is packed fits, is whole, and everything is either inside or named as left out."""
    result = pack_pieces(pieces, budget=budget, count=_words)
    assert result.tokens == _words(result.text)
    assert result.tokens <= max(0, budget)
    assert all(p.text in result.text for p in result.pieces)
    assert sorted([*(p.name for p in result.pieces), *result.left_out]) == sorted(p.name for p in pieces)


def test_pieces_stand_in_reading_order_under_their_header() -> None:
    """The best are chosen by score and shown by place, each header once."""
    pieces = [Piece("b", "second", 9, (2,), "8 May"), Piece("a", "first", 5, (1,), "8 May"), Piece("c", "third", 1, (3,), "9 May")]
    assert pack_pieces(pieces, budget=100, count=_words).text == "8 May\nfirst\nsecond\n9 May\nthird"


def test_what_does_not_fit_makes_room_for_what_does() -> None:
    """A piece that is too large is passed over, not cut, and the next one goes in."""
    result = pack_pieces([Piece("big", "a b c d e", 9, (1,)), Piece("small", "a b", 1, (2,))], budget=3, count=_words)
    assert (result.text, result.left_out) == ("a b", ("big",))


def test_the_same_text_goes_in_once() -> None:
    """Repeated text does not use the budget twice."""
    result = pack_pieces([Piece("1", "same", 2, (1,)), Piece("2", "same", 1, (2,))], budget=100, count=_words)
    assert (result.text, result.left_out) == ("same", ("2",))
