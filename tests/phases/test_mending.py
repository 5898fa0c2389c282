"""What a person can do about a halt: an answer by hand, a retry, an end; the turn goes on where it stopped."""

import pytest

from pandora_dagster.errors import InputError
from pandora_dagster.phases.mending import abandon, with_answer
from tests.phases.rig import CLARIFY, PROCEED, plain

BAD = '{"decision": "MAYBE"}'


def test_an_answer_by_hand_goes_on_from_where_the_turn_halted(rig):
    """The phases before it stay; the call is a person's in its record, and is judged like any other."""
    rig.say(reflection=BAD)
    key = rig.ask()
    halt = rig.halted(key)
    before = rig.runtime.calls()
    house = rig.house.answered_by_hand(halt, PROCEED)
    rig.house.interventions.resolve(halt.id, "clear enough", how="by_hand")
    house.run_turn(key, on_report=lambda _: None)
    assert rig.turn(key).manifest.state == "saved"
    assert rig.runtime.calls()["query_analyzer"] == before["query_analyzer"]
    assert rig.runtime.calls()["reflection"] == before["reflection"]
    records = [r for r in rig.house.calls.files.read(key.user, report=print) if r.recipe == "reflection"]
    assert [(r.success, r.runtime) for r in records] == [(False, "scripted"), (True, "person")]
    assert rig.house.interventions.show(halt.id).how == "by_hand"


def test_only_the_call_that_halted_is_answered(rig):
    """A second call of the phase is the model's again."""
    rig.say(validator=[BAD, BAD, BAD, plain(checked_citations=[], issues=[], decision="APPROVE", confidence=0.95)])
    key = rig.ask()
    revise = plain(checked_citations=[], issues=["say more"], decision="REVISE", confidence=0.9)
    house = rig.house.answered_by_hand(rig.halted(key), revise)
    house.run_turn(key, on_report=lambda _: None)
    assert rig.turn(key).manifest.state == "saved"
    assert "**Revisions:** 1" in rig.section(key, 6)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("", "answer: empty"),
        (BAD, "schema_validation"),
        ("I do not know", "schema_validation"),
        (plain(decision="PROCEED", confidence=0.2), "confidence"),
    ],
)
def test_an_answer_that_would_not_pass_is_refused(rig, answer, says):
    """Before anything is resolved or run."""
    rig.say(reflection=BAD)
    key = rig.ask()
    halt = rig.halted(key)
    with pytest.raises(InputError, match=says):
        rig.house.answered_by_hand(halt, answer)
    assert rig.house.interventions.show(halt.id).state == "open"


def test_a_halt_without_a_call_takes_no_answer(rig):
    """There is nothing that an answer could stand for."""
    key = rig.start()
    rig.house.run_turn(key, on_report=lambda _: None)
    opened = rig.house.interventions.open("missing_document", "gone", user_id="anna", turn_id=key.turn_id, phase="gathered_context")
    with pytest.raises(InputError, match="no call of a recipe halted it"):
        with_answer(rig.house.kit, opened, PROCEED)


def test_a_retry_runs_what_is_in_production(rig):
    """The same phase, with a model that answers now."""
    rig.say(reflection=BAD)
    key = rig.ask()
    rig.say(reflection=PROCEED)
    rig.house.interventions.resolve(rig.halted(key).id, "", how="retry")
    rig.run(key)
    assert rig.turn(key).manifest.state == "saved"


def test_an_abandoned_turn_is_over(rig):
    """It stays as it is, in its row too; nothing is left to do, and abandoning it twice changes nothing."""
    rig.say(reflection=BAD)
    key = rig.ask()
    assert abandon(key, rig.house.kit).state == "abandoned"
    assert abandon(key, rig.house.kit).state == "abandoned"
    assert rig.house.left_to_do(key) == () and rig.row(key).state == "abandoned"
    assert rig.house.turns.load(key).manifest.intervention == rig.house.interventions.list()[0].id


def test_what_did_not_halt_is_not_abandoned(rig):
    """An answer or a question back stands."""
    saved = rig.ask()
    rig.say(reflection=CLARIFY)
    asked = rig.ask(session="s2")
    for key, state in ((saved, "saved"), (asked, "clarify"), (rig.start(), "open")):
        with pytest.raises(InputError, match=f"the turn is {state}"):
            abandon(key, rig.house.kit)
