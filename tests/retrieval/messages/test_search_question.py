"""What a question asks for."""

import pytest

from pandora_dagster.language.terms import MONEY, TermReader
from pandora_dagster.retrieval.messages.search_question import read_question, strip_names


def test_words_beginnings_and_dates_are_asked_for() -> None:
    """Longer words are also asked for by their first five letters, dates as terms and as words; words of a stop list count half."""
    question = read_question("computers painted in May 2023", TermReader())
    assert dict(question.words) == {"comput": 0.5, "paint": 1.0, "2023": 1.0, "may": 1.0}
    assert dict(question.prefixes) == {"~compu": "compu", "~paint": "paint"}
    assert question.dates == ("@2023", "@may")
    assert set(question.terms()) == {"comput", "paint", "2023", "may", "~compu", "compu", "~paint", "@2023", "@may"}


@pytest.mark.parametrize(
    ("query", "speaker"),
    [
        ("What did Caroline paint?", "Caroline"),
        ("what did mel's son say", "Melanie"),
        ("What did Caroline and Melanie paint?", ""),
        ("What did Me paint?", ""),
        ("What did anyone paint?", ""),
    ],
)
def test_the_one_speaker_a_question_names(query: str, speaker: str) -> None:
    """A name may be shortened to three letters; two names are nobody's."""
    assert read_question(query, TermReader(), speakers=["Caroline", "Melanie"]).speaker == speaker


def test_names_of_speakers_are_no_search_words() -> None:
    """Every other message carries them."""
    assert dict(read_question("Mel painted with Caroline", TermReader(), speakers=["Caroline", "Melanie"]).words) == {"paint": 1.0}
    assert "carolin" in read_question("Caroline painted", TermReader(), speakers=["Melanie"]).words


@pytest.mark.parametrize(("query", "asks"), [("what did it cost", True), ("how much is that", True), ("what is that", False)])
def test_a_price_question_asks_for_an_amount(query: str, asks: bool) -> None:
    """Texts that name an amount of money answer it."""
    assert (MONEY in read_question(query, TermReader()).words) is asks


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("What did Ann's brother tell Ben Lee?", "What did brother tell Lee?"),
        ("when did bennett call?", "when did bennett call?"),
        ("What did Mel paint?", "What did paint?"),
        ("ANN’s desk", "desk"),
        ("Ann?", "?"),
    ],
)
def test_a_question_without_the_names_of_its_speakers(query: str, left: str) -> None:
    """Whole words and beginnings of names, in any case, with what makes them own something."""
    assert strip_names(query, ("Ann", "Ben", "Melanie")) == left
