"""Numbers, dates, sentences and words of force of German, French, Spanish and Italian."""

import pytest

from pandora_dagster.compression.facts.canonical_values import canonical
from pandora_dagster.compression.facts.fact_statements import statements
from pandora_dagster.compression.facts.fact_types import FactKind, Outcome, Rank
from pandora_dagster.compression.facts.value_finder import find_values
from pandora_dagster.compression.judge.ledger import build_ledger
from pandora_dagster.compression.judge.verification import verify
from pandora_dagster.compression.words.word_classes import sentences
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.language.sentences import mask_inner_points


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("Zinssatz 3,42 % fest", FactKind.PERCENTAGE, "3,42 %"),
        ("dann 0,25 % im Monat", FactKind.PERCENTAGE, "0,25 %"),
        ("eine Rate von 1.738,92 Euro dazu", FactKind.MONEY, "1.738,92 Euro"),
        ("das kostet 11.400 Euro.", FactKind.MONEY, "11.400 Euro"),
        ("le prix est 12 500 € net", FactKind.MONEY, "12 500 €"),
        ("bis zum 31. Oktober gilt", FactKind.DATE, "31. Oktober"),
        ("avant le 1er mai 2026, sinon", FactKind.DATE, "1er mai 2026"),
        ("antes del 3 de abril de 2026", FactKind.DATE, "3 de abril de 2026"),
        ("entro il 2 maggio", FactKind.DATE, "2 maggio"),
        ("ab dem März 2027", FactKind.DATE, "März 2027"),
        ("Einigung am 15.10.: halber Keller", FactKind.DATE, "15.10."),
        ("am 31.10.2026 endet", FactKind.DATE, "31.10.2026"),
        ("Nutzlast 3,5 kg je Tag", FactKind.QUANTITY, "3,5 kg je Tag"),
        ("binnen 3 Monaten", FactKind.QUANTITY, "3 Monaten"),
        ("it costs $15.10. Then", FactKind.MONEY, "$15.10"),
        ("a total of 12.10. Then", FactKind.NUMBER, "12.10"),
        ("a total of 1,299 and more", FactKind.NUMBER, "1,299"),
    ],
)
def test_values_are_found_whole(text: str, kind: FactKind, value: str) -> None:
    found = [(v.kind, v.text) for v in find_values(text) if v.kind is not FactKind.NAME]
    expected = value.removesuffix(" je Tag")
    assert found == [(kind, expected)]


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (FactKind.PERCENTAGE, "3,42 %", "3.42%"),
        (FactKind.MONEY, "1.738,92 Euro", "€1,738.92"),
        (FactKind.MONEY, "1.299,00 EUR", "1,299 EUR"),
        (FactKind.MONEY, "12 500 €", "12500 EUR"),
        (FactKind.DATE, "31. Oktober", "October 31"),
        (FactKind.DATE, "31.10.2026", "2026-10-31"),
        (FactKind.DATE, "1er mai 2026", "1 May 2026"),
        (FactKind.DATE, "3 de abril", "3 aprile"),
        (FactKind.NUMBER, "1.234.567", "1,234,567"),
    ],
)
def test_equal_across_writings(kind: FactKind, one: str, other: str) -> None:
    assert canonical(kind, one) == canonical(kind, other) != ""


@pytest.mark.parametrize("other", ["11.4 EUR", "11400 EUR", "11,400 EUR"])
def test_what_a_point_means_is_not_guessed(other: str) -> None:
    assert canonical(FactKind.MONEY, "11.400 EUR") != canonical(FactKind.MONEY, other)


@pytest.mark.parametrize(
    "sentence",
    [
        "Das Angebot gilt nur bis zum 31. Oktober und danach nicht mehr.",
        "Entwurf vom 2. Mai mit Keller.",
        "Frau Dr. Aigner und J. Kowalski kommen um 10:30.",
        "Kosten, z. B. Notar, inkl. Steuer, trägt Nr. 5.",
        "Die Einigung am 15.10. Freitag gilt.",
        "Bring fruit, e.g. apples or pears.",
    ],
)
def test_points_inside_end_no_sentence(sentence: str) -> None:
    assert sentences(f"{sentence} Next one stands here.") == [sentence, "Next one stands here."]
    assert len(mask_inner_points(sentence)) == len(sentence)


def test_english_ends_stay() -> None:
    text = "He came at 5 p.m. She left. It costs 15. April was cold. They chose plan B. Then they slept."
    assert len(sentences(text)) >= 5


@pytest.mark.parametrize(
    "limit",
    [
        "Ich darf auf keinen Fall mehr als 900 Euro zahlen.",
        "Dort darf nichts gebaut werden.",
        "Es muss bis zum 31. Oktober fertig sein.",
        "Bezahlen Sie höchstens 450 Euro dafür.",
        "Bitte auf keinen Fall nach 20 Uhr anrufen.",
        "Le paiement doit arriver au plus tard le 3 mai.",
        "Ne touchez jamais au réservoir.",
        "No puede costar más de 300 euros.",
        "Pague como máximo 300 euros por el viaje.",
        "Il conto non deve superare 200 euro.",
    ],
)
def test_a_persons_limit_is_critical(limit: str) -> None:
    facts = build_ledger(f"user: {limit}\nassistant: ok", ContentType.GENERIC).facts
    assert any(f.kind is FactKind.CONSTRAINT and f.text == limit and f.rank is Rank.CRITICAL for f in facts)


def test_a_limit_turned_around_is_found() -> None:
    source = "Das Angebot der Bank gilt nur bis zum 31. Oktober.\nDie Rate beträgt 1.738,92 Euro."
    judged = verify(build_ledger(source), source, source.replace("nur bis", "nicht nur bis"))
    assert judged.of(Outcome.MUTATED, Outcome.INVENTED)
    again = "Der Keller ist im Preis enthalten.\nDie Rate beträgt 1.738,92 Euro."
    assert verify(build_ledger(again), again, again.replace("enthalten", "nicht enthalten")).of(Outcome.INVENTED)


def test_no_sentence_of_a_limit_is_torn() -> None:
    text = "Das Angebot gilt nur bis zum 31. Oktober für alle."
    assert [s.text for s in statements(text)] == [text]


@pytest.mark.parametrize("text", ("Mr. Voss (tel. +44 20 7946 0991) called.", "Ms. Kerr (no. 0161 496 0733) too.", "see nos. 4 and 5"))
def test_a_number_stays_with_the_abbreviation_before_it(text: str) -> None:
    """`tel.` and `no.` before a number end no sentence."""
    assert len(sentences(text)) == 1
