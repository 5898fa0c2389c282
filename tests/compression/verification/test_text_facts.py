"""The facts of a text: values with what they are of, names, codes, rules, decisions and errors; no headings, no capital letters."""

import pytest

from pandora_dagster.compression.verification.facts import FactKind, Rank
from pandora_dagster.compression.verification.text_facts import find_facts


def kinds(text: str) -> dict[str, FactKind]:
    return {f.text: f.kind for f in find_facts(text).facts}


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("The seat costs 9 € in row B.", "9 €", FactKind.MONEY),
        ("It was -3 °C at dawn.", "-3 °C", FactKind.QUANTITY),
        ("The share rose to 12 % in June.", "12 %", FactKind.PERCENTAGE),
        ("The ferry leaves at 14:30 sharp.", "14:30", FactKind.TIME),
        ("The ferry leaves on 2026-05-20 for Lund.", "2026-05-20", FactKind.DATE),
        ("The form is at https://example.com/a for all.", "https://example.com/a", FactKind.URL),
        ("Your order is GW-371 now.", "GW-371", FactKind.IDENTIFIER),
        ("The cabin is for Torsten alone.", "Torsten", FactKind.NAME),
        ("Never board without a ticket.", "Never board without a ticket.", FactKind.CONSTRAINT),
        ("We decided to take the train.", "We decided to take the train.", FactKind.DECISION),
        ("The weather was mild.", "The weather was mild.", FactKind.CLAIM),
    ],
)
def test_kinds(text: str, value: str, kind: FactKind) -> None:
    """Each fact by its form, at its place in the text."""
    text_facts = find_facts(text)
    (fact,) = [f for f in text_facts.facts if f.text == value]
    assert fact.kind is kind and text[fact.start : fact.end] == value


def test_what_is_no_fact() -> None:
    """Headings, questions, courtesies, and the capital letter of a sentence."""
    text = "# Prices And Dates\n\nThanks! When does the ferry leave? Boats are loud."
    assert list(kinds(text)) == ["Boats are loud."]


def test_a_value_has_its_subject() -> None:
    """The nearest words first, up to the next value; a cell has the first cell of its row."""
    (seat, cup) = [f for f in find_facts("The seat costs 9 € and the cup costs 4 €.").facts if f.kind is FactKind.MONEY]
    assert "seat" in seat.subject and "seat" not in cup.subject
    row = find_facts("name,city,age\nAnn,Oslo,31\nBob,Rome,45\nCid,Bonn,52\n")
    assert any("ann" in f.subject for f in row.facts if f.text == "31")


def test_ranks() -> None:
    """Rules come first, values next, what rows hold last."""
    ranks = {f.text: f.rank for f in find_facts("You must pay 9 € at once.\n\n| a | b |\n|---|---|\n| x1 | 7 mg |\n").facts}
    assert ranks["You must pay 9 € at once."] is Rank.CRITICAL
    assert ranks["9 €"] is Rank.IMPORTANT and ranks["7 mg"] is Rank.DETAIL


def test_a_zone_of_little_confidence_may_go() -> None:
    """Its facts bear the rule."""
    page = '{"url": "https://a.example", "zones": [{"type": "pricing", "confidence": 0.3, "raw_text": "The lamp costs 49 euros today."}]}'
    rules = {f.rule for f in find_facts(page).facts if "49" in f.text}
    assert rules == {"page_doc: zone under confidence 0.5"}
