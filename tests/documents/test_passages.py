"""Passages: nothing of a text is lost or changed, and none is longer than asked."""

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pandora_dagster.documents.passages import join_passages, passages

PIECES = st.lists(st.sampled_from(["# Heading", "word ", "a longer sentence. ", "\n", "\n\n", "  ", "\r\n", "x" * 50, "é🙂"]), max_size=40)


@given(PIECES.map("".join), st.integers(8, 200))
def test_between_passages_stand_blanks_alone(text, longest):
    """In order, without overlap, each within its length; together they hold every letter."""
    spans = passages(text, longest=longest)
    assert all(0 < stop - start <= longest for start, stop in spans)
    assert all(one[1] <= other[0] for one, other in pairwise(spans))
    assert re.sub(r"\s", "", "".join(text[a:b] for a, b in spans)) == re.sub(r"\s", "", text)


def test_a_heading_goes_with_what_stands_under_it():
    """Its words count for its part."""
    text = "# One\n\nfirst\n\nsecond\n\n## Two\n\n### Three\n\nthird"
    assert [text[a:b] for a, b in passages(text)] == ["# One\n\nfirst", "second", "## Two\n\n### Three\n\nthird"]


def test_chosen_passages_are_joined_as_they_stand():
    """Neighbours keep what stood between them; a gap is a blank line."""
    text = "one\n  \n\ntwo\n\nthree\n\nfour"
    spans = passages(text)
    assert join_passages(text, spans, {0, 1, 3}) == "one\n  \n\ntwo\n\nfour" and join_passages(text, spans, {0, 1, 2, 3}) == text
    assert join_passages(text, spans, set()) == ""
