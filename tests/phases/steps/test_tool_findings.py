"""What a tool researches in one turn: kept with the turn, stored once it is saved, found by the next."""

from dataclasses import replace

import pytest

from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.model_calls import Source
from pandora_dagster.contracts.ports.tool import ToolOutcome, ToolSpec
from pandora_dagster.phases.flow.turn_flow import run_phase
from tests.phases.rig import COMPLETE, Rig, command, plan, tool
from tests.stores.user.test_source_files import research, visit

ANNA = user_id("anna")


class Researching:
    """A tool that has looked at a shop."""

    spec = ToolSpec("doc.search", "looks at shops", {"type": "object"})

    async def run(self, run):
        found = research(webpage_cache=["visit_abc123"])
        return ToolOutcome(True, "Lenovo LOQ 15 [source 1]", "{}", (Source("", found.logical_id),), research=(found,), visits=(visit(),))


@pytest.fixture
def researching(rig):
    """A rig whose Coordinator researches."""
    deps = replace(rig.app.dependencies, tools={**rig.app.dependencies.tools, "doc.search": Researching()})
    made = Rig(replace(rig.app, dependencies=deps), rig.runtime)
    made.say(planner=plan("coordinator"), executor=[command(), COMPLETE], coordinator=tool("doc.search", query="laptops"))
    return made


def test_research_is_stored_after_its_turn_with_its_origin(researching):
    """research.json, its rendering and the page lie with the turn; the store says which turn and tool they come from."""
    key = researching.ask()
    files = researching.turn(key).files
    assert {"research.json", "research.md", "webpage_cache/visit_abc123/visit.json"} <= set(files)
    kept = researching.app.dependencies.sources.research(ANNA, "commerce.laptop")
    assert kept.provenance.source_turn == key.number and kept.provenance.by == "doc.search"
    assert kept.model_copy(update={"provenance": None}) == research(webpage_cache=["visit_abc123"])
    assert researching.app.dependencies.sources.visit(ANNA, "visit_abc123").provenance.source_turn == key.number
    assert files["research.md"].startswith("## Research Findings") and "Lenovo LOQ 15 @ $697" in files["research.md"]


def test_a_turn_that_was_not_saved_stores_nothing(researching):
    """Only what is saved is found by others; taken up again, it is stored."""
    researching.say(validator=RuntimeError("cut off"))
    key = researching.start()
    with pytest.raises(RuntimeError):
        researching.run(key)
    assert researching.app.dependencies.sources.research_rows(ANNA) == ()
    researching.runtime.script.pop("validator")
    researching.run(key)
    assert len(researching.app.dependencies.sources.research_rows(ANNA)) == 1


def test_a_summary_that_halts_takes_no_research_away(researching):
    """The record is stored before the summary is asked for, and storing it twice changes nothing."""
    researching.say(summarizer="no json")
    key = researching.ask()
    rows = researching.app.dependencies.sources.research_rows(ANNA)
    assert researching.app.turns.manifest(key).state == "saved" and len(rows) == 1
    researching.runtime.script.pop("summarizer")
    researching.app.run(run_phase("turn_summary", key, researching.app.dependencies))
    assert researching.app.dependencies.sources.research_rows(ANNA) == rows
