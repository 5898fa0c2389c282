"""Changes by hand in one statement, in several languages: named by form, or listed for review where only words differ."""

import pytest

from pandora_dagster.compression.verification.verifier import verify

TALK = "Ann: I will bring the tent.\n\nBob: I can't come on Friday.\n\nAnn: That is a pity.\n\nBob: Maybe on Saturday.\n"
LIMITS = "users:\n  alice:\n    limit: 10\n  bob:\n    limit: 20\n"
DIFF = "@@ -1,3 +1,3 @@\n def load():\n-    retries = 3\n+    retries = 5\n     return\n"
PEOPLE = "name,city,age\nAnn,Oslo,31\nBob,Rome,45\nCid,Bonn,52\n"

NAMED = [
    ("The seat costs 9 € in the front row.", "The seat costs 9 £ in the front row."),
    ("The room must stay at 20 °C overnight.", "The room must stay at 20 °F overnight."),
    ("Positive for hepatitis A, but my hepatitis B test was negative.", "Positive for hepatitis, but my hepatitis B test was negative."),
    ("Blood pressure was 140/90 at noon and 120/80 at night.", "Blood pressure was 120/80 at noon and 140/90 at night."),
    (LIMITS, LIMITS.replace("10", "x").replace("20", "10").replace("x", "20")),
    (DIFF, DIFF.replace("-  ", "x  ").replace("+  ", "-  ").replace("x  ", "+  ")),
    (TALK, TALK.replace("Ann: I will", "Bob: I will").replace("Bob: I can't", "Ann: I can't")),
    ("Take 20 mg of the drug twice a day.", "Take 20 ml of the drug twice a day."),
    ("The hut is 12 km from the station.", "The hut is 12 miles from the station."),
    ("The bus leaves at 3 pm from gate 4.", "The bus leaves at 3 am from gate 4."),
    (PEOPLE, PEOPLE.replace("Oslo", "x").replace("Rome", "Oslo").replace("x", "Rome")),
    ("Der Server darf nicht neu gestartet werden.", "Der Server darf neu gestartet werden."),
    ("Il ne faut pas ouvrir la vanne avant midi.", "Il faut ouvrir la vanne avant midi."),
    ("Die Miete beträgt 1.250,50 € im Monat.", "Die Miete beträgt 1.520,50 € im Monat."),
    ("The meeting is on March 3, 2026 in Bonn.", "The meeting is on March 8, 2026 in Bonn."),
    ("Send it to ops@example.com before noon.", "Send it to sales@example.com before noon."),
    ("See https://example.com/a/12 for the form.", "See https://example.com/a/21 for the form."),
    ("Order GW-3 was shipped on Monday.", "Order GW-8 was shipped on Monday."),
    ("In May, Anna pays the rent and Karl pays the power.", "In May, Karl pays the rent and Anna pays the power."),
    ("The pump must be checked every week by staff.", "The pump may be checked every week by staff."),
    ("It was -3 °C at the summit yesterday.", "It was 3 °C at the summit yesterday."),
    ("Only Maria has the key to the cellar.", "Maria has the key to the cellar."),
    ("El precio del billete es 45 € por persona.", "El precio del billete es 54 € por persona."),
    ("Il treno parte alle 14:30 dal binario 2.", "Il treno parte alle 14:50 dal binario 2."),
    ("The deposit is $697.00 and the fee is $30.", "The deposit is $30 and the fee is $697.00."),
    ("Never restart gateway GW-3 while a backup runs.", "Restart gateway GW-3 while a backup runs."),
    ("De vergadering mag niet langer duren dan 2 uur.", "De vergadering mag langer duren dan 2 uur."),
    ("The dose is now thirty drops, not sixty, in water.", "The dose is now sixty drops, not thirty, in water."),
    ("Herr Adam bestellt die Leiter; Frau Berg meldet den Schaden.", "Frau Berg bestellt die Leiter; Herr Adam meldet den Schaden."),
]
REVIEWED = [
    ("Turn left at the second bridge after the mill.", "Turn right at the second bridge after the mill.", "left -> right"),
    ("Sales increased by 12 % in the third quarter.", "Sales decreased by 12 % in the third quarter.", "increased -> decreased"),
    ("You can cancel the plan before Friday.", "You can cancel the plan after Friday.", "before -> after"),
    ("Der Vorstand hat lange beraten.\n\nDas wird vertagt.", "Der Vorstand hat lange beraten.\n\nDas wird beschlossen.", "vertagt -> "),
    ("The tank holds twelve litres of water.", "The tank holds twenty litres of water.", "twelve -> twenty"),
]


@pytest.mark.parametrize(("original", "changed"), NAMED)
def test_a_changed_form_is_named(original: str, changed: str) -> None:
    """Value, unit, sign, currency, letter, name, code, speaker, negation, force, key, order."""
    found = verify(original, changed)
    assert found.changed or found.invented
    assert not found.no_fact_changed


@pytest.mark.parametrize(("original", "changed", "difference"), REVIEWED)
def test_other_words_are_listed_for_review(original: str, changed: str, difference: str) -> None:
    """Whether they turn the meaning is not judged: the words that differ are named beside the source."""
    found = verify(original, changed)
    assert any(difference in text for one in found.for_review for text in one.differences)
    assert [source.text for one in found.for_review for source in one.sources] == [original.split("\n\n")[-1]]


def test_a_statement_in_another_order_names_its_own_words() -> None:
    """What no source of it says, and a value that the original has of something else."""
    talk = "The repair of the lift costs 800 €, the board said.\n\nThe garden party in May will cost about 350 €."
    found = verify(talk, "They said that in May the board will pay for the lift and its repair: 350 €.")
    (statement,) = found.for_review
    assert any(text.endswith("not in its sources") and "pay" in text for text in statement.differences)
    assert "(nothing) -> 350 €: of something else in the original" in statement.differences


@pytest.mark.parametrize(
    ("original", "shortened"),
    [
        ("The ferry, which was late, costs 9 € for a child.", "The ferry costs 9 € for a child."),
        ("We met in Oslo on Monday and talked about the new roof for an hour.", "We met in Oslo on Monday."),
        ("The fee is 1,250.00 $ a year.", "The fee is 1250 $ a year."),
        ("Not the blue pump in the cellar but the red one has to be replaced by May.", "The red one has to be replaced by May."),
        ("Do not feed the fish, neither by day nor by night, it says.", "You must not feed the fish, neither by day nor by night."),
        ("Subir el recibo con la fecha; debe llegar en 30 días.", "El recibo debe subirse y llegar con la fecha en 30 días."),
        ("If the count is under 20, call the nurse on duty.", "If the count is under 20 tomorrow, call the nurse on duty."),
        ("- Bring a tent.\n- Bring 2 lamps.\n", "* Bring a tent.\n* Bring 2 lamps.\n"),
    ],
)
def test_a_shorter_statement_is_no_change(original: str, shortened: str) -> None:
    """Clauses may be left out, and numbers, lists and quotes be written in another way."""
    found = verify(original, shortened)
    assert not found.changed and not found.invented
