"""Summaries made of a turn's own words."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.language.terms import TermReader
from pandora_dagster.transfer.recorded_summary import intent_of, summarize, summary_fields

_TEXTS = st.text(max_size=200) | st.sampled_from(
    ["Yes.", "x" * 5_000, "1. a\n2. b\n3. cheap laptop", "Hi! I want a refund for flight HAT113. Thanks."]
)


@given(_TEXTS, _TEXTS)
@settings(max_examples=150)
def test_any_turn_gets_a_valid_summary(query: str, answer: str) -> None:
    """Whatever was said, the summary holds 2 to 5 topics and some words, and stays short."""
    summary = summarize(query, answer, ("get_user",), reader=TermReader())
    assert summary.summary
    assert 2 <= len(summary.topics) <= 5
    assert len(summary.summary) < 700
    assert (summary.has_research, summary.research_topic) == (False, None)


def test_the_sentences_that_say_most_are_taken_verbatim() -> None:
    """Courtesies stay out; the booking and its price stay in."""
    summary = summarize(
        "Hi there! I would like to book the flight to Chicago next week. Thank you.",
        "Great. Your flight HAT113 to Chicago is booked for $340. Anything else?",
        reader=TermReader(),
    )
    assert summary.summary == "I would like to book the flight to Chicago next week. Your flight HAT113 to Chicago is booked for $340."
    assert {"chicago", "flight"} <= set(summary.topics)
    assert summary.intent == "commerce"


def test_a_turn_without_words_says_so() -> None:
    """An empty turn gets a fixed sentence and topics."""
    summary = summarize("", "", ("get_user",), reader=TermReader())
    assert summary.summary == "A turn without words that used get_user."
    assert summary.topics == ("get_user", "query")


@pytest.mark.parametrize(
    ("query", "intent"),
    [
        ("Hello there", "greeting"),
        ("Hello, what is the price of the red one?", "commerce"),
        ("Which reservation did we talk about?", "recall"),
        ("I prefer window seats", "preference"),
        ("Please book me a room", "commerce"),
        ("Go to example.com", "navigation"),
        ("What is DNA?", "query"),
        ("", "query"),
    ],
)
def test_intent(query: str, intent: str) -> None:
    """The rule table of intents."""
    assert intent_of(query) == intent


def test_the_manifest_says_that_no_model_wrote_it() -> None:
    """The stored fields carry the runtime's name."""
    assert summary_fields(summarize("a b", "c", reader=TermReader()))["runtime"] == "extractive"
