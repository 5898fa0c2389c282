"""Calls of tools in a turn, judged where code is unsure: arguments, repetition, contradiction, deletion."""

import json

import pytest

from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.user.user_memory import MemoryEntry
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.phases.steps.write_approval import decide_call
from tests.phases.rig import COMPLETE, command, plain, plan, tool

ANNA = user_id("anna")


@pytest.fixture
def looping(rig):
    """A rig whose Planner goes to the Coordinator, which is asked for three commands."""
    rig.say(planner=plan("coordinator"), executor=[command(), command(), command(), COMPLETE])
    return rig


def stored(rig):
    return {entry.key: entry.value for entry in rig.app.dependencies.memory.entries(ANNA)}


def store(rig, **values):
    for key, value in values.items():
        rig.app.dependencies.memory.put(ANNA, MemoryEntry(key, value, 0.9, None, "2026-01-04T14:30:00Z"))


def stopped(rig, key):
    return next(p.report for p in rig.turn(key).manifest.phases if p.phase == "tool_results")["facts"]["stopped"]


def test_arguments_that_do_not_fit_are_corrected_by_one_call(rig):
    """The tool runs with the corrected ones, section 4 shows them, and the fault was given to the model."""
    rig.say(planner=plan("coordinator"), executor=[command(), COMPLETE], coordinator=tool("memory.create", key="Seat", value="aisle"))
    rig.say(argument_filler=plain(arguments={"key": "seat", "value": "aisle", "kind": "preference"}))
    key = rig.ask()
    assert stored(rig) == {"seat": "aisle"} and '"kind": "preference"' in rig.section(key, 4) and "error" not in rig.section(key, 4)
    pack = rig.runtime.of("argument_filler")[0]
    assert "does not match" in pack.document("fault") or "required" in pack.document("fault")
    assert json.loads(pack.document("call")) == {"key": "Seat", "value": "aisle"} and pack.query == "which chair?"


def test_arguments_that_fit_are_not_judged(looping):
    looping.say(coordinator=[tool("memory.query", query=f"x{n}") for n in range(3)])
    looping.ask()
    assert "argument_filler" not in looping.runtime.calls()


def test_the_same_call_is_not_made_again(looping):
    """Code finds it: the second result is an error that names the first, and no model is asked."""
    store(looping, seat="aisle")
    looping.say(executor=[command(), command(), COMPLETE], coordinator=tool("memory.query", query="seat"))
    key = looping.ask()
    assert looping.section(key, 4).count("- seat: aisle") == 1
    assert "memory.query: the same call as result 1: expected another" in looping.section(key, 4)
    assert "loop_detector" not in looping.runtime.calls()


def test_a_third_call_that_asks_the_same_ends_the_loop(looping):
    """After two calls that found nothing new; the call is not made, and the report says why the loop ended."""
    looping.say(coordinator=[tool("memory.query", query=text) for text in ("sofa price", "price sofa", "price of the sofa")])
    looping.say(loop_detector=json.dumps({"reason": "the same", "repeats": True}))
    key = looping.ask()
    assert stopped(looping, key) == "loop" and "### Result 3" not in looping.section(key, 4)
    pack = looping.runtime.of("loop_detector")[0]
    assert "price sofa" in pack.document("calls") and json.loads(pack.document("next_call"))["arguments"] == {"query": "price of the sofa"}
    assert looping.turn(key).manifest.state == "saved"


def test_a_third_call_for_something_else_is_made(looping):
    """And calls that write are never judged: they find nothing."""
    looping.say(coordinator=[tool("memory.query", query=text) for text in ("sofa", "couch", "invoice")])
    key = looping.ask()
    assert stopped(looping, key) == "complete" and "### Result 3" in looping.section(key, 4)
    assert looping.runtime.calls()["loop_detector"] == 1
    looping.say(executor=[command(), command(), command(), COMPLETE])
    looping.say(coordinator=[tool("memory.create", key=name, value=name, kind="preference") for name in ("one", "two", "three")])
    looping.ask()
    assert looping.runtime.calls()["loop_detector"] == 1 and set(stored(looping)) == {"one", "two", "three"}


def test_a_contradicted_entry_gives_way_in_the_turn(rig):
    """What the model names by number is replaced, with its value as the earlier one."""
    store(rig, seat="window")
    rig.say(planner=plan("coordinator"), executor=[command(), COMPLETE])
    rig.say(coordinator=tool("memory.create", key="place_on_planes", value="aisle", kind="preference"))
    rig.say(fact_conflict=json.dumps({"reason": "both say where", "replaces": 1}))
    key = rig.ask("I sit at the aisle now.")
    entry = rig.app.dependencies.memory.entries(ANNA)[0]
    assert (entry.key, entry.value, entry.earlier[0].value, entry.source_turn) == ("place_on_planes", "aisle", "window", key.number)
    assert "in place of window [1]" in rig.section(key, 4)


@pytest.mark.stored
@pytest.mark.parametrize("approved", [True, False])
def test_what_the_user_asks_to_forget_waits_for_approval(rig, approved):
    """The question names key and value; only after it the entry goes, and refused it stays."""
    store(rig, seat="aisle", budget="900")

    def scripts():
        rig.say(planner=plan("coordinator"), executor=[command(), COMPLETE], coordinator=tool("memory.forget", query="where I sit"))

    rig.say(forget_request=json.dumps({"entries": [1]}))
    scripts()
    key = rig.ask("Forget where I sit.")
    halt = rig.halted(key)
    assert halt.type is InterventionType.NEEDS_APPROVAL and 'memory.forget {"seat": "aisle"}' in halt.message and "seat" in stored(rig)
    scripts()
    decide_call(rig.app.dependencies, halt, approved=approved)
    rig.run(key)
    assert ("seat" in stored(rig)) is not approved and stored(rig)["budget"] == "900"
    says = "Deleted preference seat: aisle [1]" if approved else "**Error:** memory.forget: the user refused this call"
    assert says in rig.section(key, 4) and rig.turn(key).manifest.state == "saved"


def test_the_embedded_runtime_forgets_what_is_named(anna):
    """Entries that have every word of the thing; it asks first, as any runtime."""
    anna.remember("seat", "aisle")
    anna.remember("budget", "900 euros")
    key = anna.ask("Forget my budget.")
    deps = anna.app.dependencies
    halt = anna.app.interventions.show(anna.app.turns.manifest(key).intervention)
    assert 'memory.forget {"budget": "900 euros"}' in halt.message
    decide_call(deps, halt, approved=True)
    anna.app.run_turn(key, on_report=lambda report: None)
    assert [entry.key for entry in deps.memory.entries(ANNA)] == ["seat"]
    section = ContextDocument.parse(anna.app.turns.load(key).context).body(4)
    assert "Deleted preference budget: 900 euros [1]" in section


def test_an_entry_whose_last_day_has_passed_is_not_offered(anna):
    """It stays in the page, and a lookup shows its day."""
    deps = anna.app.dependencies
    deps.memory.put(ANNA, MemoryEntry("place", "I am in Lisbon", 0.9, None, "2026-01-04T14:30:00Z", "fact", until="2026-01-06"))
    deps.memory.put(ANNA, MemoryEntry("home", "I live in Lund", 0.9, None, "2026-01-04T14:30:00Z", "fact", until="9999-01-01"))
    anna.ask("Where am I, in Lisbon or in Lund?")
    headers = next(pack for pack in anna.runtime.packs if pack.role == "retrieval").document("memory_headers")
    assert "Lund" in headers and "Lisbon" not in headers and len(deps.memory.entries(ANNA)) == 2
