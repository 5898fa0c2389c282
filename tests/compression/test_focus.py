"""Text around a question, and the spans it stands in."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.compression.focus import condense_for
from pandora_dagster.compression.spans import best_spans
from pandora_dagster.text.tokens import TokenCounter


def test_the_stretch_that_answers_is_kept_whole(counter: TokenCounter) -> None:
    """Neighbours of the words that were asked for come along, verbatim."""
    topics = ("garden fence and roses", "battery of the remote control", "holiday in the mountains")
    lines = [f"Speaker {n % 3}: remark {n} about the {topics[n // 20]} today." for n in range(60)]
    out = condense_for("\n".join(lines), 220, counter, "What did they say about the battery?")
    kept = [line for line in out.split("\n") if line]
    assert set(kept) <= set(lines)
    assert sum("battery" in line for line in kept) >= len(kept) - 1


@given(st.lists(st.tuples(st.floats(0, 9), st.integers(1, 30)), max_size=60), st.integers(0, 300))
@settings(max_examples=60, deadline=None)
def test_spans_never_cost_more_than_the_budget(units: list[tuple[float, int]], budget: int) -> None:
    """Whatever the scores, the chosen units fit."""
    scores, costs = [s for s, _ in units], [c for _, c in units]
    assert sum(costs[i] for i in best_spans(scores, costs, budget, 3.0)) <= budget


@pytest.mark.parametrize("edge", [0, 1])
def test_of_two_stretches_alike_the_one_off_the_edges_is_kept(counter: TokenCounter, edge: int) -> None:
    """Greetings and goodbyes name many things: where the first lines say as much as the middle, the middle counts."""
    lines = [f"Remark {n} was about the garden fence and the roses today." for n in range(101)]
    lines[edge] = "Ann spoke of the battery of the old remote control."
    lines[50] = "Ben spoke of the battery of the old remote control."
    assert condense_for("\n".join(lines), 14, counter, "what about the battery?") == lines[50]
