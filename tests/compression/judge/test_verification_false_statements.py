"""Lies that leave every value of the source standing, or say it in words: found out. Honest rewordings of the same stay."""

import pytest

from pandora_dagster.compression import Outcome, build_ledger, verify

_WRONG = (Outcome.MUTATED, Outcome.INVENTED)

TICKET = "user: Close ticket KX-4411 and reopen ticket KX-9027.\nassistant: Which one first?"
WIRE = "Move 70 CHF from wallet CH5511 to wallet CH8822 on Friday."
MAIL = "user: Add lee@farm.example to the list and remove kim@farm.example from it.\nassistant: Done as asked."
BOATS = 'tool: [{"boat": "Selma", "berths": 4, "fee": 260}, {"boat": "Tarn", "berths": 7, "fee": 410}]\nassistant: Two boats are free.'
FARM = "| field | sheep | goats |\n|---|---|---|\n| Uphill | 61 | 12 |\n| Lowland | 84 | 35 |\n"
MILLS = "The Ostra mill grinds 640 sacks a week, and the Velm mill grinds 915 sacks a week."
CLINIC = (
    "The ward was shut for six days after a flood in the cellar. Four of the seven nurses from Turku did not come back. "
    "The waiting time rose from 20 to 35 minutes. Visits last between 15 and 40 minutes. "
    "More than a third of the beds are empty. This is the second audit of the ward. "
    "Patients should return the forms before the ninth of each month. Doctor Ilse Marr leads the ward and Pavel Dorn the laboratory. "
    '"The new wing will open without delay," said Ilse Marr. The pharmacy moved to the Linden building in 2021.'
)
TALK = (
    "Nadia: I repaired the old bicycle yesterday and rode it to the lake.\nOrin: My sister planted forty tulips behind the house.\n"
    "Nadia: I will bring my camera to the picnic.\nOrin: I forgot the blankets in the car again."
)


@pytest.mark.parametrize(
    ("source", "lie"),
    [
        (TICKET, "user: Close ticket KX-9027 and reopen ticket KX-4411."),
        (WIRE, "Move 70 CHF from wallet CH8822 to wallet CH5511 on Friday."),
        (MAIL, "user: Add kim@farm.example to the list and remove lee@farm.example from it."),
        (BOATS, 'tool: [{"boat": "Selma", "berths": 4, "fee": 410}, {"boat": "Tarn", "berths": 7, "fee": 260}]'),
        (BOATS, "| boat | fee |\n|---|---|\n| Selma | 410 |\n| Tarn | 260 |"),
        (FARM, "| field | sheep | goats |\n|---|---|---|\n| Uphill | 84 | 12 |\n| Lowland | 61 | 35 |"),
        (FARM, "| field | sheep | goats |\n|---|---|---|\n| Uphill | 12 | 61 |\n| Lowland | 35 | 84 |"),
        (FARM, "| field | goats | sheep |\n|---|---|---|\n| Uphill | 61 | 12 |\n| Lowland | 84 | 35 |"),
        (FARM, "Lowland has 61 sheep."),
        (MILLS, "Only the Ostra mill grinds 915 sacks a week."),
        (CLINIC, "The ward was shut for eight days after a flood in the cellar."),
        (CLINIC, "The ward was shut for six weeks after a flood in the cellar."),
        (CLINIC, "Five of the seven nurses from Turku did not come back."),
        (CLINIC, "The waiting time rose from 35 to 20 minutes."),
        (CLINIC, "Visits last between 20 and 40 minutes."),
        (CLINIC, "Less than a third of the beds are empty."),
        (CLINIC, "More than half of the beds are empty."),
        (CLINIC, "This is the fourth audit of the ward."),
        (CLINIC, "Patients must return the forms before the ninth of each month."),
        (CLINIC, "Patients may return the forms before the ninth of each month."),
        (CLINIC, "Patients should return the forms after the ninth of each month."),
        (CLINIC, "Doctor Ilse Dorn leads the ward."),
        (CLINIC, '"The new wing will open without delay," said Pavel Dorn.'),
        (CLINIC, "The pharmacy moved to the Linden building in 2012."),
        (TALK, "Orin: I repaired the old bicycle yesterday and rode it to the lake."),
        (TALK, "Nadia: I forgot the blankets in the car again."),
        (TALK, "Wanda: I repaired the old bicycle yesterday and rode it to the lake."),
        (TALK, "Nadia: I repaired the old bicycle last week and rode it to the lake."),
    ],
)
def test_a_lie_with_true_values_is_found_out(source: str, lie: str) -> None:
    """Exchanged, moved, counted otherwise, bound otherwise, said by another."""
    assert verify(build_ledger(source), source, lie).of(*_WRONG)


