"""A tool runs without its turn's lock, over a store on the disk."""

import asyncio
import threading
import time
from dataclasses import replace

import pytest

from pandora_dagster.contracts.model_calls import Source
from pandora_dagster.contracts.ports.tool import ToolOutcome
from pandora_dagster.errors import HaltError, StoreError, TurnChangedError
from pandora_dagster.phases.flow.phase_table import phase_effects
from pandora_dagster.stores.turns.turn_files import TurnFiles
from tests.fakes.tools import ScriptedTool
from tests.phases.rig import COMPLETE, Rig, command, plan, tool

pytestmark = pytest.mark.stored


def found(text):
    return ToolOutcome(True, f"{text} [source 1]", "{}", (Source("", "page.md"),))


def once(pack):
    """The Executor of a turn that runs one tool."""
    return COMPLETE if "### Result 1" in pack.document("context.md") else command()


@pytest.fixture
def with_tool(rig):
    """`with_tool(act)`: a rig whose turns run a tool once, over a store that waits 0.2 s for a lock."""

    def make(act, **fields):
        deps = rig.app.dependencies
        turns = TurnFiles(rig.app.settings.root, counter=deps.counter, clock=deps.clock, phases=phase_effects(), lock_seconds=0.2)
        deps = replace(deps, turns=turns, tools={"doc.search": ScriptedTool(act, **fields)})
        made = Rig(replace(rig.app, dependencies=deps), rig.runtime)
        made.say(planner=plan("coordinator"), executor=once, coordinator=tool("doc.search", query="desks"))
        return made

    return make


def in_thread(work):
    """What `work` raises, or None, in a thread: a lock of another thread is as one of another process."""
    raised = []

    def run():
        try:
            work()
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return raised[0] if raised else None


def test_the_lock_is_free_while_a_tool_runs(with_tool):
    """Others may take it and read the turn, whose manifest names the tool; a second run of the turn is refused."""
    seen = []

    async def act(run):
        turns = made.app.dependencies.turns

        def look():
            with turns.lock(run.turn, wait_s=0):
                seen.append(turns.load(run.turn).manifest.tool_run)

        def run_again():
            with turns.phase_lock(run.turn):
                seen.append("a second run began")

        assert in_thread(look) is None
        refused = in_thread(run_again)
        assert isinstance(refused, StoreError)
        assert f"turn {run.turn}: its tool doc.search runs in process" in str(refused)
        return found("Desk")

    made = with_tool(act)
    key = made.ask()
    assert [(intent.tool, intent.phase, intent.lease) for intent in seen] == [("doc.search", "tool_results", 0)]
    manifest = made.turn(key).manifest
    assert (manifest.state, manifest.tool_run) == ("saved", None) and "Desk [1]" in made.section(key, 4)


def test_the_lock_is_held_again_after_the_tool(with_tool):
    """What follows the tool changes the turn, so that nobody else may."""
    held = []

    async def act(run):
        return found("Desk")

    def completes(pack):
        if once(pack) != COMPLETE:
            return command()

        def take():
            with made.app.dependencies.turns.lock(key, wait_s=0):
                pass

        held.append(isinstance(in_thread(take), StoreError))
        return COMPLETE

    made = with_tool(act)
    made.say(executor=completes)
    key = made.start()
    made.run(key)
    assert held == [True]


def test_a_late_result_of_a_frozen_process_is_dropped(with_tool):
    """Once its deadline has passed, another process runs the tool and saves the turn; the first one then changes nothing."""
    results = ["first", "second"]

    async def act(run):
        text = results.pop(0)
        if text == "first":
            in_thread(lambda: time.sleep(run.deadline_s + 4))  # a frozen process: its event loop stands still
            assert in_thread(lambda: other.run(run.turn)) is None
        return found(text)

    made, other = with_tool(act, deadline_s=0.1), with_tool(act, deadline_s=0.1)
    key = made.start()
    with (
        asyncio.Runner() as loop,
        pytest.raises(TurnChangedError, match=r"doc\.search: its result is dropped: the turn was changed or erased meanwhile"),
    ):
        other.app = replace(other.app, loop=loop)
        made.run(key)
    assert made.turn(key).manifest.state == "saved" and "second [1]" in made.section(key, 4)
    assert "first" not in made.section(key, 4) and results == []


def test_a_halt_in_a_tool_is_stored_under_the_lock(with_tool):
    """A recipe that the tool asks may halt: the lock is taken again before the turn is stored as halted."""

    async def act(run):
        raise halt

    made = with_tool(act)
    key = made.start()
    record = made.app.interventions.open("needs_approval", "stop", user_id="anna", turn_id=key.turn_id)
    halt = HaltError("stop", intervention_id=record.id)
    made.run(key)
    assert made.turn(key).manifest.state == "halted" and made.turn(key).manifest.tool_run is None


def test_a_cancelled_turn_leaves_its_intent_without_a_lease(with_tool):
    """The next run takes the turn up at once and runs the tool again."""
    runs = []

    async def act(run):
        runs.append(run)
        if len(runs) == 1:
            raise_in_turn()
            await asyncio.sleep(60)
        return found("Desk")

    def raise_in_turn():
        next(t for t in asyncio.all_tasks() if t is not asyncio.current_task()).cancel()

    made = with_tool(act)
    key = made.start()
    with pytest.raises(asyncio.CancelledError):
        made.run(key)
    assert made.turn(key).manifest.tool_run is not None
    made.run(key)
    assert len(runs) == 2 and made.turn(key).manifest.state == "saved"
