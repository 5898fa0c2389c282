"""What the question says was done: the telling of that deed stands above lines that only share words."""

import pytest

from pandora_dagster.runtime.extractive.spans.document_spans import Span
from pandora_dagster.runtime.extractive.spans.span_ranking import rank
from pandora_dagster.runtime.extractive.words.query_intent import done, question
from pandora_dagster.runtime.extractive.words.word_matching import terms


@pytest.mark.parametrize(
    ("text", "past"),
    [
        ("Which desk did we order?", {"ordered"}),
        ("What did I promise, and did you cancel it?", {"promised", "canceled"}),
        ("What did we talk about?", set()),
        ("Which desk is cheapest?", set()),
    ],
)
def test_the_deed_of_a_question(text, past):
    """The verb after `did we` in its past form; words about the asking itself are no deed."""
    assert done(text) == past


def test_the_telling_of_the_deed_comes_first():
    """`Ordered: ...` answers `what did we order` before a line that shares as many words."""
    lines = ("The order number is on the photo", "Ordered: Lofta 140, 429.00 euros")
    spans = [Span(line, "1", place, frozenset(terms(line))) for place, line in enumerate(lines)]
    ranked = rank(spans, question("Which desk did we order, and what did it cost?"))
    assert ranked[0][1].text == lines[1]
