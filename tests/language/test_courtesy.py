"""Sentences that say nothing about their matter."""

import pytest

from pandora_dagster.language.courtesy import is_courtesy, without_greeting


@pytest.mark.parametrize(
    "text",
    [
        "###STOP###",
        "",
        "Merci beaucoup pour votre aide!",
        "Thank you so much for your help today!",
        "Yes.",
        "Vielen Dank!",
        "Danke, super!",
    ],
)
def test_thanks_greetings_and_marks_are_courtesies(text):
    """In several languages, and whatever stands around a mark."""
    assert is_courtesy(text)


@pytest.mark.parametrize(
    "text",
    [
        "Hi, I want to cancel my order.",
        "Great, order the Alda.",
        "Thanks, the 10:00 train please.",
        "The desk is oak.",
        "Move the flight",
        "42",
        "Error: buy: declined",
    ],
)
def test_what_says_something_is_none(text):
    """Also behind a greeting."""
    assert not is_courtesy(text)


@pytest.mark.parametrize(
    ("text", "matter"),
    [
        ("Hello, I plan a trip to Porto.", "I plan a trip to Porto."),
        ("Hi there! Thanks, please book the train.", "please book the train."),
        ("Thank you!", ""),
        ("The desk, which is white, arrived.", "The desk, which is white, arrived."),
    ],
)
def test_a_greeting_in_front_is_left_away(text, matter):
    """What follows it stays verbatim."""
    assert without_greeting(text) == matter
