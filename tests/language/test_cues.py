"""Cues of what a sentence does."""

import pytest

from pandora_dagster.language.cues import Cue, cues, negations


@pytest.mark.parametrize(
    ("text", "language", "cue"),
    [
        ("You must not enter.", "en", Cue.FORCE),
        ("You must not enter.", "en", Cue.NEGATION),
        ("Free, except on Sundays.", "en", Cue.EXCEPTION),
        ("Actually it's fourteen.", "en", Cue.CORRECTION),
        ("We agreed on Friday.", "en", Cue.DECISION),
        ("It failed because of the fan.", "en", Cue.CAUSE),
        ("It failed because of the fan.", "en", Cue.ERROR),
        ("Please send it by Monday.", "en", Cue.TASK),
        ("Thanks a lot!", "en", Cue.COURTESY),
        ("For example a pen.", "en", Cue.EXAMPLE),
        ("Why is that?", "en", Cue.QUESTION),
        ("いつですか？", "ja", Cue.QUESTION),
        ("Das darf niemand.", "de", Cue.NEGATION),
        ("Il ne faut jamais l'ouvrir.", "fr", Cue.NEGATION),
        ("No se debe abrir.", "es", Cue.FORCE),
        ("Nie wolno otwierać.", "pl", Cue.NEGATION),
        ("Het mag niet open.", "nl", Cue.FORCE),
    ],
)
def test_a_cue_is_found(text: str, language: str, cue: Cue) -> None:
    """In its language, and where the language is not known."""
    assert cue in cues(text, language)
    assert cue in cues(text)


def test_a_plain_sentence_has_no_cue() -> None:
    """Words of another language are no cues: `mais` is corn in German."""
    assert cues("The chair is blue.", "en") == frozenset()
    assert cues("Mais und Reis wachsen hier.", "de") == frozenset()


@pytest.mark.parametrize(("text", "count"), [("It is not here and won't come.", 2), ("Es ist nicht hier.", 1), ("It is here.", 0)])
def test_negations_are_counted(text: str, count: int) -> None:
    """In any language."""
    assert negations(text) == count
