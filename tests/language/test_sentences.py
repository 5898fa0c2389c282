"""Sentences of a text."""

import pytest

from pandora_dagster.language.sentences import sentences


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("One. Two!", ("One.", "Two!")),
        ("Dr. Holm paid $697.00. She left.", ("Dr. Holm paid $697.00.", "She left.")),
        (
            "Die Haustür bekommt am 3. Januar ein Schloss. Danach kommt Hr. Petersen.",
            ("Die Haustür bekommt am 3. Januar ein Schloss.", "Danach kommt Hr. Petersen."),
        ),
        ("Halteverbot bis 1. Dezember beantragen, z. B. beim Amt.", ("Halteverbot bis 1. Dezember beantragen, z. B. beim Amt.",)),
        ("We met at 5. It rained.", ("We met at 5.", "It rained.")),
        ("calculate(expression=(6 - 4) + (13 - 11) + (16 - 13))", ("calculate(expression=(6 - 4) + (13 - 11) + (16 - 13))",)),
        ("Wash at 57 °C. Never use bleach. By J. Smith.", ("Wash at 57 °C.", "Never use bleach.", "By J. Smith.")),
        ("Take vitamin C. Never take D.", ("Take vitamin C.", "Never take D.")),
        ("no end\n\n  next line ", ("no end", "next line")),
        ("", ()),
        (" \n ", ()),
    ],
)
def test_sentences(text: str, found: tuple[str, ...]) -> None:
    """Sentences come verbatim and in order; abbreviations and amounts do not end one, line breaks do."""
    assert sentences(text) == found
