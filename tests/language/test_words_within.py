"""Whole words within a number of characters."""

import pytest

from pandora_dagster.language.tokens import words_within


@pytest.mark.parametrize(
    ("text", "limit", "first", "kept"),
    [
        ("the Vela 30 lamp", 16, (), "the Vela 30 lamp"),
        ("the Vela 30 lamp", 15, (), "the Vela 30"),
        ("the light of the Vela 30", 12, ("Vela", "30"), "the Vela 30"),
        ("a lamp a lamp a lamp", 10, (), "a lamp"),
        ("x" * 30 + " lamp", 10, (), "lamp"),
        ("x" * 30, 10, (), ""),
    ],
)
def test_no_word_is_cut(text: str, limit: int, first: tuple[str, ...], kept: str) -> None:
    assert words_within(text.split(), limit, first=first) == kept
