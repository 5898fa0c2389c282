"""Values of the kind that a question asks for, with keys under which equal ones meet."""

import pytest

from pandora_dagster.language.requests.asked_values import AskedKind, asked_kind, values_of


@pytest.mark.parametrize(
    ("kind", "text", "found"),
    [
        (AskedKind.MONEY, "RRP £92.00 £74.99, 3 left", ["£92.00", "£74.99"]),
        (AskedKind.MONEY, "92 GBP or 109 EUR", ["92 GBP", "109 EUR"]),
        (AskedKind.MASS, "142 g at 35 mm", ["142 g"]),
        (AskedKind.DURATION, "5 years, 3 lamps", ["5 years"]),
        (AskedKind.DATE, "until 30 November 2026, room 4", ["30 November 2026"]),
        (AskedKind.TORQUE, "tighten to 3 Nm", ["3 Nm"]),
        (AskedKind.PHONE, "call 030 1234 5678, batch 2617", ["030 1234 5678"]),
        (AskedKind.TEXT, "142 g", []),
    ],
)
def test_values_of_a_kind(kind: AskedKind, text: str, found: list[str]) -> None:
    assert [text[value.start : value.end] for value in values_of(kind, text, "en")] == found


def test_equal_values_have_one_key() -> None:
    first, second = ([value.key for value in values_of(AskedKind.MASS, text, "en")] for text in ("1.48kg", "1480 g"))
    assert first == second


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("What is the maximum pressure?", AskedKind.PRESSURE),
        ("Wie lange hält der Akku?", AskedKind.DURATION),
        ("How many seats are there?", AskedKind.NUMBER),
        ("Is it in stock?", AskedKind.YES_NO),
        ("Which lamp is brightest?", AskedKind.TEXT),
    ],
)
def test_the_kind_that_a_question_asks_for(question: str, kind: AskedKind) -> None:
    assert asked_kind(question) is kind
