"""A server that is full, impatient, or told to stop; and a client that is gone."""

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from pandora_dagster.contracts.calls import ModelAnswer
from pandora_dagster.errors import ModelTimeoutError, RuntimeUnreachableError
from pandora_dagster.runtime.sglang.runtime import SglangRuntime
from tests.runtime.sglang_packs import endpoints, pack, run
from tests.sglang.conftest import RUNNING_S, WAITING_S
from tests.sglang.serving import CONTEXT, RealSglang

YES = {"output_schema": {"enum": ["yes", "no"]}}
ENDLESS = {"output_schema": {"type": "array", "minItems": 4_000, "items": {"enum": ["a chair"]}}, "max_output_tokens": 16_000}
"""Tens of thousands of tokens, whatever the model: longer than any patience here."""
PATIENT_S = 120
_CALLS = itertools.count(1)


@contextmanager
def busy(server: RealSglang, count: int = 1) -> Iterator[None]:
    """`count` requests that do not end by themselves, from another client; aborted at the end."""
    ids = [f"busy/{next(_CALLS)}/" for _ in range(count)]
    told = {"model": server.model, "messages": [{"role": "user", "content": "On and on."}], "max_tokens": 20_000, "ignore_eos": True}
    threads = [threading.Thread(target=server.post, args=("/v1/chat/completions", {**told, "rid": rid})) for rid in ids]
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


def until(true: Callable[[], bool], *, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"not so within {seconds:g} s"
        time.sleep(0.05)


async def asked(server: RealSglang, *, timeout_s: float = PATIENT_S, **changes: object) -> ModelAnswer:
    told = endpoints(server.base_url, model=server.model, context_length=CONTEXT, max_connections=64)
    runtime = SglangRuntime(told, keys={})
    try:
        return await runtime.complete(pack(call_id=f"limit-{next(_CALLS)}", temperature=1.0, **changes), timeout_s=timeout_s)
    finally:
        await runtime.aclose()


def test_a_full_queue(small: RealSglang) -> None:
    """Where one request runs and one waits the next is refused at once; that can be retried, and afterwards succeeds."""

    async def together() -> list[ModelAnswer | BaseException]:
        return await asyncio.gather(*(asked(small, **ENDLESS, timeout_s=RUNNING_S / 2) for _ in range(4)), return_exceptions=True)

    outcomes = run(together)
    refused = [o for o in outcomes if isinstance(o, RuntimeUnreachableError)]
    assert any("status 503: The request queue is full." in str(r) for r in refused) and all(r.retryable for r in refused)
    assert {type(o) for o in outcomes} <= {RuntimeUnreachableError, ModelTimeoutError}, outcomes
    until(lambda: small.running() + small.waiting() == 0)
    assert run(lambda: asked(small, **YES)).text in ('"yes"', '"no"')


def test_a_server_that_lets_nobody_wait_long(small: RealSglang) -> None:
    """A request that waited too long is refused as the server's busyness, to be tried again."""
    with busy(small):
        began = time.monotonic()
        with pytest.raises(RuntimeUnreachableError, match=r"status 503: Request waiting timeout reached\.") as caught:
            run(lambda: asked(small, **YES))
        assert caught.value.retryable and time.monotonic() - began >= WAITING_S


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
