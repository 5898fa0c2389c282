"""A number with its noun."""

import pytest

from pandora_dagster.language.word_forms import counted


@pytest.mark.parametrize(
    ("number", "forms", "text"),
    [
        (0, ("turn",), "0 turns"),
        (1, ("turn",), "1 turn"),
        (2, ("turn",), "2 turns"),
        (1200, ("query", "queries"), "1,200 queries"),
        (1, ("query", "queries"), "1 query"),
        (1, ("turn is due", "turns are due"), "1 turn is due"),
    ],
)
def test_a_noun_has_the_number_of_its_count(number, forms, text):
    assert counted(number, *forms) == text
