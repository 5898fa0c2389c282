"""Pointing words whose thing the query does not name."""

import pytest

from pandora_dagster.runtime.extractive.queries.query_pronouns import find_pointer
from tests.runtime.extractive.packs import context, summary_line

UNRESOLVED = [
    ("is it in stock?", "it"),
    ("Is it still available?", "it"),
    ("cancel that one please", "that one"),
    ("book it", "it"),
    ("Book it!", "it"),
    ("Could you please cancel it?", "it"),
    ("I want to return them", "them"),
    ("what did it cost?", "it"),
    ("who wrote it?", "it"),
    ("are they waterproof?", "they"),
    ("change it to a window seat", "it"),
    ("buy this", "this"),
    ("is that in stock?", "that"),
    ("how much are those ones?", "those ones"),
    ("cancel the second one", "the second one"),
]
SAYS_ITSELF = [
    "which reservation did we talk about, and what did it cost?",
    "Find a kettle and tell me if it whistles",
    "is the kettle in stock?",
    "cancel that reservation please",
    "is this book any good?",
    "Is it true that Paris is a capital?",
    "how long does it take to boil an egg?",
    "what time is it in Tokyo?",
    "is it raining?",
    "is it safe to drink tap water?",
    "What happened this week?",
    "book QX7TTA and pay it",
    'what does "it" mean?',
    "Did Ida order it?",
    "are those kettles waterproof?",
    "I read a novel. It was long.",
    "how do I cancel?",
    "Who invented the telegraph?",
    "the desk that we ordered",
    "¿Cuál es mi reserva?",
]


@pytest.mark.parametrize(("query", "word"), UNRESOLVED)
def test_the_pointing_word_is_named_and_asked_about(ask, query: str, word: str) -> None:
    """With nothing said before, Reflection asks what the word means, verbatim; an earlier turn lets the query proceed."""
    assert find_pointer(query) == word
    answer = ask("reflection", query, {"context.md": context(query), "turn_summaries": ""})
    assert (answer["decision"], answer["question"]) == ("CLARIFY", f'What do you mean by "{word}"?')
    history = summary_line(6, "Compared the Brunswick 40 kettle with others.", "kettle")
    assert ask("reflection", query, {"context.md": context(query), "turn_summaries": history})["decision"] == "PROCEED"


@pytest.mark.parametrize("query", SAYS_ITSELF)
def test_a_query_that_names_its_thing_proceeds(ask, query: str) -> None:
    """A thing named in the query, or an `it` that stands for none, needs no question back."""
    assert find_pointer(query) == ""
    assert ask("reflection", query, {"context.md": context(query), "turn_summaries": ""})["decision"] == "PROCEED"
