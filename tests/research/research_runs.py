"""A run of research over pages in memory: a real executor with the shipped recipes, answered by the embedded runtime or by a script."""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pandora_dagster.app.composition import utc_now
from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.model_calls import CallSite, ModelAnswer, PromptPack, Usage
from pandora_dagster.contracts.web.page_doc import PageDoc
from pandora_dagster.contracts.web.research_run import ResearchRun
from pandora_dagster.contracts.web.search import SearchHit, SearchHits
from pandora_dagster.errors import ModelError, PandoraError
from pandora_dagster.execution.call.executor import Executor
from pandora_dagster.recipes.recipe_loader import open_recipes
from pandora_dagster.research.recipe_calls import RecipeCalls
from pandora_dagster.research.research_loop import ResearchLoop, RunLimits
from pandora_dagster.research.run_ports import VisitedPage
from pandora_dagster.runtime.extractive.extractive_runtime import ExtractiveRuntime
from pandora_dagster.runtime.token_counter import TokenCounter
from tests.execution.conftest import VOCABULARY, FakeStores

Script = Mapping[str, Callable[[PromptPack], Any] | ModelError]
"""Role -> the answer to a pack, or an error."""
_COUNTER = TokenCounter(VOCABULARY)


@dataclass
class RoleRuntime(ExtractiveRuntime):
    """Answers by role as scripted, other roles as the embedded runtime does."""

    script: Script = field(default_factory=dict)
    packs: list[PromptPack] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(_COUNTER, utc_now)

    def model(self, layer: ModelLayer) -> str:
        return "scripted"

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: Callable[[str], None] | None = None) -> ModelAnswer:
        self.packs.append(pack)
        scripted = self.script.get(pack.role)
        if scripted is None:
            return await super().complete(pack, timeout_s=timeout_s, on_words=on_words)
        if isinstance(scripted, ModelError):
            raise scripted
        return ModelAnswer(json.dumps(scripted(pack)), "stop", Usage(), "scripted", "scripted", 1.0)

    def roles(self) -> list[str]:
        return [pack.role for pack in self.packs]


@dataclass
class FakeSearch:
    hits: tuple[SearchHit, ...]
    fault: PandoraError | None = None
    name: str = "fake"
    queries: list[str] = field(default_factory=list)

    def search(self, query: str, *, page: int, language: str) -> SearchHits:
        self.queries.append(query)
        if self.fault:
            raise self.fault
        return SearchHits(self.hits if page == 1 else ())


@dataclass
class FakeVisitor:
    pages: Mapping[str, PageDoc | VisitedPage | PandoraError]
    visited: list[str] = field(default_factory=list)

    async def visit(self, url: str) -> VisitedPage:
        self.visited.append(url)
        found = self.pages[url]
        if isinstance(found, PandoraError):
            raise found
        return found if isinstance(found, VisitedPage) else VisitedPage(found)


class KilledError(BaseException):
    """The process ends here."""


@dataclass
class MemoryRuns:
    """A checkpoint in memory; the process ends when `saves_left` are used up."""

    text: str = ""
    saves_left: int = -1

    def load(self) -> ResearchRun | None:
        return ResearchRun.model_validate_json(self.text) if self.text else None

    def save(self, run: ResearchRun) -> None:
        if self.saves_left == 0:
            raise KilledError
        self.saves_left -= 1
        self.text = run.model_dump_json()


def recipe_calls(runtime: RoleRuntime, stores: FakeStores | None = None) -> RecipeCalls:
    kept = stores or FakeStores()

    async def sleep(seconds: float) -> None: ...

    executor = Executor(
        recipes=open_recipes(),
        runtime=runtime,
        counter=_COUNTER,
        log=kept,
        vault=kept,
        interventions=kept,
        clock=lambda: datetime.now(UTC),
        sleep=sleep,
        new_call_id=lambda: "call_1",
    )
    return RecipeCalls(executor, CallSite("research", "anna"), "2026-11-24")


def research(
    question: str,
    pages: Iterable[PageDoc],
    *,
    runtime: RoleRuntime | None = None,
    limits: RunLimits | None = None,
    store: MemoryRuns | None = None,
    report: Callable[[str], None] = lambda _: None,
    linked: Iterable[PageDoc] = (),
    hits: tuple[SearchHit, ...] = (),
    faults: Mapping[str, PandoraError] | None = None,
) -> ResearchRun:
    """The ended run over pages that a search finds for every query, each with the question as its snippet, or as `hits` has them.

    `linked`: pages that it does not find; `faults`: addresses that cannot be visited, and why.
    """
    found = {page.final_url: page for page in pages}
    hits = hits or tuple(SearchHit(page.final_url, page.title, question) for page in found.values())
    calls = recipe_calls(runtime or RoleRuntime())
    loop = ResearchLoop(
        (FakeSearch(hits),),
        FakeVisitor({**found, **{page.final_url: page for page in linked}, **(faults or {})}),
        store or MemoryRuns(),
        limits or RunLimits(8, 60),
        calls,
        report,
    )
    return asyncio.run(loop.run(question))
