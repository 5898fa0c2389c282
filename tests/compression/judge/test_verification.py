"""Verdicts for any candidate, a model's as well as our own."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.compression import Outcome, build_ledger, verify

SOURCE = (
    "user: I must not pay more than $500 for the laptop. My order is #W2378156 of May 20, 2024.\n"
    "assistant: The Lenovo LOQ costs $1,299.00 at https://shop.example/loq, delivery takes 5 days. It does not include a charger.\n"
)


def _outcomes(candidate: str) -> dict[str, Outcome]:
    return {v.text: v.outcome for v in verify(build_ledger(SOURCE), SOURCE, candidate).verdicts}


@given(st.lists(st.sampled_from([*SOURCE.split(" "), "\n", "|", "# a|b", "$7", "not", "مرحبا", "😀", "12 km", '{"a": "B1"}']), max_size=60))
@settings(max_examples=40, deadline=None)
def test_a_source_keeps_all_its_own_facts(words: list[str]) -> None:
    """A text judged against itself keeps everything and invents nothing."""
    text = " ".join(words)
    counts = verify(build_ledger(text), text, text).counts
    assert counts["kept"] + counts["equal"] == counts["total"]
    assert counts["invented"] == 0


@pytest.mark.parametrize(
    ("candidate", "text", "outcome"),
    [
        ("order #W2378156 of 2024-05-20", "May 20, 2024", Outcome.EQUAL),
        ("The Lenovo LOQ costs 1299 USD.", "$1,299.00", Outcome.EQUAL),
        ("The Lenovo LOQ costs $1,199.00.", "$1,299.00", Outcome.MUTATED),
        ("The Lenovo LOQ costs $1,299.00.", "$1,299.00", Outcome.KEPT),
        ("Nothing of it.", "#W2378156", Outcome.MISSING),
        ("I may pay more than $500 for the laptop.", "I must not pay more than $500 for the laptop.", Outcome.MUTATED),
        ("See https://other.example/x for it.", "https://other.example/x", Outcome.INVENTED),
        ("The Lenovo does include a charger.", "The Lenovo does include a charger.", Outcome.INVENTED),
        ("Delivery by Rasmus Holt in 5 days.", "Rasmus Holt", Outcome.INVENTED),
    ],
)
def test_what_became_of_a_fact(candidate: str, text: str, outcome: Outcome) -> None:
    """Kept, equal, changed, missing or invented."""
    assert _outcomes(candidate)[text] is outcome


def test_a_value_without_its_subject_is_missing() -> None:
    """A bare number in a sentence about something else does not keep a fact."""
    verdict = next(v for v in verify(build_ledger(SOURCE), SOURCE, "We had 5 days of rain.").verdicts if v.text == "5 days")
    assert verdict.outcome is Outcome.MISSING
    assert "subject" in verdict.reason


def test_a_detail_may_rest_on_a_reference_and_a_critical_fact_may_not(transcript: str) -> None:
    """With a reference the rest of a long result is recoverable; what a person said stays missing."""
    ledger = build_ledger(transcript)
    outcomes = {
        v.text: v.outcome for v in verify(ledger, transcript, "trains to Bergen\nwhole text: t.md", reference="whole text: t.md").verdicts
    }
    assert outcomes["TR33"] is Outcome.RECOVERABLE
    assert outcomes["card_5512"] is Outcome.MISSING
    forged = verify(ledger, transcript, "trains to Bergen\nwhole text: other.md", reference="whole text: t.md")
    assert not forged.of(Outcome.RECOVERABLE)


@pytest.mark.parametrize("between", [" ", "\n"])
def test_values_that_changed_places_are_mutated(between: str) -> None:
    """Both amounts stand, each with the other's subject; in their own order they are kept."""
    source = f"Ada pays $500 for the blue room.{between}Ivo pays $700 for the red room."

    def outcomes(candidate: str) -> list[Outcome]:
        return [v.outcome for v in verify(build_ledger(source), source, candidate).verdicts if v.text in ("$500", "$700")]

    assert outcomes("Ada pays $700 for the blue room. Ivo pays $500 for the red room.") == [Outcome.MUTATED] * 2
    assert outcomes("Ivo: $700, red room.\nAda: $500, blue room.") == [Outcome.KEPT] * 2


