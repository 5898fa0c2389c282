"""What takes a statement back, refuses it or moves it comes with it."""

import pytest

from pandora_dagster.compression import compress
from pandora_dagster.compression.condense.dialogue import Dialogue
from pandora_dagster.compression.condense.prose import condense_prose
from pandora_dagster.compression.condense.query_focus import condense_for
from pandora_dagster.compression.facts.retractions import SpokenSentence, answers
from pandora_dagster.contracts.compression_results import CompressionRequest
from pandora_dagster.documents.token_counter import TokenCounter

HAGGLING = """\
Rosa: The walnut desk costs 420 euros.
Emil: Good, I take the desk. Pickup on Monday 9 June.
Rosa: Not Monday. Tuesday.
Emil: Tuesday 10 June then, at 16:00.
Rosa: The chair is extra, it costs 85 euros.
Emil: The chair looks comfortable and the colour goes well with my carpet at home.
Rosa: It was made in Denmark by a small workshop that closed in 1998.
"""
FILLING = "The committee met in the old library and talked about the weather, the garden and the catering for a long while. "


def _linked(*said: SpokenSentence) -> dict[str, list[str]]:
    return {said[one].text: [said[other].text for other in others] for one, others in answers(said).items()}


def test_a_refusal_in_a_word_leads_to_what_is_settled_then() -> None:
    found = _linked(
        SpokenSentence("Pickup on Monday 9 June.", 0, "Emil"),
        SpokenSentence("Not Monday.", 1, "Rosa"),
        SpokenSentence("Tuesday.", 1, "Rosa"),
        SpokenSentence("Tuesday 10 June then.", 2, "Emil"),
    )
    assert found["Pickup on Monday 9 June."] == ["Not Monday."]
    assert found["Not Monday."] == ["Tuesday."]
    assert found["Tuesday."] == ["Tuesday 10 June then."]


@pytest.mark.parametrize("target", range(20, 110, 6))
def test_a_date_that_was_refused_stands_with_the_refusal_or_not_at_all(target: int, counter: TokenCounter) -> None:
    for out in (Dialogue(HAGGLING, counter).condensed(target), condense_for(HAGGLING, target, counter, "When is the pickup?")):
        assert counter.count(out) <= target
        assert "9 June" not in out or ("Not Monday" in out and "10 June" in out), out
    made = compress(CompressionRequest(HAGGLING, target=target), counter).text
    assert made is None or "9 June" not in made or "10 June" in made, made


def test_of_two_dates_the_later_stands_where_there_is_room_for_one(counter: TokenCounter) -> None:
    out = condense_for(HAGGLING, 26, counter, "When is the pickup?")
    assert "10 June" in out
    assert "9 June" not in out


@pytest.mark.parametrize("query", ["", "When are the keys handed over?"])
@pytest.mark.parametrize("target", [25, 40, 60, 90])
def test_a_date_that_was_moved_stands_with_the_new_one(query: str, target: int, counter: TokenCounter) -> None:
    text = f"Keys are handed over on 1 May.\n\n{FILLING * 4}\n\nThe handover was moved to 4 May. {FILLING * 2}"
    out = condense_for(text, target, counter, query) if query else condense_prose(text, target, counter)
    assert "4 May" in out
    assert "1 May" not in out or "4 May" in out
    assert answers([SpokenSentence("The rent is due on 1 May.", 0), SpokenSentence("The handover was moved to 4 May.", 1)]) == {}


def test_an_offer_leads_to_its_refusal() -> None:
    found = _linked(
        SpokenSentence("I want a full month free.", 0, "Ana"),
        SpokenSentence("A full month I cannot grant.", 1, "Bo"),
        SpokenSentence("No problem, I will write it down.", 2, "Ana"),
    )
    assert found == {"I want a full month free.": ["A full month I cannot grant."]}


def test_both_sides_of_a_vote_stand_together(counter: TokenCounter) -> None:
    votes = "In favour: Ada, Ivo, Lena. Against: Paul, Rita."
    text = f"# Meeting\n\n{FILLING * 3}\n{votes}\n{FILLING * 3}"
    for target in range(12, 60, 4):
        out = condense_prose(text, target, counter)
        assert ("In favour" in out) == ("Against" in out), out


@pytest.mark.parametrize("query", ["", "Which transfers failed?"])
def test_an_error_stands_with_what_became_of_the_same_thing(query: str, counter: TokenCounter) -> None:
    lines = [f"2026-10-03T02:{n:02}:00Z INFO worker {n} ok, 5000 rows, {300 + n} ms" for n in range(40)]
    lines.insert(20, "2026-10-03T02:19:30Z ERROR transfer 5518 failed: limit reached")
    lines.insert(30, "2026-10-03T02:29:30Z INFO transfer 5518 sent again: done")
    made = compress(CompressionRequest("\n".join(lines), query=query, target=120), counter).text
    assert made
    assert "transfer 5518 failed" in made
    assert "transfer 5518 sent again: done" in made


def test_an_initial_ends_no_sentence(counter: TokenCounter) -> None:
    out = Dialogue("Ann: The lease was signed by J. Kowalski on 3 May.\nBen: Who is that man?\nAnn: A friend.\n", counter).condensed(18)
    assert "J. Kowalski on 3 May" in out
