"""A question by its form: names, matter, kind of value, and queries of its own words."""

import pytest

from pandora_dagster.language.requests.asked_values import AskedKind
from pandora_dagster.runtime.extractive.research.asked_question import AskedQuestion


@pytest.mark.parametrize(
    ("text", "kind", "names"),
    [
        ("What does the Vela 30 cost at Lampshop?", AskedKind.MONEY, ("Vela", "30", "Lampshop")),
        ("How thick is the cable of the Orra U9?", AskedKind.LENGTH, ("Orra", "U9")),
        ("Does the Vela fit a 35 mm bar?", AskedKind.YES_NO, ("Vela",)),
        ("Bis wann läuft die Befragung?", AskedKind.DATE, ()),
        ("Welches Gewicht hat das Orra 22?", AskedKind.MASS, ("Orra", "22")),
    ],
)
def test_names_and_kind(text: str, kind: AskedKind, names: tuple[str, ...]) -> None:
    question = AskedQuestion(text)
    assert (question.kind, question.names) == (kind, names)


def test_queries_have_words_of_the_question_alone() -> None:
    question = AskedQuestion("What does the Vela 30 cost at Lampshop?")
    assert question.queries() == ("Vela 30 cost Lampshop", "Vela 30 Lampshop")
    words = set(question.text.rstrip("?").split())
    assert all(set(query.split()) <= words for query in question.queries())


def test_a_site_is_named_behind_a_preposition() -> None:
    assert AskedQuestion("What does the Brava Vela cost at Lampshop?").sites == ("Lampshop",)
