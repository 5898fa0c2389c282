"""Tools that a test tells what to do, and the recipes that a tool asks."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from pandora_dagster.contracts.model_calls import InputDocument
from pandora_dagster.contracts.ports.tool import Answer, ToolOutcome, ToolRun, ToolSpec

JUDGES_NOTHING: Mapping[str, Mapping[str, Any]] = {
    "memory/fact_conflict": {"replaces": None},
    "memory/fact_expiry": {"until": None},
    "memory/memory_query": {"entries": []},
    "memory/forget_request": {"entries": []},
    "tools/doc_search_query": {"queries": []},
}


class ScriptedRecipes:
    """`ToolRun.ask` with an answer for each recipe; `asked` keeps the documents of each call."""

    def __init__(self, answers: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self.answers = {**JUDGES_NOTHING, **(answers or {})}
        self.asked: list[tuple[str, tuple[InputDocument, ...]]] = []

    async def __call__(self, recipe: str, documents: tuple[InputDocument, ...], answer: type[Answer]) -> Answer:
        self.asked.append((recipe, documents))
        return answer.model_validate(self.answers[recipe])


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
