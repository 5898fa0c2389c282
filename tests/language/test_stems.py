"""Stems."""

import pytest

from pandora_dagster.language.stems import stem


@pytest.mark.parametrize(
    ("word", "language", "expected"),
    [("running", "en", "run"), ("häuser", "de", "haus"), ("maisons", "fr", "maison"), ("running", "", "running"), ("はし", "ja", "はし")],
)
def test_a_stem_in_its_language(word: str, language: str, expected: str) -> None:
    """A language without a stemmer keeps its words."""
    assert stem(word, language) == expected