@pytest.mark.parametrize(
    "weak", ["maybe deliver", "may deliver", "might deliver", "should deliver", "need not deliver", "must not deliver"]
)
def test_must_does_not_become_maybe(weak: str) -> None:
    """A binding word that weakened or turned is a changed constraint."""
    source = "user: You must deliver the blue chairs to Bergen by Friday."
    verdicts = verify(build_ledger(source), source, f"You {weak} the blue chairs to Bergen by Friday.").verdicts
    assert {v.outcome for v in verdicts} & {Outcome.MUTATED, Outcome.INVENTED}


@pytest.mark.parametrize(
    ("limit", "instead", "outcome"),
    [
        ("I must not eat peanuts, shellfish, or sesame at any party.", "I must not eat peanuts, shellfish at any party.", Outcome.MISSING),
        ("I must not fly with brisair to the coast.", "I must not fly with windair to the coast.", Outcome.MISSING),
        ("You must pay the landlord before sending keys.", "You must pay the tenant before sending keys.", Outcome.MISSING),
        ("The toy must be approved for small adults.", "The toy must be approved for small children.", Outcome.MUTATED),
        ("I need at most 3 bags and at least 2 seats.", "I need at most 2 bags and at least 3 seats.", Outcome.MUTATED),
        ("I must pay the deposit before Friday.", "I must pay. The deposit is blue. Friday it rains.", Outcome.MISSING),
        ("The hotel must have a garden near the beach.", "must have garden, near beach: hotel", Outcome.EQUAL),
    ],
)
def test_a_limit_is_equal_only_with_all_its_words(limit: str, instead: str, outcome: Outcome) -> None:
    """Names, items and numbers of a limit stand in one statement, in their order, or the limit does not stand."""
    source = f"user: {limit}\nassistant: Noted."
    verdict = next(v for v in verify(build_ledger(source), source, f"user: {instead}\nassistant: Noted.").verdicts if v.text == limit)
    assert verdict.outcome is outcome


def test_one_line_does_not_stand_for_several_limits() -> None:
    """Limits that differ in one name each need their own statement."""
    source = "\n".join(f"user: I must not fly with {name} to Rome in the summer." for name in ("brisair", "windair", "skyair"))
    verdicts = verify(build_ledger(source), source, "user: I must not fly with windair to Rome, in the summer.").verdicts
    assert [v.outcome for v in verdicts if v.text.startswith("I must")] == [Outcome.MISSING, Outcome.KEPT, Outcome.MISSING]


@pytest.mark.parametrize(
    ("source", "candidate"),
    [
        ("The town grew to 1.5 million people by 2024.", "The town grew to 1.5 billion people by 2024."),
        ("The fee is $4,200 per month in advance.", "The fee is $4,200 per week in advance."),
        ("The balance is $500 today.", "The balance is -$500 today."),
        ("The cellar has -5 degrees.", "The cellar has 5 degrees."),
        ("Income rose 12 % while costs fell 3 %.", "Income fell 12 % while costs rose 3 %."),
        ("user: Please do not call me. Write.", "user: Please call me. Write."),
        ("The term ends on 03/04 at noon.", "The term ends on 04/03 at noon."),
        ("The term ends on 03/04/2026.", "The term ends on 04/03/2026."),
    ],
)
def test_a_scale_a_sign_and_a_unit_belong_to_the_value(source: str, candidate: str) -> None:
    """What looks alike and says something else is changed or invented; the source itself is neither."""
    ledger = build_ledger(source)
    assert not verify(ledger, source, candidate).facts_preserved
    assert verify(ledger, source, source + "\n").facts_preserved


@pytest.mark.parametrize(
    "line",
    [
        "whole text: The deposit of 5,000 EUR is due.",
        "options: The deposit of 1,800 EUR is refundable.",
        "The rent is 900 EUR. | The deposit of 1,800 EUR is refundable.",
        "earlier The rent is not 900 EUR.",
        'She said "Somebody took 77 cars and confessed".',
    ],
)
def test_no_form_of_line_hides_what_is_invented(line: str) -> None:
    """The lines in which values are listed are grounded as any other, and so is what is quoted."""
    source = "The rent is 900 EUR. The deposit of 1,800 EUR is not refundable."
    assert verify(build_ledger(source), source, f"The rent is 900 EUR.\n{line}").of(Outcome.INVENTED, Outcome.MUTATED)


