"""Passages: nothing of a text is lost or changed, and none is longer than asked."""

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pandora_dagster.documents.passages import passages

PIECES = st.lists(st.sampled_from(["# Heading", "word ", "a longer sentence. ", "\n", "\n\n", "  ", "\r\n", "x" * 50, "é🙂"]), max_size=40)


@given(PIECES.map("".join), st.integers(8, 200))
def test_between_passages_stand_blanks_alone(text, longest):
    """In order, without overlap, each within its length; together they hold every letter."""
    spans = passages(text, max_characters=longest)
    assert all(0 < stop - start <= longest for start, stop in spans)
    assert all(one[1] <= other[0] for one, other in pairwise(spans))
    assert re.sub(r"\s", "", "".join(text[a:b] for a, b in spans)) == re.sub(r"\s", "", text)


def test_a_heading_goes_with_what_stands_under_it():
    """Its words count for its part."""
    text = "# One\n\nfirst\n\nsecond\n\n## Two\n\n### Three\n\nthird"
    assert [text[a:b] for a, b in passages(text)] == ["# One\n\nfirst", "second", "## Two\n\n### Three\n\nthird"]
