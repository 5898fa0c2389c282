"""A recipe of high risk asks before a tool call that writes; the decision is recorded in the turn and asked for once."""

import json

import pytest

from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.errors import InputError
from pandora_dagster.phases.flow.halt_resolution import abandon_turn
from pandora_dagster.phases.steps.write_approval import decide_call
from tests.phases.rig import COMPLETE, Rig, command, plan, tool

pytestmark = pytest.mark.stored

STORE = {"key": "hotel", "value": "Casa Azul", "kind": "preference"}


def asks(rig: Rig, *calls: dict[str, str], mode: str = "code"):
    """A turn whose coordinator calls `memory.create` with each of these arguments, then is complete."""
    rig.say(planner=plan("coordinator"), executor=[*(command() for _ in calls), COMPLETE])
    rig.say(coordinator=[tool("memory.create", **call) for call in calls])
    return rig.ask("remember the hotel", mode=mode)


def goes_on(rig: Rig, key, *, approved: bool, calls=(STORE,)):
    deps = rig.app.dependencies
    decide_call(deps, rig.halted(key), approved=approved)
    rig.say(executor=[*(command() for _ in calls), COMPLETE], coordinator=[tool("memory.create", **call) for call in calls])
    rig.run(key)


def stored(rig: Rig, key) -> list[str]:
    return [entry.value for entry in rig.app.dependencies.memory.entries(key.user)]


def test_a_call_that_writes_waits_for_approval(rig):
    """Nothing is stored before; the intervention names tool, arguments and recipe; approved, it runs and the turn is saved."""
    key = asks(rig, STORE)
    halt = rig.halted(key)
    assert halt.type is InterventionType.NEEDS_APPROVAL and halt.recipe == "coordinator_code" and stored(rig, key) == []
    assert 'memory.create {"key": "hotel", "kind": "preference", "value": "Casa Azul"}' in halt.message and "--approve" in halt.hint
    goes_on(rig, key, approved=True)
    assert stored(rig, key) == ["Casa Azul"] and rig.turn(key).manifest.state == "saved"
    approvals = json.loads(rig.turn(key).files["approvals.json"])["calls"]
    assert [(c["tool"], c["arguments"], c["decision"], c["intervention"]) for c in approvals] == [
        ("memory.create", STORE, "approved", halt.id)
    ]
    assert approvals[0]["decided_at"]


def test_a_refused_call_does_not_run_and_the_turn_goes_on(rig):
    """Section 4 says so."""
    key = asks(rig, STORE)
    goes_on(rig, key, approved=False)
    assert stored(rig, key) == [] and rig.turn(key).manifest.state == "saved"
    assert "**Error:** memory.create: the user refused this call" in rig.section(key, 4)


def test_each_call_is_asked_about_once(rig):
    """The same call again runs; another one is another question."""
    other = {**STORE, "value": "Casa Verde"}
    key = asks(rig, STORE)
    goes_on(rig, key, approved=True, calls=(STORE, STORE, other))
    second = rig.halted(key)
    assert "Casa Verde" in second.message and stored(rig, key)[-1] == "Casa Azul"
    goes_on(rig, key, approved=False, calls=(STORE, other))
    assert rig.turn(key).manifest.state == "saved" and "Casa Verde" not in stored(rig, key)
    assert [c["decision"] for c in json.loads(rig.turn(key).files["approvals.json"])["calls"]] == ["approved", "refused"]


def test_a_retry_asks_again(rig):
    """A halted phase that runs again without a decision does not write."""
    key = asks(rig, STORE)
    rig.say(executor=[command(), COMPLETE], coordinator=tool("memory.create", **STORE))
    rig.run(key)
    assert rig.halted(key).type is InterventionType.NEEDS_APPROVAL and stored(rig, key) == []


def test_a_recipe_of_low_risk_does_not_ask(rig):
    """chat's coordinator stores at once."""
    key = asks(rig, STORE, mode="chat")
    assert stored(rig, key) == ["Casa Azul"] and rig.turn(key).manifest.state == "saved"
    assert "approvals.json" not in rig.turn(key).files


def test_a_call_that_reads_or_does_not_fit_its_schema_is_not_asked_about(rig):
    """There is nothing to approve."""
    rig.say(planner=plan("coordinator"), executor=[command(), command(), COMPLETE])
    rig.say(coordinator=[tool("memory.query", query="hotel"), tool("memory.create", key="hotel")])
    key = rig.ask("remember the hotel", mode="code")
    assert rig.turn(key).manifest.state == "saved" and "'value' is a required property" in rig.section(key, 4)


def test_only_a_turn_that_waits_is_decided(rig):
    """An intervention of another kind, and one whose turn has ended, take no decision."""
    deps = rig.app.dependencies
    key = asks(rig, STORE)
    halt = rig.halted(key)
    abandon_turn(key, deps)
    with pytest.raises(InputError, match="no longer waits"):
        decide_call(deps, halt, approved=True)
    with pytest.raises(InputError, match="expected one that asks to approve"):
        decide_call(deps, halt.model_copy(update={"type": InterventionType.TIMEOUT}), approved=True)


def test_a_damaged_record_approves_nothing(rig):
    """The turn halts at it."""
    key = asks(rig, STORE)
    decide_call(rig.app.dependencies, rig.halted(key), approved=True)
    turn = rig.turn(key)
    rig.app.turns.commit(turn, phase=None, files={"approvals.json": '{"calls": 1}'})
    rig.say(executor=[command(), COMPLETE], coordinator=tool("memory.create", **STORE))
    rig.run(key)
    assert rig.halted(key).type is InterventionType.CORRUPT_DOCUMENT and stored(rig, key) == []
