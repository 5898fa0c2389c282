"""Packs, endpoints and calls for the tests of the SGLang runtime."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from pandora_dagster.contracts.enums import ModelLayer, OutputFormat
from pandora_dagster.contracts.model_calls import ModelAnswer, Part, PromptPack
from pandora_dagster.errors import ModelError
from pandora_dagster.runtime.sglang.endpoints import Endpoints, RuntimeFile, select_endpoints
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from tests.runtime.fake_sglang import FakeSglang

PACK = PromptPack(
    call_id="call-000001",
    recipe="pipeline/planner_chat",
    recipe_version="abc",
    role="planner",
    layer=ModelLayer.MIND,
    mode="chat",
    output_format=OutputFormat.JSON,
    output_schema={"type": "object", "properties": {"answer": {"type": "string", "maxLength": 9}}, "required": ["answer"]},
    temperature=None,
    max_output_tokens=50,
    parts=(Part("policy", "policy", "Be exact.", 3), Part("role", "role", "You plan.", 3), Part("query", "query", "What next?", 4)),
    answer_cue="Answer:",
)


def pack(**changes: Any) -> PromptPack:
    return replace(PACK, **changes)


def endpoints(base_url: str, *, layers: Mapping[str, Mapping[str, Any]] | None = None, **server: Any) -> Endpoints:
    """Every layer on one server at `base_url`; `server` and `layers` change what `runtime.yaml` would say."""
    fields = {"base_url": base_url, "model": "tiny", "context_length": 4_096, **server}
    use = {layer.value: {"server": "one", "temperature": 0.5, **(layers or {}).get(layer.value, {})} for layer in ModelLayer}
    file = RuntimeFile.model_validate({"preset": "p", "presets": {"p": {"servers": {"one": fields}, "layers": use}}})
    return select_endpoints(file, source="runtime.yaml")


KEY = "sk-a-very-secret-key"


def run(work: Callable[[], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        return await work()

    return asyncio.run(main())


async def ask(server: FakeSglang, given: PromptPack | None = None, *, timeout_s: float = 5, **fields: Any) -> ModelAnswer:
    runtime = SglangRuntime(endpoints(server.base_url, **fields), keys={"SGLANG_API_KEY": KEY})
    try:
        return await runtime.complete(given or pack(), timeout_s=timeout_s)
    finally:
        await runtime.aclose()


def exchange(server: FakeSglang, given: PromptPack | None = None, **fields: Any) -> ModelAnswer:
    async def work() -> ModelAnswer:
        async with server:
            return await ask(server, given, **fields)

    return run(work)


def failing(server: FakeSglang, given: PromptPack | None = None, **fields: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        exchange(server, given, **fields)
    return caught.value
