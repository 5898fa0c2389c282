"""Answers that say nothing was found."""

import pytest

from pandora_dagster.language.no_result_phrases import NO_RESULT, is_no_result, no_result


@pytest.mark.parametrize(
    ("text", "only"),
    [
        ("I found nothing about this in the documents.", True),
        ('I found nothing about "v. 2: oil". What comes nearest:', True),
        ("I found nothing about a refund in our earlier turns.", True),
        ("Ich habe nichts gefunden.", True),
        ("Ich habe in den Unterlagen nichts über eine Rückzahlung gefunden.", True),
        ("Ich habe dazu nichts gefunden. I looked at:", True),
        ("Ich habe nichts Besseres als das Hotel Alfama gefunden.", False),
        ("Ich habe nichts über Öl gefunden. Das Scharnier ist aus Messing.", False),
        ("Ich habe nichts über Öl gefunden, aber das Scharnier ist aus Messing.", False),
        ("Je n'ai rien trouvé.", True),
        ("Je n’ai rien trouvé à ce sujet dans les documents.", True),
        ("Je n'ai rien trouvé de mieux que le train de nuit.", False),
        ("Je n'ai rien trouvé sur le prix, mais le vol part lundi.", False),
        ("It was cancelled [1]. I found nothing about a refund.", False),
        ("I found nothing about oil. The hinge is of brass.", False),
        ("I found nothing cheaper, so I booked the Alfama hotel for 90 EUR.", False),
        ("I found nothing better than the Lenovo LOQ at $697.", False),
        ("I found nothing about that, but the hinge is of brass.", False),
        ("I found it.", False),
        ("", False),
    ],
)
def test_an_answer_that_tells_nothing(text: str, only: bool) -> None:
    """Only where no other sentence stands in it."""
    assert is_no_result(text) is only


@pytest.mark.parametrize("language", NO_RESULT)
def test_each_phrase_is_read_as_one(language: str) -> None:
    """What the runtime says is recognised by gates and search."""
    assert is_no_result(NO_RESULT[language])


@pytest.mark.parametrize(
    ("question", "language"), [("Wann ist das?", "de"), ("When is it?", "en"), ("いつですか。", "ja"), ("Hvornår er det?", "en")]
)
def test_a_phrase_in_the_language_of_the_question(question: str, language: str) -> None:
    """English where a language has no phrase."""
    assert no_result(question) == NO_RESULT[language]
