"""Streamed answers: words as they come, the same answer at the end, and the same failures on the way."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandora_dagster.contracts.model_calls import ModelAnswer
from pandora_dagster.errors import (
    BadAnswerError,
    EndpointFullError,
    ModelError,
    ModelRejectedError,
    ModelTimeoutError,
    RuntimeUnreachableError,
)
from pandora_dagster.runtime.sglang.exchange import parse_events
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from tests.runtime.fake_sglang import FakeSglang, drips, error, event, response, sends
from tests.runtime.sglang_packs import endpoints, pack, run

TEXT = '{"answer": "yes, after all"}'


async def hear(server: FakeSglang, on_words: Any, *, timeout_s: float = 5, **options: Any) -> ModelAnswer:
    async with server:
        runtime = SglangRuntime(endpoints(server.base_url, **options), keys={})
        try:
            return await runtime.complete(pack(), timeout_s=timeout_s, on_words=on_words)
        finally:
            await runtime.aclose()


@pytest.mark.parametrize("chat", [True, False])
def test_words_come_one_after_the_other_and_make_the_answer(chat: bool) -> None:
    """What is reported piece by piece is the answer's text; counts and reason are those of an answer in one body."""
    heard: list[str] = []
    server = FakeSglang(says=lambda _: TEXT)
    answer = run(lambda: hear(server, heard.append, chat=chat))
    assert heard == ['{"answer": ', '"yes, ', "after ", 'all"}'] and answer.text == TEXT
    assert (answer.finish_reason, answer.usage.prompt, answer.usage.output) == ("stop", answer.usage.cached + 1, 4)
    assert server.requests[0]["stream_options"] == {"include_usage": True}


STREAM = "text/event-stream"
FIRST = event({"choices": [{"delta": {"content": "so "}, "finish_reason": None}]})
CASES: dict[str, tuple[FakeSglang, type[ModelError], str]] = {
    "cut": (FakeSglang(says=lambda _: "word " * 99), BadAnswerError, "the answer was cut"),
    "aborted": (FakeSglang(finish_reason="abort"), RuntimeUnreachableError, "aborted the request"),
    "empty": (FakeSglang(says=lambda _: ""), BadAnswerError, "an empty answer"),
    "thought only": (FakeSglang(says=lambda _: None, thinks="hmm"), BadAnswerError, "only thoughts and no answer"),
    "prompt too long": (FakeSglang(context=5), ModelRejectedError, "status 400: The input (8 tokens) is longer"),
    "queue full": (FakeSglang(max_running=0, max_queued=0), EndpointFullError, "status 503: The request queue is full."),
    "refused in the stream": (
        FakeSglang(misbehaves=sends(response(200, event({"error": error(400, "BAD_REQUEST", "Failed to compile")}), kind=STREAM))),
        ModelRejectedError,
        "status 400: Failed to compile",
    ),
    "full in the stream": (
        FakeSglang(misbehaves=sends(response(200, FIRST + event({"error": error(503, "X", "full")}), kind=STREAM))),
        RuntimeUnreachableError,
        "status 503: full",
    ),
    "error without a code": (
        FakeSglang(misbehaves=sends(response(200, event({"error": {"message": "lost"}}), kind=STREAM))),
        RuntimeUnreachableError,
        "status 500: lost",
    ),
    "malformed": (
        FakeSglang(misbehaves=sends(response(200, FIRST + b"data: {nope\n\n", kind=STREAM))),
        RuntimeUnreachableError,
        "an event of 5 bytes that is no part of an answer",
    ),
    "broken off": (FakeSglang(misbehaves=sends(response(200, FIRST, kind=STREAM))), RuntimeUnreachableError, "ended after 3 characters"),
    "no events": (FakeSglang(misbehaves=sends(response(200, b"<html>"))), RuntimeUnreachableError, "ended after 0 characters"),
    "cut in the middle": (FakeSglang(misbehaves=sends(response(200, FIRST, length=9_999))), RuntimeUnreachableError, "exchange failed"),
    "endless": (FakeSglang(misbehaves=drips(b": x" * 200_000, every_s=0)), RuntimeUnreachableError, "over 8388608 bytes"),
}


@pytest.mark.parametrize("case", CASES)
def test_failures_of_a_stream(case: str) -> None:
    """Each failure has the class it has without a stream, one sentence with layer and endpoint, and a remedy."""
    server, kind, message = CASES[case]
    server.port = 0
    with pytest.raises(ModelError) as caught:
        run(lambda: hear(server, lambda _: None, patience_s=0.2))
    assert type(caught.value) is kind and message in str(caught.value)
    assert str(caught.value).startswith(f"MIND at {server.base_url}: ") and "expected" in str(caught.value)
    assert caught.value.hint.endswith(".")


def test_the_deadline_holds_over_a_stream() -> None:
    """A stream that drips on beyond the call's time ends there."""
    with pytest.raises(ModelTimeoutError, match=r"within 0\.3 s"):
        run(lambda: hear(FakeSglang(misbehaves=drips(FIRST, every_s=0.05)), lambda _: None, timeout_s=0.3))


def test_a_fault_of_the_listener_is_its_own() -> None:
    """A closed terminal is no broken connection."""

    def closed(_: str) -> None:
        raise BrokenPipeError("the terminal is gone")

    with pytest.raises(BrokenPipeError, match="the terminal is gone"):
        run(lambda: hear(FakeSglang(), closed))


@given(st.lists(st.binary(max_size=8).map(lambda b: b.replace(b"\n", b"").strip()), max_size=6), st.integers(1, 9))
def test_events_are_whole_wherever_the_chunks_end(data: list[bytes], step: int) -> None:
    """Events come out as they went in, however the network cuts them; comments are passed over."""
    body = b"".join(b": ping\r\n\r\ndata: " + d + b"\r\n\r\n" for d in data)

    async def chunks() -> AsyncIterator[bytes]:
        for at in range(0, len(body), step):
            yield body[at : at + step]

    async def work() -> list[bytes]:
        return [found async for found in parse_events(chunks())]

    assert asyncio.run(work()) == data
