"""Found messages within a token budget."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.contracts.turns import FoundMessage
from pandora_dagster.selection.search_results import search_results


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
    assert search_results("q", [_message(1, "a b c")], budget=4, count=_words) == search_results("q", [], budget=4, count=_words)


def test_what_stands_beside_fills_what_is_left() -> None:
    """Only after all that was found, however well it scores; the list stays best first."""
    found, near = [_message(1, "a b", score=1.0)], [_message(2, "c d", score=2.0), _message(3, "e f", score=0.5)]
    assert [r.message_ids[0] for r in search_results("q", found, budget=6, count=_words, beside=near).results] == ["m1"]
    assert [r.message_ids[0] for r in search_results("q", found, budget=99, count=_words, beside=near).results] == ["m2", "m1", "m3"]


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
