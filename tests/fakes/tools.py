"""Tools that a test tells what to do."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from pandora_dagster.contracts.ports.tool import ToolOutcome, ToolRun, ToolSpec


class ScriptedTool:
    """A tool that runs `act` and returns its outcome; `fields` are those of its spec. `runs` keeps what it was given."""

    spec: ToolSpec

    def __init__(self, act: Callable[[ToolRun], Awaitable[ToolOutcome]], **fields: Any) -> None:
        self.act = act
        self.runs: list[ToolRun] = []
        self.spec = replace(ToolSpec("doc.search", "does as it is told", {"type": "object"}), **fields)

    async def run(self, run: ToolRun) -> ToolOutcome:
        self.runs.append(run)
        return await self.act(run)
