"""Texts that answer nothing."""

import pytest

from pandora_dagster.runtime.extractive.queries.empty_texts import is_fixed_sentence, is_question_or_request, repeats_question

QUESTION = "Which desk did we order?"


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("Which desk did we order?", QUESTION, True),
        ("anna: which desk did we order", QUESTION, False),
        ("anna: which desk did we order?", QUESTION, True),
        ("(2026-09-03) anna: Which desk did we order?", QUESTION, True),
        ("The desk that we did order", QUESTION, True),
        ("We ordered the walnut desk", QUESTION, False),
        ("We ordered desk 4", QUESTION, False),
        ("No, we never ordered a desk", QUESTION, False),
        ("We ordered the walnut desk.", "Did we order the walnut desk?", False),
        ("Did we order the walnut desk?", "Did we order the walnut desk?", True),
        ("I like aisle seats", "do I like aisle seats?", False),
    ],
)
def test_what_only_repeats_the_question(text: str, query: str, expected: bool) -> None:
    """A text of the question's words alone says nothing new, but to a yes-or-no question a statement does."""
    assert repeats_question(text, query) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Please provide your user ID.", True),
        ("To proceed with this, please provide the order number.", True),
        ("Could you tell me the size", True),
        ("Agent: Let me know which one you want.", True),
        ("(2026-09-03) Please provide the size.", True),
        ("Would you like the blue one, or the red one.", True),
        ("Is the lamp red?", True),
        ("To determine this, I'll need your user ID and the receipt.", True),
        ("Unfortunately, I need the receipt number to go on.", True),
        ("I need the desk by Monday.", False),
        ("The refund of $40 was paid; please keep the receipt.", False),
        ("The desk could be delivered on Monday.", False),
        ("Ordered: the desk Lofta 140.", False),
    ],
)
def test_what_asks_or_offers(text: str, expected: bool) -> None:
    """Questions, requests and offers, by how they begin or end."""
    assert is_question_or_request(text) == expected


def test_own_fixed_sentences_are_no_evidence() -> None:
    """What this runtime said in an earlier turn without a source is not told again as a find."""
    assert is_fixed_sentence("I found nothing about this in the documents that I looked at: [1]") and not is_fixed_sentence(
        "I found the lamp."
    )
