"""Scores of texts against a query, and what terms cannot compare."""

import pytest

from pandora_dagster.language.terms import TermReader
from pandora_dagster.retrieval.term_overlap import TermOverlap, language_gap


def test_the_text_that_shares_the_rarest_terms_scores_1():
    """In the order of the texts; what shares nothing scores 0."""
    scores = TermOverlap(TermReader()).scores("the red lamp", ["a lamp", "a red lamp", "a chair", "another lamp"])
    assert scores[1] == 1 > scores[0] > scores[2] == 0


def test_nothing_shared_scores_nothing():
    """Neither does no text."""
    assert TermOverlap(TermReader()).scores("lamp", ["chair", ""]) == [0.0, 0.0] and TermOverlap(TermReader()).scores("lamp", []) == []


@pytest.mark.parametrize(
    ("query", "texts", "named"),
    [
        ("Wann kommt der Zug an?", ["The train is late and it will be there at nine.", "ok"], ("de", "en")),
        ("Wie heißt die Lampe?", ["The lamp is late and it will be there at nine."], ("de", "en")),
        ("Wann kommt der Zug an?", ["Der Zug ist spät und kommt um neun an."], ()),
        ("Zug?", ["The train is late and it will be there at nine."], ()),
        ("Wann kommt der Zug an?", [], ()),
    ],
)
def test_texts_in_another_language_are_named(query, texts, named):
    """Where both languages are known and differ."""
    gap = language_gap(query, texts)
    assert bool(gap) == bool(named) and all(f" {language}" in gap for language in named)


def test_a_short_source_is_no_other_language_by_two_stop_words() -> None:
    """Danish stop words in eleven words made `ask` say that the sources are Danish."""
    assert not language_gap("My passport expires in August.", ["Noted: Mia is allergic to nuts.", "Mia is allergic to nuts."])
