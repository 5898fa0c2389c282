"""Turn summaries as one asks for them: sent bare, through the runtime, and through the executor. Knows how they are timed."""

import asyncio
import json
import re
import shutil
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pandora_dagster.app import open_app
from pandora_dagster.contracts.enums import ModelLayer, Priority
from pandora_dagster.contracts.model_calls import CallRecord, CallRequest, CallResult, CallSite, InputDocument, ModelAnswer, PromptPack
from pandora_dagster.errors import ModelError
from pandora_dagster.execution.call.executor import Executor
from pandora_dagster.runtime.sglang.completion_requests import completion_request
from pandora_dagster.runtime.sglang.endpoints import Endpoints
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from pandora_dagster.settings import load_settings
from pandora_dagster.shipped import shipped_folder
from tests.runtime.sglang_packs import endpoints
from tests.sglang.real_servers import CONTEXT, RealSglang

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

T = TypeVar("T")
SUMMARY = "pipeline/phase7_summarizer"
_SECTIONS = ("Query", "Reflection", "Gathered Context", "Task Plan", "Tool Results", "Response", "Validation")


@dataclass(frozen=True, slots=True)
class Ran:
    """Requests that were sent: how long all of them took together, and what of each came back."""

    seconds: float
    tokens: int
    """Of all answers."""
    answered: int
    refused: int = 0
    """503s that reached the caller."""


def tried_once(folder: Path) -> Path:
    """The shipped recipes and prompts in `folder`, each call tried once: its gates are recorded."""
    for name in ("recipes", "prompts"):
        shutil.copytree(shipped_folder() / name, folder / name)
    for recipe in (folder / "recipes").rglob("*.yaml"):
        text = recipe.read_text(encoding="utf-8")
        recipe.write_text(re.sub(r"max_retries: \d+", "max_retries: 0", text), encoding="utf-8")
    return folder


def summary_request(number: int, recipe: str = SUMMARY) -> CallRequest:
    """The summary of one finished turn of about 1,200 tokens; no two are alike."""
    text = "\n\n".join(f"## {n}. {name}\n\n{_paragraph(number, n)}" for n, name in enumerate(_SECTIONS))
    site = CallSite("turn_summary", "bench", f"s{number}", priority=Priority.BATCH)
    return CallRequest(recipe, f"Which chair did we order in office {number}?", site, (InputDocument("context.md", text + "\n"),))


def _paragraph(number: int, section: int) -> str:
    lines = [
        f"Office {number}, room {section}.{line}: the chair Mesh {number * 7 + line} costs {200 + number + line}.{section}0 "
        f"euros and comes in week {1 + (number + line) % 52}, the desk stays where it is. [{section + 1}]"
        for line in range(5)
    ]
    return "\n".join(lines)


def served(server: RealSglang, **options: Any) -> Endpoints:
    """Every layer on the server, at a temperature at which its answers differ."""
    layers = {layer.value: {"temperature": 1.0} for layer in ModelLayer}
    return endpoints(server.base_url, model=server.model, context_length=CONTEXT, layers=layers, patience_s=3_600, **options)


@dataclass
class Recorded:
    """`ModelRuntime` that keeps the packs that go through it, and how many tokens of each came from the cache."""

    runtime: SglangRuntime
    packs: list[PromptPack] = field(default_factory=list[PromptPack])
    cached: list[int] = field(default_factory=list[int])

    def __getattr__(self, name: str) -> Any:
        return getattr(self.runtime, name)

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: Callable[[str], None] | None = None) -> ModelAnswer:
        self.packs.append(pack)
        try:
            answer = await self.runtime.complete(pack, timeout_s=timeout_s, on_words=on_words)
        except ModelError as error:
            self.cached.append(error.tokens[2])
            raise
        self.cached.append(answer.usage.cached)
        return answer