@pytest.mark.parametrize(
    "line",
    [
        "(3 more rows left out) Rasmus Holt paid 77 EUR.",
        "also seen: pets no",
        "options: the deposit must be paid to Rasmus Holt",
        "also in fees of the flat: deposit 900 EUR; rent 1,800 EUR",
        "earlier deposit 900 EUR; rent 1,800 EUR",
    ],
)
def test_no_list_of_values_hides_what_is_invented(line: str) -> None:
    """A mark at a line's beginning, ours or a forged one, excuses nothing behind it."""
    source = "The rent is 900 EUR. The deposit of 1,800 EUR is due in May. Pets: yes."
    assert verify(build_ledger(source), source, f"The flat costs money.\n{line}").of(Outcome.INVENTED, Outcome.MUTATED)


def test_a_number_and_its_unit_of_one_object_are_one_value():
    """`66.29 EUR` in a table's cell is the object's amount and currency; another currency or amount is invented."""
    source = '{"rates": [{"price": {"type": "single", "amount": 66.29, "currency": "EUR"}}, {"unit": "kg", "weight": 12.5}]}'
    ledger = build_ledger(source)
    assert not verify(ledger, source, "# price[amount,currency]|weight\n66.29 EUR|12.5 kg").of(Outcome.INVENTED)
    for wrong in ("66.29 USD", "66.28 EUR", "12.5 EUR"):
        assert verify(ledger, source, f"# price[amount,currency]\n{wrong}").of(Outcome.INVENTED, Outcome.MUTATED), wrong


def test_a_day_and_a_time_of_one_object_are_one_value():
    """A table writes both in one cell; two of different objects are made up."""
    source = '{"slots": [{"id": "A1", "on": "2026-10-11", "at": "13:00"}, {"id": "A2", "on": "2026-10-14", "at": "09:20"}]}'
    for row, untrue in (("A1|2026-10-11 13:00", 0), ("A1|2026-10-11 16:00", 1)):
        found = verify(build_ledger(source), source, f"# id|slot\n{row}\n").of(Outcome.INVENTED, Outcome.MUTATED)
        assert bool(found) is bool(untrue)


def test_a_no_in_a_row_is_a_no_in_a_list():
    """A list may say of a record what its row says, and not the opposite."""
    source = "# reservation|type|insurance\nKA7I60|one_way|no\nAQLBTL|one_way|yes\nuser: is insurance yes for AQLBTL? and more.\n"
    for said, untrue in (("KA7I60: insurance no", False), ("AQLBTL: insurance no", True)):
        assert bool(verify(build_ledger(source), source, f"also seen: {said}; KA7I60: type one_way").of(Outcome.INVENTED)) is untrue


@pytest.mark.parametrize(
    ("candidate", "is_changed"),
    [
        ("Ann: would like blue one kitchen wall;", False),
        ("Ann: You may slide it open.", True),
        ("Ann: You must slide it open.", False),
    ],
)
def test_shortened_speech_is_no_other_statement(candidate: str, is_changed: bool) -> None:
    """Words left out of one sentence are no change of another; another force is one."""
    source = "Ann: You must slide it open.\nBen: I think I would like to have the blue one for the kitchen wall.\n"
    assert bool(verify(build_ledger(source), source, candidate).of(Outcome.MUTATED, Outcome.INVENTED)) is is_changed


@pytest.mark.parametrize(
    ("candidate", "is_invented"), [("ten Divided by four", False), ("six people came", False), ("ten people came", True)]
)
def test_a_count_is_what_the_source_counts(candidate: str, is_invented: bool) -> None:
    """A number word with what it counts stands in the source in this order, or the source counts otherwise."""
    source = (
        "Six and four is ten. Divided by four is two and a half. Some six nice people came, with ten chairs; nine is divided by three.\n"
        + "We went on and on about it.\n" * 3
    )
    assert bool(verify(build_ledger(source), source, candidate).of(Outcome.INVENTED)) is is_invented


def test_what_stands_between_two_strings_is_no_quotation():
    """Quotation marks of a JSON text that face each other over a comma quote nothing."""
    text = '{"zones": [{"text": "' + "wordy " * 30 + '"}, {"text": "short"}]}'
    assert not [f for f in build_ledger(text).facts if f.text.strip('", {}[]:') == ""]
