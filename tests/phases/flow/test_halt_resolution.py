"""What a user can do about a halt: an answer by hand, a retry, an end; the turn goes on where it stopped."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from pandora_dagster.contracts.model_calls import CallRequest, CallSite
from pandora_dagster.errors import DocumentError, InputError
from pandora_dagster.phases.flow import turn_flow
from pandora_dagster.phases.flow.halt_resolution import ManualAnswerExecutor, abandon_turn, with_manual_answer
from tests.phases.rig import CLARIFY, PROCEED, plain

pytestmark = pytest.mark.stored

BAD = '{"decision": "MAYBE"}'


def test_an_answer_by_hand_goes_on_from_where_the_turn_halted(rig):
    """The phases before it stay; the call is a user's in its record, and is judged like any other."""
    rig.say(reflection=BAD)
    key = rig.ask()
    halt = rig.halted(key)
    before = rig.runtime.calls()
    app, given = rig.app.with_manual_answer(halt, PROCEED)
    rig.app.interventions.resolve(halt.id, "clear enough", how="by_hand")
    assert not given.is_used
    app.run_turn(key, on_report=lambda _: None)
    assert given.is_used and rig.turn(key).manifest.state == "saved"
    assert rig.runtime.calls()["query_analyzer"] == before["query_analyzer"]
    assert rig.runtime.calls()["reflection"] == before["reflection"]
    records = [r for r in rig.app.calls.files.read(key.user, report=print) if r.recipe == "reflection"]
    assert [(r.success, r.runtime) for r in records] == [(False, "scripted"), (True, "person")]
    assert rig.app.interventions.show(halt.id).how == "by_hand"


def test_a_turn_that_runs_again_from_its_start_closes_its_intervention(rig):
    """ "Materialize all" in Dagster runs earlier phases again; the manifest names the intervention until its phase ends."""
    rig.say(reflection=BAD)
    key = rig.ask()
    halt = rig.halted(key)
    rig.say(reflection=PROCEED)
    for phase in ("turn_request", "query_analysis"):
        rig.app.run(turn_flow.run_phase(phase, key, rig.app.dependencies))
        assert (rig.turn(key).manifest.intervention, rig.app.interventions.show(halt.id).is_open) == (halt.id, True)
    rig.app.run(turn_flow.run_phase("reflection", key, rig.app.dependencies))
    assert (rig.turn(key).manifest.intervention, rig.app.interventions.show(halt.id).how) == (None, "went_on")


def test_only_the_call_that_halted_is_answered(rig):
    """A second call of the phase is the model's again."""
    rig.say(validator=[BAD, BAD, BAD, plain(checked_citations=[], issues=[], decision="APPROVE", confidence=0.95)])
    key = rig.ask()
    revise = plain(checked_citations=[], issues=["say more"], decision="REVISE", confidence=0.9)
    app, _ = rig.app.with_manual_answer(rig.halted(key), revise)
    app.run_turn(key, on_report=lambda _: None)
    assert rig.turn(key).manifest.state == "saved"
    assert "**Revisions:** 1" in rig.section(key, 6)


@pytest.mark.parametrize(("phase", "recipe"), [("validation", "pipeline/phase1_reflection"), ("reflection", "pipeline/phase2_retrieval")])
def test_a_call_of_another_phase_or_recipe_is_not_answered(rig, phase, recipe):
    """The answer waits for the call that halted."""
    rig.say(reflection=BAD)
    halt = rig.halted(rig.ask())
    asked = []

    class Hears:
        async def call(self, request):
            asked.append(request.manual_answer)

    by_hand = ManualAnswerExecutor(Hears(), rig.app.recipes, halt, PROCEED)
    for site, named in ((CallSite(phase, "anna"), recipe), (CallSite("reflection", "anna"), "pipeline/phase1_reflection")):
        asyncio.run(by_hand.call(CallRequest(named, "which chair?", site)))
    assert (asked, by_hand.is_used) == (["", PROCEED], True)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("", "answer: empty"),
        (BAD, "schema_validation"),
        ("I do not know", "schema_validation"),
    ],
)
def test_an_answer_that_would_not_pass_is_refused(rig, answer, says):
    """Before anything is resolved or run."""
    rig.say(reflection=BAD)
    key = rig.ask()
    halt = rig.halted(key)
    with pytest.raises(InputError, match=says):
        rig.app.with_manual_answer(halt, answer)
    assert rig.app.interventions.show(halt.id).state == "open"


