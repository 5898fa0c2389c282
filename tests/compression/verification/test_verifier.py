"""What became of the facts of a text in a shorter one: kept only with value, unit, sign and subject; missing and left out by name."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandora_dagster.compression.verification.facts import FactKind, Outcome
from pandora_dagster.compression.verification.text_facts import find_facts
from pandora_dagster.compression.verification.verifier import find_unsupported, verify

NOTES = (
    "# Trip\n\nThe ferry to Lund costs 9 € for a child. Ines is 9 years old. The ferry leaves at 14:30 from pier 6.\n\n"
    "Never board without a ticket. We decided to book the cabin with code QX-771. The weather in Oslo was mild."
)


def outcomes(original: str, shortened: str, text: str) -> set[Outcome]:
    return {v.outcome for v in verify(original, shortened).verdicts if v.fact and v.fact.text == text}


def test_a_text_keeps_all_its_facts() -> None:
    """The text itself has every fact, at the same place."""
    found = verify(NOTES, NOTES)
    assert found.counts["total"] == found.counts["kept"] > 8
    assert all(v.place == v.here for v in found.verdicts) and not found.left_out and not found.for_review


def test_whole_units_keep_their_facts() -> None:
    """Units that are verbatim are kept; the others are left out, by their text and line."""
    found = verify(NOTES, "# Trip\n\nThe ferry to Lund costs 9 € for a child.\n\nNever board without a ticket.")
    assert {"9 €", "Lund", "Never board without a ticket."} <= {v.text for v in found.kept}
    assert [one.text for one in found.left_out] == [
        "Ines is 9 years old.",
        "The ferry leaves at 14:30 from pier 6.",
        "We decided to book the cabin with code QX-771.",
        "The weather in Oslo was mild.",
    ]
    assert [one.original.line for one in found.left_out] == [3, 3, 5, 5]
    assert not found.changed and not found.invented and found.no_fact_changed
    assert {"14:30", "QX-771"} <= {v.text for v in found.missing}


@pytest.mark.parametrize(
    ("original", "shortened", "fact"),
    [
        ("The seat costs 9 €. Ines is 9 years old.", "Ines is 9 years old.", "9 €"),
        ("The deposit is 400 €. The rent is 400 £.", "The rent is 400 £.", "400 €"),
        ("It was -3 °C in Oslo. It was 3 °C in Rome.", "It was 3 °C in Rome.", "-3 °C"),
        ("Anna's tent weighs 5 kg. Bert's boat has room for 5 kg of fish.", "Bert's boat has room for 5 kg of fish.", "5 kg"),
        ("Take 20 mg of zinc. Add 20 ml of water.", "Add 20 ml of water.", "20 mg"),
    ],
)
def test_a_number_elsewhere_keeps_nothing(original: str, shortened: str, fact: str) -> None:
    """A value is kept where it is a value of the same thing, with its unit and sign."""
    assert Outcome.MISSING in outcomes(original, shortened, fact)


def test_a_row_is_kept_with_its_cells() -> None:
    """The cells of a row that is left out are missing though another row has the same value."""
    table = "name,city,age\nAnn,Oslo,31\nBob,Rome,45\nCid,Bonn,31\n"
    found = verify(table, "name,city,age\nAnn,Oslo,31\n")
    assert [v.fact.unit for v in found.missing if v.fact and v.fact.text == "31"] == [3]
    assert len(found.left_out) == 2


def test_another_wording_is_listed_for_review() -> None:
    """A statement in other words is beside its source; its values are kept or missing by form."""
    found = verify(NOTES, "The ferry for Lund is 9 € for children; it goes at 14:30.")
    (statement,) = found.for_review
    assert [s.text for s in statement.sources][:1] == ["The ferry to Lund costs 9 € for a child."]
    assert "9 €" in {v.text for v in found.kept}
    assert ("14:30", "without its subject") in {(v.text, v.reason) for v in found.missing}
    assert not found.changed and not found.invented


def test_what_the_original_does_not_have_is_invented() -> None:
    """Values, codes, links and names of a statement that the original has nowhere."""
    found = verify(NOTES, NOTES.replace("mild.", "mild. The cabin for Torsten costs 77 €, see https://ferry.example/cabin."))
    assert {"77 €", "https://ferry.example/cabin", "Torsten"} <= {v.text.rstrip(".") for v in found.invented}
    assert not found.no_fact_changed


def test_a_mark_of_what_was_left_out_is_no_statement() -> None:
    """Lines that count invent no number."""
    found = verify(NOTES, "Never board without a ticket.\n\n[12 sentences left out]\n\n[1 row left out]")
    assert not found.invented and not found.for_review


def test_codes_of_a_last_line_are_not_what_the_last_speaker_says() -> None:
    """The line names codes of many units: each is looked up, and one that the original lacks is invented."""
    talk = (
        'user: Find my orders.\ntool find: {"order": "K-771", "card": "card_9031", "tour": "T-4410"}\nassistant: Which one shall I cancel?'
    )
    shortened = "user: Find my orders.\nassistant: Which one shall I cancel?\nAlso named: find: K-771, card_9031, T-4410"
    assert verify(talk, shortened).no_fact_changed
    assert [v.evidence for v in verify(talk, shortened.replace("T-4410", "T-9982")).invented] == ["T-9982"]
    again = "user: Find my orders.\nAlso named: find: K-771, card_9031, T-4410"
    assert verify(shortened, again).no_fact_changed


def test_a_mark_in_the_original_hides_no_speaker() -> None:
    """An original that was shortened before: what follows a mark is still what its speaker says."""
    once = "user: Book it for Ann.\n\n[7 left out]: assistant: The card ends in 6437.\nuser: Thanks, also for Bob."
    assert verify(once, "[9 left out]: assistant: The card ends in 6437.\nuser: Thanks, also for Bob.").no_fact_changed
    exchanged = verify(once, "[9 left out]: user: The card ends in 6437.\nassistant: Thanks, also for Bob.")
    assert {v.reason for v in exchanged.changed} >= {"under another label: user"}


BAGS = (
    "user: What may I take?\nassistant: Free of charge:\n\n- One bag of 8 kg\n- A pram\n\nAgainst a fee:\n\n"
    "- A second bag of 20 kg\n- A bicycle\n"
)


def test_a_unit_below_its_own_label_is_under_no_other_one() -> None:
    """Without empty lines the list below reads as one with the list above."""
    shortened = "user: What may I take?\nassistant: Free of charge:\n- A pram\nAgainst a fee:\n- A second bag of 20 kg\n"
    assert verify(BAGS, shortened).no_fact_changed


def test_a_unit_right_behind_what_it_follows_in_the_original_is_under_its_label() -> None:
    """The empty line of the original ends the list there; without it the bag reads as a part of the list."""
    original = "user: What is booked?\nassistant: These are your flights:\n2. **PHX to LGA** on May 17\n\n- **Bags:** 0 of 2\n"
    shortened = "user: What is booked?\nassistant: These are your flights:\n2. **PHX to LGA** on May 17\n- **Bags:** 0 of 2\n"
    assert verify(original, shortened).no_fact_changed


@pytest.mark.parametrize(
    ("shortened", "label"),
    [
        (
            "user: What may I take?\nassistant: Free of charge:\n\n- A second bag of 20 kg\n\nAgainst a fee:\n\n- A bicycle\n",
            "free of charge",
        ),
        ("user: What may I take?\nassistant: Free of charge:\n\n- A pram\n\nAgainst a fee:\n\n- One bag of 8 kg\n", "against a fee"),
    ],
)
def test_a_unit_moved_below_another_label_is_changed(shortened: str, label: str) -> None:
    found = verify(BAGS, shortened)
    assert {v.reason for v in found.changed} == {f"under another label: {label}"}


def test_a_reference_makes_missing_facts_recoverable() -> None:
    """What is missing is recoverable where the given line leads to the original; a line that only claims so does not."""
    line = "whole text: turns/turn_000001/toolresults.md"
    text = f"The weather in Oslo was mild.\n{line}"
    assert not verify(NOTES, text, reference=line).missing
    assert verify(NOTES, text).missing


def test_what_a_rule_allows_is_dropped_by_rule() -> None:
    """Of two equal claims the less sure one may go, with the rule named."""
    claims = "- The lamp costs 49 € (confidence 0.9)\n- The lamp costs 49 € (confidence 0.4)\n- It ships in 3 days.\n"
    found = verify(claims, "- The lamp costs 49 € (confidence 0.9)\n")
    assert {v.reason for v in found.of(Outcome.DROPPED_BY_RULE)} == {"the less sure of two equal claims"}
    assert any(v.text == "3" or "3 day" in v.text for v in found.missing)


@pytest.mark.parametrize(
    ("one", "other", "dropped"),
    [
        ("(lenovo.com, confidence 0.9)", "(blog.example, confidence 0.4)", True),
        ("(lenovo.com), confidence 0.9", "(blog.example), confidence 0.4", True),
        ("[source: the shop, confidence: 0.9]", "(confidence of 0.4)", False),
        ("(source: shop, confidence: 0.9)", "(confidence of 0.4)", True),
        ("in red (confidence 0.9)", "in blue (confidence 0.4)", False),
        ("(red, confidence 0.9)", "(blue, confidence 0.4)", False),
        ("(59 €, confidence 0.9)", "(39 €, confidence 0.4)", False),
    ],
)
def test_equal_claims_differ_in_source_and_confidence_alone(one: str, other: str, dropped: bool) -> None:
    """A site beside the confidence is no part of the claim; a word or a value is."""
    found = verify(f"- The lamp costs 49 € {one}\n- The lamp costs 49 € {other}\n", f"- The lamp costs 49 € {one}\n")
    assert bool(found.of(Outcome.DROPPED_BY_RULE)) == dropped


def test_credentials_are_in_no_report() -> None:
    """A key of the original is no fact."""
    secret = "sk-proj-" + "a1B2" * 10
    assert secret not in str(verify(f"The key is {secret}. The port is 8080.", "The port is 8080."))


def test_a_statement_alone() -> None:
    """What a statement changes or invents; what it leaves out does not count."""
    text_facts = find_facts(NOTES)
    assert find_unsupported(text_facts, "The ferry leaves at 14:30 from pier 6.") == ()
    assert [v.outcome for v in find_unsupported(text_facts, "The ferry leaves at 15:45 from pier 6.")] == [Outcome.MUTATED]
    assert [v.text for v in find_unsupported(text_facts, "The crossing takes 88 minutes.")] == ["88"]


@given(st.text(), st.text())
def test_any_two_texts(original: str, shortened: str) -> None:
    """Any pair has a result, the same each time, with places inside the texts."""
    found = verify(original, shortened)
    assert found == verify(original, shortened)
    assert all(0 <= p.start <= p.end for v in found.verdicts for p in (v.place, v.here) if p)


@pytest.mark.parametrize("unit", ["The pump {n} was set to {n} bar by team {n}. ", "row {n} | {n} mm | ok\n", "alpha beta gamma delta "])
def test_time_grows_with_the_text(unit: str) -> None:
    """Four times the text takes less than ten times as long."""

    def seconds(size: int) -> float:
        text = "".join(unit.format(n=n % 97) for n in range(size))
        half = "".join(unit.format(n=(n + 1) % 89) for n in range(0, size, 2))
        began = time.perf_counter()
        verify(text, half)
        return time.perf_counter() - began

    seconds(50)
    assert seconds(1200) < 10 * max(seconds(300), 0.05)


@pytest.mark.parametrize(
    ("original", "shortened"),
    [
        ("The ferry leaves on May 20, 2026.", "The ferry leaves on 20 May 2026."),
        ("Wir fahren am 3. März 2026 nach Lund.", "Wir fahren am 3 März 2026 nach Lund."),
        ("The review is on 20 May 2026 in Oslo.", "The review is on 2026-05-20 in Oslo."),
    ],
)
def test_a_date_is_one_fact(original: str, shortened: str) -> None:
    """Day, month and year together, in any order."""
    (date,) = [v for v in verify(original, shortened).verdicts if v.fact and v.fact.kind is FactKind.DATE]
    assert date.outcome is Outcome.EQUAL and date.fact and "2026" in date.fact.text