@pytest.mark.parametrize(
    ("source", "honest"),
    [
        (TICKET, "user: Reopen ticket KX-9027 and close ticket KX-4411."),
        (WIRE, "On Friday move 70 CHF to wallet CH8822 from wallet CH5511."),
        (MAIL, "user: Remove kim@farm.example and add lee@farm.example."),
        (BOATS, "| boat | fee |\n|---|---|\n| Tarn | 410 |\n| Selma | 260 |"),
        (BOATS, 'tool: [{"fee": 410, "boat": "Tarn"}]'),
        (FARM, "| field | goats | sheep |\n|---|---|---|\n| Uphill | 12 | 61 |\n| Lowland | 35 | 84 |"),
        (FARM, "Lowland has 84 sheep and Uphill 61."),
        (MILLS, "Velm grinds 915 sacks a week, Ostra 640."),
        (CLINIC, "After a cellar flood the ward was shut for 6 days."),
        (CLINIC, "Of seven nurses from Turku, four did not come back."),
        (CLINIC, "The waiting time rose to 35 minutes from 20."),
        (CLINIC, "Visits: 15-40 minutes."),
        (CLINIC, "Over a third of the beds are empty."),
        (CLINIC, "Patients ought to return the forms before the 9th of each month."),
        (CLINIC, "Ilse Marr leads the ward, Dorn the laboratory."),
        (CLINIC, "The new wing will open without delay, according to Ilse Marr."),
        (TALK, "Nadia repaired the old bicycle yesterday."),
        (
            TALK,
            "Nadia: repaired old bicycle, rode it to lake. Will bring camera to picnic.\nOrin: sister planted 40 tulips; forgot blankets.",
        ),
        ("Sales of the third quarter of 2025 grew.", "In Q3 2025 sales grew."),
        ("The loan of the boat lasts 14 days.", "The loan of the boat lasts two weeks."),
    ],
)
def test_an_honest_rewording_stays(source: str, honest: str) -> None:
    """Another order, another form, figures for words."""
    assert not [(v.text, v.reason) for v in verify(build_ledger(source), source, honest).of(*_WRONG)]


LIMIT = "user: Never lend the van to Bruno Falk.\nassistant: I will remember that."
FAULT = "The pump reported:\nERROR: valve 7 stuck open\nAll else ran well."


@pytest.mark.parametrize(
    ("source", "denied"),
    [
        (LIMIT, "user: Disregard what I wrote: Never lend the van to Bruno Falk."),
        (LIMIT, 'It is a myth that "Never lend the van to Bruno Falk."'),
        (LIMIT, "user: Never lend the van to Bruno Falk. That does not hold any more."),
        (LIMIT, "user: please ignore this: never lend the van to Bruno Falk."),
        (FAULT, "Fixed on Sunday:\nERROR: valve 7 stuck open"),
    ],
)
def test_a_sentence_that_is_taken_back_is_not_kept(source: str, denied: str) -> None:
    """Word for word, in a frame that the source does not have."""
    assert not verify(build_ledger(source), source, denied).facts_preserved


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        (LIMIT, "The user said: Never lend the van to Bruno Falk."),
        (LIMIT, "Limits:\nuser: Never lend the van to Bruno Falk.\nassistant: I will remember that."),
        (FAULT, "The pump reported:\nERROR: valve 7 stuck open"),
        ("user: Forget what I said before: you must not sell the barn.", "user: Forget what I said before: you must not sell the barn. OK"),
    ],
)
def test_a_quoted_sentence_is_kept(source: str, kept: str) -> None:
    """In words that take nothing back, or in those of the source."""
    assert verify(build_ledger(source), source, kept).facts_preserved
