"""What every runtime must do, asked of the extractive one, of SGLang's on a socket, and of the fakes that tests script."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar

import pytest

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.model_calls import ModelAnswer, PromptPack
from pandora_dagster.contracts.ports.model_runtime import ModelRuntime
from pandora_dagster.errors import ModelError, ModelRejectedError, ModelTimeoutError
from pandora_dagster.runtime.extractive.extractive_runtime import ExtractiveRuntime
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from tests.fakes.model_runtimes import ScriptedRuntime, SequenceRuntime
from tests.phases.vocabulary import vocabulary
from tests.runtime.extractive.packs import context, make_pack
from tests.runtime.fake_sglang import FakeSglang, resets
from tests.runtime.sglang_packs import endpoints

T = TypeVar("T")
ANSWER = '{"next_step": "synthesis", "reasoning": "nothing has to be looked up"}'
PACK = make_pack("planner", "which lamp is blue?", {"context.md": context("which lamp is blue?")})
NO_ROLE = replace(PACK, role="poet")
"""A pack that each runtime refuses."""


def extractive() -> ModelRuntime:
    return ExtractiveRuntime(vocabulary(), lambda: datetime(2026, 1, 4, tzinfo=UTC))


def scripted() -> ModelRuntime:
    return ScriptedRuntime({"planner": ANSWER, "poet": ModelRejectedError("poet: no such role")})


def sequence() -> ModelRuntime:
    return SequenceRuntime([ANSWER], {ModelLayer.MIND: 4_096}, tokenizer=len)


@asynccontextmanager
async def opened(kind: str, *, server: FakeSglang | None = None, made: ModelRuntime | None = None) -> AsyncIterator[ModelRuntime]:
    """The runtime of this kind; `server` and `made` stand in for what it has usually."""
    if kind != "sglang":
        runtime = made or {"extractive": extractive, "scripted": scripted, "sequence": sequence}[kind]()
        yield runtime
        await runtime.aclose()
        return
    async with server or FakeSglang(says=lambda _: ANSWER) as running:
        runtime = SglangRuntime(endpoints(running.base_url), keys={})
        yield runtime
        await runtime.aclose()


@pytest.fixture(params=["extractive", "sglang", "scripted", "sequence"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def within(kind: str, work: Callable[[ModelRuntime], Awaitable[T]]) -> T:
    async def main() -> T:
        async with opened(kind) as runtime:
            return await work(runtime)

    return asyncio.run(main())


def test_an_answer_says_which_runtime_and_model_gave_it(kind: str) -> None:
    """A whole answer ends with the reason `stop`."""

    async def work(runtime: ModelRuntime) -> tuple[ModelAnswer, str, str]:
        return await runtime.complete(PACK, timeout_s=10), runtime.name, runtime.model(PACK.layer)

    answer, name, model = within(kind, work)
    assert (answer.runtime, answer.model, answer.finish_reason) == (name, model, "stop")
    assert name and model and answer.text and answer.latency_ms >= 0 and answer.usage.prompt >= 0


def test_its_words_make_the_answer(kind: str) -> None:
    """In pieces of any size, none twice and none left out."""
    words: list[str] = []
    answer = within(kind, lambda runtime: runtime.complete(PACK, timeout_s=10, on_words=words.append))
    assert "".join(words) == answer.text


def test_an_error_of_the_listener_ends_the_call(kind: str) -> None:
    class EnoughError(Exception):
        """The listener has heard enough."""

    def refuse(words: str) -> None:
        raise EnoughError(words)

    with pytest.raises(EnoughError):
        within(kind, lambda runtime: runtime.complete(PACK, timeout_s=10, on_words=refuse))


def test_the_same_runtime_answers_many_at_once(kind: str) -> None:
    async def work(runtime: ModelRuntime) -> list[ModelAnswer]:
        return await asyncio.gather(*(runtime.complete(PACK, timeout_s=10) for _ in range(5)))

    assert len({answer.text for answer in within(kind, work)}) == 1


def test_a_layer_has_a_limit_a_temperature_and_a_count_of_tokens(kind: str) -> None:
    """A limit or a count that the runtime does not have is None."""

    async def work(runtime: ModelRuntime) -> None:
        for layer in ModelLayer:
            limit, count = runtime.context_limit(layer), await runtime.count(replace(PACK, layer=layer))
            assert 0 <= runtime.temperature(layer) <= 2 and (limit is None or limit > 0) and (count is None or count > 0)

    within(kind, work)


def refusing(kind: str) -> tuple[FakeSglang | None, ModelRuntime | None, PromptPack]:
    if kind == "sglang":
        return FakeSglang(misbehaves=resets()), None, PACK
    return None, SequenceRuntime([ModelRejectedError("refused")]) if kind == "sequence" else None, NO_ROLE


def test_what_cannot_be_answered_is_a_model_error(kind: str) -> None:
    """Raised each time, never an answer."""
    server, made, pack = refusing(kind)

    async def main() -> None:
        async with opened(kind, server=server, made=made) as runtime:
            for _ in range(2):
                with pytest.raises(ModelError):
                    await runtime.complete(pack, timeout_s=10)

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["sglang", "sequence"])
def test_no_answer_in_time_is_a_timeout(kind: str) -> None:
    """Of the runtimes that wait for something."""

    async def main() -> None:
        async with opened(kind, server=FakeSglang(takes_s=30), made=SequenceRuntime([30.0])) as runtime:
            with pytest.raises(ModelTimeoutError):
                await runtime.complete(PACK, timeout_s=0.05)

    asyncio.run(main())
