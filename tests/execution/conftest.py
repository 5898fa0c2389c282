"""Fakes around the executor: a recipes of recipes built in memory, a runtime with scripted answers, stores that are lists."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pandora_dagster.contracts.compression_results import CompressionRequest
from pandora_dagster.contracts.enums import ContentType, InterventionType, ModelLayer
from pandora_dagster.contracts.ids import TurnKey, user_id
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.model_calls import (
    CallRecord,
    CallRequest,
    CallResult,
    CallSite,
    InputDocument,
)
from pandora_dagster.contracts.recipe_schema import LoadedRecipe, PromptFile, Recipe
from pandora_dagster.errors import DocumentError, StoreError
from pandora_dagster.execution.call.executor import Executor
from pandora_dagster.execution.call_faults import CallFault
from pandora_dagster.execution.fit.compression_log import CompressionLog
from pandora_dagster.execution.fit.summarization_engine import SummarizationEngine
from pandora_dagster.phases.flow.phase_table import MEANING_RECIPE
from pandora_dagster.recipes.recipe_loader import open_recipes
from pandora_dagster.runtime.token_counter import TokenCounter
from tests.fakes.model_runtimes import SequenceRuntime
from tests.fakes.recipe_catalog import MemoryRecipeCatalog, frames_of

VOCABULARY = Path(__file__).parents[2] / "data" / "tokenizer" / "cl100k_base.tiktoken"
CONTEXT = "## 0. User Query\n\nwhich flight?\n\n## 2. Gathered Context\n\nFlight HAT136 [1].\n\n## 3. Task Plan\n\nAnswer.\n\n"
PLAN_SCHEMA = {
    "type": "object",
    "required": ["next_step"],
    "properties": {"next_step": {"enum": ["synthesis", "clarify"]}, "confidence": {"type": "number"}, "reasoning": {"type": "string"}},
    "additionalProperties": False,
}
GOOD = '{"next_step": "synthesis", "confidence": 0.9}'


def loaded(
    *, prompts: tuple[tuple[PromptFile, str], ...] | None = None, policy: str = "Use the documents only.", **fields: Any
) -> LoadedRecipe:
    """A planner-like recipe, changed by `fields`."""
    values: dict[str, Any] = {
        "name": "planner_chat",
        "description": "Plans.",
        "model_layer": "MIND",
        "token_budget": {"total": 2000, "prompt": 500, "input": 1000, "output": 500},
        "system_prompt": "Plan the turn.",
        "input_sections": ("§0", "§2"),
        "output_format": "json",
        "output_schema": PLAN_SCHEMA,
    }
    recipe = Recipe(**{**values, **fields})
    texts = prompts or ((PromptFile(path="prompts/planner/plan.md"), recipe.system_prompt or "Plan."),)
    return LoadedRecipe(
        recipe=recipe,
        path="pipeline/plan",
        version="abc123def456",
        prompt_version="aaaabbbbcccc",
        prompts=texts,
        policy=policy,
        frames=frames_of(recipe),
    )


def request(**fields: Any) -> CallRequest:
    """A call of `pipeline/plan` with a context.md."""
    site = CallSite(phase="task_plan", user="anna", session="s1", turn=TurnKey(user_id("anna"), 7))
    base = CallRequest(recipe="pipeline/plan", query="which flight?", site=site, documents=(InputDocument("context.md", CONTEXT),))
    return replace(base, **fields)


@dataclass
class FakeStores:
    """Log, vault and interventions in lists; `broken` makes log and vault refuse."""

    records: list[CallRecord] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    opened: list[Intervention] = field(default_factory=list)
    broken: bool = False
    images: dict[str, bytes] = field(default_factory=dict)

    def begin(self, record: CallRecord) -> None:
        if self.broken:
            raise StoreError("calls: disk full")

    def append(self, record: CallRecord) -> None:
        if self.broken:
            raise StoreError("calls.jsonl: disk full")
        self.records.append(record)

    def keep(self, user: str, kind: str, text: str) -> str:
        if self.broken:
            raise StoreError("vault: disk full")
        ref = f"{user}/{kind}/{len(self.kept)}"
        self.kept[ref] = text
        return ref

    def read(self, ref: str) -> str:
        return self.kept[ref]

    def keep_image(self, user: str, data: bytes) -> str:
        ref = f"{user}/image/{len(self.images)}"
        if self.broken:
            raise StoreError("vault: disk full")
        self.images[ref] = data
        return ref

    def read_image(self, ref: str) -> bytes:
        if ref not in self.images:
            raise DocumentError(f"{ref}: missing")
        return self.images[ref]

    def open(self, type: InterventionType, message: str, **fields: str) -> Intervention:
        made = Intervention(id=f"iv_{len(self.opened) + 1}", type=type, message=message, created_at="2026-01-04T14:30:00Z", **fields)
        self.opened.append(made)
        return made

    def show(self, intervention_id: str) -> Intervention:
        return next(i for i in self.opened if i.id == intervention_id)

    def list(self, *, state: str | None = None, user: str | None = None) -> tuple[Intervention, ...]:
        return tuple(self.opened)

    def resolve(self, intervention_id: str, resolution: str) -> Intervention:
        raise AssertionError("a call never resolves an intervention")


@dataclass
class Rig:
    """An executor with its fakes at hand."""

    executor: Executor
    runtime: SequenceRuntime
    stores: FakeStores
    pauses: list[float]

    def call(self, **fields: Any) -> CallResult:
        return asyncio.run(self.executor.call(request(**fields)))


@pytest.fixture(scope="session")
def counter() -> TokenCounter:
    """The real cl100k counter."""
    return TokenCounter(VOCABULARY)


@pytest.fixture(scope="session")
def rig(counter: TokenCounter) -> Callable[..., Rig]:
    """Builds an executor on fakes: `rig(answers, recipe=..., limits=..., fitter=..., tools=...)`."""

    def build(
        *script: Any,
        recipe: LoadedRecipe | None = None,
        limits: Mapping[ModelLayer, int] | None = None,
        served: int = 0,
        latency_ms: float = 1.0,
        broken: bool = False,
        tokenizer: Callable[[str], int] | None = None,
        **extra: Any,
    ) -> Rig:
        runtime = SequenceRuntime(list(script) or [GOOD], limits or {}, served, tokenizer, latency_ms)
        stores, pauses = FakeStores(broken=broken), []
        now = [datetime(2026, 1, 4, 14, 30, tzinfo=UTC)]

        def clock() -> datetime:
            now[0] += timedelta(milliseconds=1)
            return now[0]

        async def sleep(seconds: float) -> None:
            pauses.append(seconds)

        executor = Executor(
            recipes=MemoryRecipeCatalog({"pipeline/plan": recipe or loaded()}),
            runtime=runtime,
            counter=counter,
            log=stores,
            vault=stores,
            interventions=stores,
            clock=clock,
            sleep=sleep,
            new_call_id=lambda: "call_1",
            **extra,
        )
        return Rig(executor, runtime, stores, pauses)

    return build


@pytest.fixture(scope="session")
def make_recipe() -> Callable[..., LoadedRecipe]:
    """`make_recipe(**fields)`: the planner-like recipe, changed."""
    return loaded


@pytest.fixture(scope="session")
def good() -> dict[str, Any]:
    """What the good answer says."""
    return json.loads(GOOD)


SITE = CallSite("tool_results", "anna", "s1")


@dataclass
class FakeModel:
    """Answers each call of a compression by `answer`: a text, a parsed value or a fault. Keeps what it was asked."""

    answer: Callable[[CallRequest], Any]
    asked: list[CallRequest] = field(default_factory=list)
    busy: int = 0
    busiest: int = 0

    async def attempt(self, request: CallRequest) -> CallResult | CallFault:
        self.asked.append(request)
        self.busy += 1
        self.busiest = max(self.busiest, self.busy)
        await asyncio.sleep(0)
        self.busy -= 1
        given = self.answer(request)
        return given if isinstance(given, CallFault) else CallResult(str(given), given, None, ())  # type: ignore[arg-type]


@dataclass
class EngineRig:
    """An engine with what surrounds it at hand."""

    engine: SummarizationEngine
    log: CompressionLog
    records: list = field(default_factory=list)
    events: list = field(default_factory=list)
    now: list[datetime] = field(default_factory=lambda: [datetime(2026, 1, 4, tzinfo=UTC)])

    def compress(self, text, target, kind=ContentType.GENERIC, **more):
        return asyncio.run(self.engine.compress(CompressionRequest(text, content_type=kind, target=target, **more), site=SITE))


@pytest.fixture
def open_engine(counter):
    """`open_engine(model)`: an engine over the shipped recipes; without a model as on the embedded runtime. `recipes`: in their place."""

    def build(model=None, ttl_s: int = 300, recipes=None) -> EngineRig:
        made = EngineRig(None, None)  # type: ignore[arg-type]

        class Calls:
            def append(self, record):
                made.records.append(record)

        log = CompressionLog(Calls(), lambda: made.now[0], lambda: "call_9", lambda event, **fields: made.events.append((event, fields)))
        made.engine = SummarizationEngine(
            recipes=recipes or open_recipes(),
            counter=counter,
            clock=lambda: made.now[0],
            log=log,
            model=model,
            meaning=MEANING_RECIPE,
            runtime="sglang" if model else "extractive",
            cache_ttl_s=ttl_s,
        )
        return made

    return build
