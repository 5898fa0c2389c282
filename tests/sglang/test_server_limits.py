"""A server that is full, impatient, or told to stop; and a client that is gone."""

import asyncio
import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pandora_dagster.contracts.model_calls import ModelAnswer
from pandora_dagster.errors import EndpointFullError, ModelTimeoutError, RuntimeUnreachableError
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from tests.runtime.sglang_packs import endpoints, pack, run
from tests.sglang.conftest import WAITING_S
from tests.sglang.real_servers import CONTEXT, RealSglang, until

YES = {"output_schema": {"enum": ["yes", "no"]}}
ENDLESS = {"output_schema": {"type": "array", "minItems": 4_000, "items": {"enum": ["a chair"]}}, "max_output_tokens": 16_000}
"""Tens of thousands of tokens, whatever the model: longer than any patience here."""
PATIENT_S = 120
_CALLS = itertools.count(1)


@contextmanager
def busy(server: RealSglang, count: int = 1) -> Iterator[None]:
    """`count` requests that do not end by themselves, from another client; aborted at the end."""
    ids = [f"busy/{next(_CALLS)}/" for _ in range(count)]
    fields = {"model": server.model, "messages": [{"role": "user", "content": "On and on."}], "max_tokens": 20_000, "ignore_eos": True}
    threads = [threading.Thread(target=server.post, args=("/v1/chat/completions", {**fields, "rid": rid})) for rid in ids]
    for thread in threads:
        thread.start()
    until(lambda: server.waiting() + server.running() >= count)
    try:
        yield
    finally:
        for rid in ids:
            server.post("/abort_request", {"rid": rid})
        for thread in threads:
            thread.join()
        until(lambda: server.running() == 0)


async def asked(server: RealSglang, *, timeout_s: float = PATIENT_S, patience_s: float = PATIENT_S, **changes: object) -> ModelAnswer:
    fields = endpoints(server.base_url, model=server.model, context_length=CONTEXT, max_connections=64, patience_s=patience_s)
    runtime = SglangRuntime(fields, keys={})
    try:
        return await runtime.complete(pack(call_id=f"limit-{next(_CALLS)}", temperature=1.0, **changes), timeout_s=timeout_s)
    finally:
        await runtime.aclose()


def test_a_full_queue_reaches_no_caller(small: RealSglang) -> None:
    """Twelve calls at a server where one runs and one waits: it refuses some, each is answered, and none learns of it."""
    heard: dict[str, float] = {}

    class Meters:
        def count(self, name: str, amount: float = 1.0, **_: str) -> None:
            heard[name] = heard.get(name, 0.0) + amount

        def gauge(self, name: str, value: float, **_: str) -> None:
            heard[name] = value

    async def together() -> list[ModelAnswer]:
        fields = endpoints(small.base_url, model=small.model, context_length=CONTEXT, max_connections=12, patience_s=PATIENT_S)
        runtime = SglangRuntime(fields, keys={}, meters=Meters())
        calls = (runtime.complete(pack(call_id=f"limit-{next(_CALLS)}", temperature=1.0, **YES), timeout_s=PATIENT_S) for _ in range(12))
        try:
            return await asyncio.gather(*calls)
        finally:
            await runtime.aclose()

    assert {answer.text for answer in run(together)} <= {'"yes"', '"no"'}
    assert heard["pandora_server_full_total"] >= 1 and heard["pandora_server_places"] <= 6, heard


def test_a_server_that_lets_nobody_wait_long(small: RealSglang) -> None:
    """A request that waited too long there is sent again; when our own patience is over, that is what is reported."""
    with busy(small):
        began = time.monotonic()
        with pytest.raises(EndpointFullError, match=r"no free slot within 1 s; last reply: status 503: Request waiting timeout reached\."):
            run(lambda: asked(small, patience_s=1, **YES))
        assert time.monotonic() - began >= WAITING_S


@pytest.mark.parametrize("ends", ["time-out", "cancelled"])
def test_a_call_that_waits_at_the_server_is_taken_back(small: RealSglang, ends: str) -> None:
    """It never runs: the queue there is empty again at once, though the server has not begun with it."""
    with busy(small):

        async def work() -> None:
            call = asyncio.create_task(asked(small, **YES, timeout_s=1 if ends == "time-out" else PATIENT_S))
            await asyncio.to_thread(until, lambda: small.waiting() > 0)
            if ends == "cancelled":
                call.cancel()
            with pytest.raises(ModelTimeoutError if ends == "time-out" else asyncio.CancelledError):
                await call

        run(work)
        until(lambda: small.waiting() == 0, seconds=WAITING_S)


def test_a_server_that_lets_nobody_run_long(small: RealSglang) -> None:
    """A request that runs too long is ended by the server, not answered by half."""
    with pytest.raises(RuntimeUnreachableError, match=r"Request running timeout reached|aborted the request") as caught:
        run(lambda: asked(small, **ENDLESS))
    assert caught.value.retryable


def test_an_aborted_call(server: RealSglang) -> None:
    """A call that somebody aborts on the server ends there, with status 200 and no answer: told as such."""
    call_id = f"limit-{next(_CALLS)}"

    async def work() -> None:
        call = asyncio.create_task(asked_as(server, call_id))
        await asyncio.to_thread(until, lambda: server.running() > 0)
        await asyncio.to_thread(server.post, "/abort_request", {"rid": f"{call_id}/1/"})
        with pytest.raises(RuntimeUnreachableError, match="the server aborted the request"):
            await call

    run(work)


async def asked_as(server: RealSglang, call_id: str) -> ModelAnswer:
    runtime = SglangRuntime(endpoints(server.base_url, model=server.model, context_length=CONTEXT), keys={})
    try:
        return await runtime.complete(pack(call_id=call_id, temperature=1.0, **ENDLESS), timeout_s=PATIENT_S)
    finally:
        await runtime.aclose()


@pytest.mark.parametrize("ends", ["time-out", "cancelled"])
def test_a_call_that_is_given_up_leaves_the_server(server: RealSglang, ends: str) -> None:
    """A client that waits no longer takes its request along: the server is free again, and answers the next call."""
    before = server.metric("sglang:num_aborted_requests_total")

    async def work() -> None:
        call = asyncio.create_task(asked(server, **ENDLESS, timeout_s=3 if ends == "time-out" else PATIENT_S))
        await asyncio.to_thread(until, lambda: server.running() > 0)
        if ends == "cancelled":
            call.cancel()
        with pytest.raises(ModelTimeoutError if ends == "time-out" else asyncio.CancelledError):
            await call

    run(work)
    until(lambda: server.running() == 0, seconds=30)
    assert server.metric("sglang:num_aborted_requests_total") > before
    assert run(lambda: asked(server, **YES)).finish_reason == "stop"