async def packs_of(requests: Sequence[CallRequest], server: RealSglang, root: Path) -> list[PromptPack]:
    """What the executor makes of the requests, by running them once: the server and everything here is warm afterwards."""
    runtime = SglangRuntime(served(server), keys={})
    recorded = Recorded(runtime)
    await through_executor(requests, recorded, root)
    await runtime.aclose()
    return recorded.packs


def executor_over(runtime: Any, root: Path) -> Executor:
    """The executor of a store whose recipes are tried once."""
    recipes = tried_once(root / "edited")
    settings = load_settings({"PANDORA_ROOT": str(root), "PANDORA_RECIPES": str(recipes)})
    executor = open_app(settings, runtime=runtime, priority=Priority.BATCH).dependencies.execution
    assert isinstance(executor, Executor)
    return executor


async def through_executor(requests: Sequence[CallRequest], runtime: Any, root: Path) -> tuple[Ran, list[CallRecord]]:
    """Each request as a phase asks: budgeted, packed, called, judged, logged. All at once; the runtime's places hold them back."""
    executor = executor_over(runtime, root)
    began = time.perf_counter()
    outcomes = await asyncio.gather(*(executor.attempt(request) for request in requests))
    took = time.perf_counter() - began
    records = [CallRecord.model_validate_json(line) for path in (root / "users").rglob("*.jsonl") for line in path.read_text().splitlines()]
    return Ran(took, sum(r.tokens.output for r in records), sum(isinstance(o, CallResult) for o in outcomes)), records


async def through_runtime(packs: Sequence[PromptPack], runtime: SglangRuntime) -> Ran:
    """Each pack by the runtime alone, all at once."""

    async def one(pack: PromptPack) -> int | ModelError:
        try:
            return (await runtime.complete(pack, timeout_s=600)).usage.output
        except ModelError as error:
            return error

    return await _timed(packs, one)


async def bare(packs: Sequence[PromptPack], server: RealSglang, at_once: int) -> Ran:
    """The same requests by OpenAI's client and nothing else, `at_once` of them at a time."""
    from openai import APIStatusError, AsyncOpenAI

    bodies = [completion_request(pack, served(server)[pack.layer], attempt=n) for n, pack in enumerate(packs, 1_000)]
    places = asyncio.Semaphore(at_once)
    async with AsyncOpenAI(base_url=server.base_url, api_key="EMPTY", max_retries=0, timeout=600) as client:

        async def one(number: int) -> int | ModelError:
            body = bodies[number]
            async with places:
                try:
                    answer = await client.chat.completions.create(
                        model=body.model,
                        messages=body.messages,
                        extra_body=body.fields,
                    )
                except APIStatusError as refusal:
                    return ModelError(f"status {refusal.status_code}")
            return answer.usage.completion_tokens if answer.usage else 0

        return await _timed(range(len(bodies)), one)


async def _timed(items: Sequence[T], one: Callable[[T], Awaitable[int | ModelError]]) -> Ran:
    began = time.perf_counter()
    outcomes = await asyncio.gather(*(one(item) for item in items))
    took = time.perf_counter() - began
    counted = [outcome for outcome in outcomes if isinstance(outcome, int)]
    full = [o for o in outcomes if isinstance(o, ModelError) and ("503" in str(o) or "no free place" in str(o))]
    return Ran(took, sum(counted), len(counted), len(full))


@asynccontextmanager
async def fresh(server: RealSglang, **options: Any) -> "AsyncGenerator[SglangRuntime]":
    """A runtime that has learned nothing yet, over a server whose prefix cache is empty."""
    await asyncio.to_thread(server.post, "/flush_cache", {})
    runtime = SglangRuntime(served(server, **options), keys={})
    try:
        yield runtime
    finally:
        await runtime.aclose()


async def served_tokens(server: RealSglang, system: str, user: str) -> list[int]:
    """The tokens of two messages as the server reads them, template and all."""
    text = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    asked = {"model": server.model, "messages": text, "chat_template_kwargs": {"enable_thinking": False}}
    status, answer = await asyncio.to_thread(server.post, "/v1/tokenize", asked)
    assert status == 200, answer
    return json.loads(answer)["tokens"]
