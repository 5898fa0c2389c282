"""What every tool must do, asked of those that are registered and of the fake that phases are tested with."""

import asyncio
import re
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
import pytest

from pandora_dagster.contracts.ids import TurnKey, user_id
from pandora_dagster.contracts.model_calls import Source
from pandora_dagster.contracts.ports.tool import Tool, ToolOutcome, ToolRun
from pandora_dagster.contracts.user.user_memory import MemoryEntry
from pandora_dagster.tools.tool_registry import TOOL_NAMES
from tests.fakes.tools import ScriptedRecipes, ScriptedTool
from tests.fakes.turn_research import lamp_findings, research_tool
from tests.phases.rig import Rig, open_light_rig

ANNA, BEN = user_id("anna"), user_id("ben")
ARGUMENTS: Mapping[str, Mapping[str, Any]] = {
    "doc.search": {"query": "walnut desk"},
    "memory.query": {"query": "seat"},
    "memory.create": {"key": "home", "value": "Lund", "kind": "fact"},
    "memory.forget": {"query": "forget where I sit"},
    "internet.research": {"question": "What does the Vela lamp weigh?"},
    "scripted": {},
}
ANSWERS: Mapping[str, Mapping[str, Any]] = {"memory/forget_request": {"entries": [1]}}
APPROVED: Mapping[str, Mapping[str, Any]] = {"memory.forget": {"seat": "aisle"}}


async def finds(run: ToolRun) -> ToolOutcome:
    if run.user != ANNA:
        return ToolOutcome(True, "", "[]")
    return ToolOutcome(True, "a desk [source 1]", "[]", (Source("", "page.md"),))


@pytest.fixture
def rig() -> Iterator[Rig]:
    """One earlier turn and one stored preference of anna."""
    made = open_light_rig()
    made.say(synthesizer="The walnut desk costs 300.")
    made.ask("which walnut desk?")
    made.app.dependencies.memory.put(ANNA, MemoryEntry("seat", "aisle", 0.9, 1, "2026-01-04T14:30:00Z"))
    yield made
    made.app.close()


@pytest.fixture(params=sorted(ARGUMENTS))
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def tool(rig: Rig, name: str) -> Tool:
    if name == "scripted":
        return ScriptedTool(finds, name="scripted")
    return research_tool(lamp_findings()) if name == "internet.research" else rig.app.dependencies.tools[name]


def test_every_registered_tool_is_asked() -> None:
    assert ARGUMENTS.keys() - {"scripted"} == TOOL_NAMES


def test_a_tool_declares_itself(tool: Tool, name: str) -> None:
    """Its arguments by a JSON Schema, which they fit; a time and a size that it may take."""
    spec = tool.spec
    jsonschema.Draft202012Validator.check_schema(spec.parameters)
    jsonschema.validate(ARGUMENTS[name], spec.parameters)
    assert spec.name == name and spec.description and spec.deadline_s > 0 and spec.max_result_bytes > 0


def test_what_a_tool_finds_has_its_sources(tool: Tool, name: str) -> None:
    """Each is cited by its place among them; labels are the caller's."""
    found = asyncio.run(
        tool.run(
            ToolRun(ARGUMENTS[name], TurnKey(ANNA, 9), tool.spec.deadline_s, ask=ScriptedRecipes(ANSWERS), approved=APPROVED.get(name, {}))
        )
    )
    cited = {int(number) for number in re.findall(r"\[source (\d+)\]", found.text)}
    assert found.ok and cited == set(range(1, len(found.sources) + 1)) != set()
    assert all(source.label == "" and source.path for source in found.sources) and found.size <= tool.spec.max_result_bytes


@pytest.mark.parametrize("name", sorted(ARGUMENTS.keys() - {"memory.create", "memory.forget", "internet.research"}))
def test_a_tool_that_reads_finds_nothing_of_another_user(tool: Tool, name: str) -> None:
    """Nothing found is no error."""
    assert not tool.spec.writes
    found = asyncio.run(
        tool.run(
            ToolRun(ARGUMENTS[name], TurnKey(BEN, 9), tool.spec.deadline_s, ask=ScriptedRecipes(ANSWERS), approved=APPROVED.get(name, {}))
        )
    )
    assert (found.ok, found.text, found.sources) == (True, "", ())