def test_a_halt_without_a_call_takes_no_answer(rig):
    """There is nothing that an answer could stand for."""
    key = rig.start()
    rig.app.run_turn(key, on_report=lambda _: None)
    opened = rig.app.interventions.open("missing_document", "gone", user_id="anna", turn_id=key.turn_id, phase="gathered_context")
    with pytest.raises(InputError, match="no call of a recipe halted it"):
        with_manual_answer(rig.app.dependencies, opened, PROCEED)


def test_an_answer_for_a_halt_that_is_past_is_refused(rig):
    """Something was done about it, or its phase is done: the answer would be nobody's."""
    rig.say(reflection=BAD)
    key = rig.ask()
    old = rig.halted(key)
    rig.say(reflection=PROCEED, validator=[BAD] * 4)
    rig.run(key)
    new = rig.halted(key)
    assert new.phase != old.phase
    with pytest.raises(InputError, match=f"{old.phase} is done since"):
        rig.app.with_manual_answer(old, PROCEED)
    rig.app.interventions.resolve(old.id, "", how="retry")
    with pytest.raises(InputError, match=r"resolved already \(retry"):
        rig.app.with_manual_answer(rig.app.interventions.show(old.id), PROCEED)


def test_what_was_noted_can_be_acted_on_and_nothing_else(rig):
    """A note is no decision about the turn; what was done stands, with the note beside it."""
    rig.say(reflection=BAD)
    halt = rig.halted(rig.ask())
    rig.app.interventions.resolve(halt.id, "the server is gone")
    done = rig.app.interventions.resolve(halt.id, "ended", how="abandoned")
    assert (done.how, done.resolution) == ("abandoned", "the server is gone; ended")
    with pytest.raises(InputError, match=r"resolved already \(abandoned"):
        rig.app.interventions.resolve(halt.id, "no", how="retry")


def test_what_an_open_intervention_is_judged_by_outlives_its_retention(rig):
    """Pack, answer and what was asked; they go with the others once it is resolved."""
    rig.say(reflection=BAD)
    halt = rig.halted(rig.ask())
    (record,) = [r for r in rig.app.calls.files.read("anna", report=print) if r.call_id == halt.call_id]
    refs = (halt.pack_ref, halt.answer_ref, record.request_ref)
    later = rig.app.dependencies.clock() + timedelta(days=rig.app.settings.keep_packs_days + 1)
    app = replace(rig.app, dependencies=replace(rig.app.dependencies, clock=lambda: later))
    app.delete_expired()
    assert all(app.vault.read(ref) for ref in refs)
    app.interventions.resolve(halt.id, "")
    app = replace(app, dependencies=replace(app.dependencies, clock=lambda: later + timedelta(days=1)))
    app.delete_expired()
    for ref in refs:
        with pytest.raises(DocumentError, match="missing"):
            app.vault.read(ref)


def test_a_retry_runs_what_is_in_production(rig):
    """The same phase, with a model that answers now."""
    rig.say(reflection=BAD)
    key = rig.ask()
    rig.say(reflection=PROCEED)
    rig.app.interventions.resolve(rig.halted(key).id, "", how="retry")
    rig.run(key)
    assert rig.turn(key).manifest.state == "saved"


def test_an_abandoned_turn_is_over(rig):
    """It stays as it is, in its row too; nothing is left to do, and abandoning it twice changes nothing."""
    rig.say(reflection=BAD)
    key = rig.ask()
    assert abandon_turn(key, rig.app.dependencies).state == "abandoned"
    assert abandon_turn(key, rig.app.dependencies).state == "abandoned"
    assert rig.app.pending_phases(key) == () and rig.row(key).state == "abandoned"
    assert rig.app.turns.load(key).manifest.intervention == rig.app.interventions.list()[0].id


def test_what_did_not_halt_is_not_abandoned(rig):
    """An answer or a question back stands."""
    saved = rig.ask()
    rig.say(reflection=CLARIFY)
    asked = rig.ask(session="s2")
    for key, state in ((saved, "saved"), (asked, "clarify"), (rig.start(), "open")):
        with pytest.raises(InputError, match=f"the turn is {state}"):
            abandon_turn(key, rig.app.dependencies)
