"""Stems."""

from importlib import import_module
from random import Random

import pytest
import snowballstemmer
import Stemmer

from pandora_dagster.language import stems
from pandora_dagster.language.stems import stem
from pandora_dagster.language.stop_words import stop_words


@pytest.mark.parametrize(
    ("word", "language", "expected"),
    [("running", "en", "run"), ("häuser", "de", "haus"), ("maisons", "fr", "maison"), ("running", "", "running"), ("はし", "ja", "はし")],
)
def test_a_stem_in_its_language(word: str, language: str, expected: str) -> None:
    """A language without a stemmer keeps its words."""
    assert stem(word, language) == expected


def _letters(language: str) -> list[str]:
    return sorted({letter for word in stop_words(language) for letter in word if letter.isalpha()}) or [*"abcdefghijklmnopqrstuvwxyz"]


@pytest.mark.parametrize("language", sorted(snowballstemmer.algorithms()))
def test_the_stemmer_in_c_and_the_one_in_python_agree(language: str) -> None:
    """The index of a machine with the one must be searchable with the other."""
    in_python = getattr(import_module(f"snowballstemmer.{language}_stemmer"), f"{language.title().replace('_', '')}Stemmer")()
    in_c = Stemmer.Stemmer(language)
    code = next((code for code, name in stems._ALGORITHMS.items() if name == language), "en")
    letters, chance = _letters(code), Random(language)
    words = [*sorted(stop_words(code)), *("".join(chance.choices(letters, k=chance.randint(3, 12))) for _ in range(2_000))]
    assert in_c.stemWords(words) == [in_python.stemWord(word) for word in words]


def test_words_are_stemmed_in_c() -> None:
    """Stems are most of the work of a rebuild, and the stemmer in Python takes twenty times as long."""
    assert isinstance(stems._stemmer("en"), Stemmer.Stemmer)  # pyright: ignore[reportPrivateUsage]
