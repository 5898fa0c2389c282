"""Sentences that are facts as a whole."""

import pytest

from pandora_dagster.compression import FactKind, Outcome, Rank, build_ledger, verify
from pandora_dagster.compression.facts.fact_statements import statements
from pandora_dagster.contracts.enums import ContentType


def _kinds(text: str) -> list[FactKind]:
    return [s.kind for s in statements(text)]


@pytest.mark.parametrize(
    "sentence",
    [
        "Do not open the valve.",
        "- Don't paint the doors.",
        "Please do not copy this page.",
        "Dogs are forbidden here.",
        "Guests are prohibited from parking.",
        "Only the owner may sign.",
        "You may not park here.",
        "It is not permitted to film.",
        "Drivers are required to stop.",
        "Do not exceed 3 kg.",
        "Price: max 700 EUR",
        "Send it by Monday at the latest.",
        "No travel until March.",
        "No smoking.",
        "Returns within 30 days only.",
        "We refuse to move.",
        "The barn must be sold.",
        "Travellers must have a passport.",
        "The flight should be under 80 euros.",
        "Under €1,500 please, all in.",
        "It may cost up to 500.",
        "A bag of below 23kg is fine.",
        "Deliver it within 14 days.",
        "My budget is 500.",
        "I have a budget of about EUR 500.",
        "500 is our limit.",
        "The deadline has moved to 5 May.",
        "Budget for the trip: 1,200 EUR",
    ],
)
def test_limits_and_prohibitions_bind(sentence: str) -> None:
    """Negated imperatives, modal verbs with `not`, words of duty and bounds are constraints."""
    assert _kinds(sentence) == [FactKind.CONSTRAINT]


@pytest.mark.parametrize(
    "sentence",
    [
        "Don't worry about it.",
        "Do not hesitate to ask.",
        "Don't know what he said.",
        "It may not rain today.",
        "I may not come tomorrow.",
        "I like cats but don't like dogs.",
        "No idea where it is until he calls.",
        "No kidding.",
        "Max was there with 3 friends.",
        "That must have taken a while.",
        "You must feel great.",
        "We sang and danced all night.",
        "I have lost my glasses.",
        "The limit of my patience is near.",
        "I saw 3 shirts and a cap.",
        "Our budget talks went well.",
        "Under the 3 trees we sat.",
        "What was my budget of 2024?",
        "We met within the hour.",
    ],
)
def test_ordinary_talk_binds_nobody(sentence: str) -> None:
    """Set phrases, guesses and reports are no constraints."""
    assert FactKind.CONSTRAINT not in _kinds(sentence)


@pytest.mark.parametrize(
    "line",
    [
        "2025-04-02T08:00:00Z ERROR queue-7 lost its lease",
        "Apr  2 08:00:01 FATAL no memory left",
        "[2025-04-02 08:00:00] CRITICAL disk is full",
        "npm ERR! code ELIFECYCLE",
        "Segmentation fault (core dumped)",
        "Process finished with exit code 137",
        "exited with status 1",
        "KeyError",
        "java.lang.NullPointerException: name",
        "curl: (28) Timed out",
        "sh: make: command not found",
    ],
)
def test_errors_of_programs(line: str) -> None:
    """Log levels, exit codes, names of exceptions and the way programs complain."""
    assert _kinds(line) == [FactKind.ERROR]


@pytest.mark.parametrize("line", ["exit code 0", "2025-04-02T08:00:00Z INFO 0 errors", "The critical error was mine.", "Ada: no such luck"])
def test_no_errors(line: str) -> None:
    """Success and talk about errors."""
    assert FactKind.ERROR not in _kinds(line)


def test_equal_errors_are_one_fact() -> None:
    """A log that repeats an error has one critical fact for it, whatever the times; another error is another fact."""
    log = "\n".join(f"2025-04-02T08:{n // 60:02}:{n % 60:02}Z ERROR worker-{n % 2} lost its lease" for n in range(600))
    errors = [f for f in build_ledger(log).critical if f.kind is FactKind.ERROR]
    assert [f.text for f in errors] == ["ERROR worker-0 lost its lease", "ERROR worker-1 lost its lease"]
    assert log[errors[0].start : errors[0].end] == errors[0].text


def test_a_result_tells_of_its_failure() -> None:
    """The message beside a failed status, and what stands under `error`."""
    text = '{"id": 7, "status": "failed", "message": "no such account"} {"error": "quota used up"} {"error": "none", "status": "failed"}'
    ledger = build_ledger(text, ContentType.TOOL_RESULT)
    assert [f.text for f in ledger.facts if f.kind is FactKind.ERROR] == ["no such account", "quota used up"]
    assert all(f.rank is Rank.CRITICAL for f in ledger.facts if f.kind is FactKind.ERROR)


def test_limits_in_json_strings() -> None:
    """A short string of a result can hold a constraint."""
    text = '{"id": 5, "note": "order 99120 must not leave by sea"}'
    found = next(f for f in build_ledger(text, ContentType.TOOL_RESULT).facts if f.kind is FactKind.CONSTRAINT)
    assert (found.text, text[found.start : found.end]) == ("order 99120 must not leave by sea",) * 2


@pytest.mark.parametrize(
    ("limit", "same", "others"),
    [
        ("I want it under 80 euros.", "Under 80 euros is what I want it.", ("I want it under 90 euros.", "I want it over 80 euros.")),
        ("My budget is 500.", "500 is my budget.", ("My budget is 600.", "My budget is not 500.")),
        ("Send up to 1,500 boxes.", "Send up to 1500 boxes.", ("Send 1,500 boxes.", "Send up to 1,600 boxes.")),
    ],
)
def test_a_limit_by_its_name_or_by_a_bound_is_held(limit: str, same: str, others: tuple[str, ...]) -> None:
    """In other words of the same force it stands; with another number or another bound it does not."""
    source = f"user: {limit}\nassistant: Noted."

    def outcome(instead: str) -> Outcome:
        found = verify(build_ledger(source), source, f"user: {instead}\nassistant: Noted.")
        return next(v.outcome for v in found.verdicts if v.text == limit)

    assert outcome(same) in (Outcome.KEPT, Outcome.EQUAL)
    assert not {outcome(other) for other in others} & {Outcome.KEPT, Outcome.EQUAL}


@pytest.mark.parametrize(
    ("sentence", "binds"),
    [
        ("You must ring before nine, and I prefer mornings.", True),
        ("I prefer mornings but the van must be back by noon.", True),
        ("I would prefer at most 3 stops.", False),
        ("Ideally the door must be red.", False),
    ],
)
def test_a_wish_beside_a_duty_takes_nothing_from_it(sentence: str, binds: bool) -> None:
    assert [s.is_binding for s in statements(sentence)] == [binds]


@pytest.mark.parametrize(
    "said",
    (
        "The board decided to close the Linz office.",
        "The members voted to repair the gearbox.",
        "The council resolved that the hall is sold.",
        "Data may not be shared with third parties.",
        "The samples may not be taken out of the room.",
    ),
)
def test_who_decides_and_what_may_not_be_done_binds(said: str) -> None:
    """Decisions of bodies and prohibitions in the passive are critical in a document."""
    assert [(f.text, f.rank) for f in build_ledger(said).critical] == [(said, Rank.CRITICAL)]


@pytest.mark.parametrize("said", ("It may not be needed at all.", "They may not be interested.", "It may not be the best choice."))
def test_what_may_not_be_so_is_no_prohibition(said: str) -> None:
    """A guess binds nobody."""
    assert not build_ledger(said).critical
