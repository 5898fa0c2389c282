"""Found messages within a token budget."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.contracts.turns import FoundMessage
from pandora_dagster.retrieval.messages.search_results import search_results
from pandora_dagster.runtime.token_counter import TokenCounter

COUNT = TokenCounter(Path(__file__).parents[3] / "data" / "tokenizer" / "cl100k_base.tiktoken").count


def _message(place: int, text: str, *, day: int = 8, score: float = 1.0) -> FoundMessage:
    return FoundMessage(f"turn_{place:06d}", f"2023-05-{day:02d}T10:00:00Z", f"m{place}", "Ann", text, score, place)


def _words(text: str) -> int:
    return len(text.split())


def test_results_stand_best_first_and_the_text_in_time_order() -> None:
    """The best message of a day carries the date; the text has each date once."""
    found = search_results("q", [_message(2, "b", score=3), _message(1, "a", score=2), _message(3, "c", day=9)], budget=99, count=_words)
    assert [r.text for r in found.results] == ["8 May 2023\nAnn: b", "Ann: a", "9 May 2023\nAnn: c"]
    assert found.text == "8 May 2023\nAnn: a\nAnn: b\n9 May 2023\nAnn: c"
    first = found.results[0]
    assert (first.turn_id, first.message_ids, first.tokens, first.score) == ("turn_000002", ("m2",), 5, 3)


def test_nothing_found_gives_nothing() -> None:
    """Neither do messages without words, nor a budget in which nothing fits."""
    assert search_results("q", [], budget=10, count=_words).results == ()
    assert search_results("q", [_message(1, "  ")], budget=10, count=_words).results == ()
    without_room = search_results("q", [_message(1, "a b c")], budget=4, count=_words)
    assert (without_room.results, without_room.tokens, without_room.text) == ((), 0, "")
    assert search_results("q", [_message(1, "  ")], budget=4, count=_words).least_tokens == 0


def test_where_nothing_has_room_the_budget_of_the_best_is_named() -> None:
    """Of what was found, not of what stands beside it; with that budget it goes in, with less it does not."""
    found, near = [_message(1, "a b c", score=2.0), _message(2, "d e", score=1.0)], [_message(3, "f", score=9.0)]
    least = search_results("q", found, budget=1, count=_words, neighbours=near).least_tokens
    assert least == 7
    assert [r.message_ids[0] for r in search_results("q", found, budget=least, count=_words).results] == ["m1"]
    assert [r.message_ids[0] for r in search_results("q", found, budget=least - 1, count=_words).results] == ["m2"]


def test_what_stands_beside_fills_what_is_left() -> None:
    """Only after all that was found, however well it scores; the list stays best first."""
    found, near = [_message(1, "a b", score=1.0)], [_message(2, "c d", score=2.0), _message(3, "e f", score=0.5)]
    assert [r.message_ids[0] for r in search_results("q", found, budget=6, count=_words, neighbours=near).results] == ["m1"]
    assert [r.message_ids[0] for r in search_results("q", found, budget=99, count=_words, neighbours=near).results] == ["m2", "m1", "m3"]


def test_what_does_not_fit_makes_room_for_what_does() -> None:
    """A message that is too large is passed over, not cut, and the next one goes in."""
    found = search_results("q", [_message(1, "a b c d e", score=9), _message(2, "a b", score=1)], budget=6, count=_words)
    assert [r.message_ids[0] for r in found.results] == ["m2"]


@given(st.lists(st.tuples(st.text("ab \n", max_size=30), st.integers(1, 4), st.floats(0, 9)), max_size=12), st.integers(1, 60))
@settings(max_examples=100)
def test_the_budget_is_never_exceeded_and_nothing_is_said_twice(raw: list[tuple[str, int, float]], budget: int) -> None:
    """Neither by the results together, nor by each of them counted, nor by the text."""
    messages = sorted((_message(i, text, day=day, score=score) for i, (text, day, score) in enumerate(raw)), key=lambda m: -m.score)
    found = search_results("q", messages, budget=budget, count=_words)
    assert max(_words("\n".join(r.text for r in found.results)), sum(r.tokens for r in found.results), _words(found.text)) <= budget
    assert found.tokens <= budget
    said = [r.text.split("Ann: ", 1)[1] for r in found.results]
    assert len(said) == len(set(said))
    assert {r.message_ids[0] for r in found.results} <= {m.message_id for m in messages}


_ENDS = (
    "",
    "!",
    "[];",
    "()];",
    "'<>();",
    "}}},",
    '":{',
    " */",
    "-" * 74,
    "***/",
    "…\u200d",
    "\ufeff/*",
    "\u202e",
    "e\u0301",
    "👩\u200d👩\u200d👧",
    "\U000e0041",
)
"""How texts end: several have a line's end in one token with what stands before it, and are two tokens without."""
_ODD = st.tuples(st.text(max_size=20), st.sampled_from(_ENDS), st.integers(1, 3), st.floats(0, 9))


@given(st.lists(_ODD, min_size=1, max_size=8), st.integers(1, 200))
@settings(max_examples=150, deadline=None)
def test_as_the_model_counts_the_budget_holds_whatever_the_texts_are(raw: list[tuple[str, str, int, float]], budget: int) -> None:
    """With the project's own tokens: each result as given, all of them joined, the text; and the named budget is enough."""
    messages = [_message(at, text + end, day=day, score=score) for at, (text, end, day, score) in enumerate(raw)]
    found = search_results("q", messages, budget=budget, count=COUNT)
    assert all(r.tokens == COUNT(r.text) for r in found.results)
    assert max(COUNT("\n".join(r.text for r in found.results)), sum(COUNT(r.text) for r in found.results), COUNT(found.text)) <= budget
    assert bool(found.least_tokens) == (not found.results and any(m.text.strip() for m in messages))
    if found.least_tokens:
        assert found.least_tokens > budget
        again = search_results("q", messages, budget=found.least_tokens, count=COUNT)
        assert again.results and again.tokens <= found.least_tokens


@pytest.mark.parametrize("end", ["[];", "()];", "-" * 74])
def test_a_text_that_takes_more_than_its_line_stays_within_the_budget(end: str) -> None:
    """Each of these is one token with its line's end and two without: packed by the line, the results take more than was counted."""
    messages = [_message(at, f"{word}{end}", score=9.0 - at) for at, word in enumerate(("one", "two", "three"))]
    together = sum(r.tokens for r in search_results("q", messages, budget=999, count=COUNT).results)
    by_line = COUNT("8 May 2023\n") + sum(COUNT(f"Ann: {m.text}\n") for m in messages)
    assert by_line < together
    for budget in range(1, together + 1):
        found = search_results("q", messages, budget=budget, count=COUNT)
        assert sum(COUNT(r.text) for r in found.results) <= budget
        assert len(found.results) < 3 or budget == together
