"""What goes wrong with a server, as the classes and sentences that `failures` and `answers` make of it."""

import asyncio
import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.errors import (
    BadAnswerError,
    EndpointFullError,
    ModelError,
    ModelRejectedError,
    ModelTimeoutError,
    RateLimitedError,
    RuntimeUnreachableError,
)
from pandora_dagster.runtime.sglang.model_errors import model_error, retry_after_seconds
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from tests.runtime.fake_sglang import FakeSglang, drips, error, hangs, resets, response, sends
from tests.runtime.sglang_packs import KEY, ask, endpoints, failing, pack, run

HTML = b"<html><body><h1>Internal Server Error</h1></body></html>"
LONG = json.dumps(error(503, "ServiceUnavailableError", "Request running timeout reached.")).encode()

FAILURES = {
    "cut": (FakeSglang(says=lambda _: "word " * 99), BadAnswerError, "the answer was cut"),
    "aborted": (FakeSglang(finish_reason="abort"), RuntimeUnreachableError, "aborted the request"),
    "unknown end": (FakeSglang(finish_reason="tired"), BadAnswerError, "'tired': expected 'stop'"),
    "no end": (FakeSglang(finish_reason=None), BadAnswerError, "'None': expected 'stop'"),
    "empty": (FakeSglang(says=lambda _: ""), BadAnswerError, "an empty answer: expected text"),
    "blank": (FakeSglang(says=lambda _: " \n\t"), BadAnswerError, "an empty answer: expected text"),
    "no content": (FakeSglang(says=lambda _: None), BadAnswerError, "an empty answer: expected text"),
    "thought only": (FakeSglang(says=lambda _: None, thinks="hmm"), BadAnswerError, "only thoughts and no answer"),
    "queue full": (
        FakeSglang(max_running=0, max_queued=0),
        EndpointFullError,
        "0.2 s; last reply: status 503: The request queue is full.",
    ),
    "503 without body": (FakeSglang(misbehaves=sends(response(503, b""))), EndpointFullError, "last reply: status 503: expected"),
    "ran too long": (FakeSglang(misbehaves=sends(response(503, LONG))), RuntimeUnreachableError, "status 503: Request running timeout"),
    "too many": (FakeSglang(misbehaves=sends(response(429, b"{}"))), RateLimitedError, "status 429"),
    "prompt too long": (FakeSglang(context=5), ModelRejectedError, "status 400: The input (8 tokens) is longer than the model's"),
    "answer too long": (FakeSglang(context=20), ModelRejectedError, "status 400: Requested token count exceeds"),
    "native form": (FakeSglang(misbehaves=sends(response(400, b'{"error": {"message": "no"}}'))), ModelRejectedError, "status 400: no: "),
    "no key": (FakeSglang(api_key=KEY), ModelRejectedError, "status 401: Unauthorized: expected the key to be accepted"),
    "forbidden": (FakeSglang(misbehaves=sends(response(403, b"{}"))), ModelRejectedError, "status 403"),
    "not found": (FakeSglang(misbehaves=sends(response(404, b'{"detail": "Not Found"}'))), ModelRejectedError, "404: Not Found: "),
    "redirect": (FakeSglang(misbehaves=sends(response(302, b""))), ModelRejectedError, "not a redirect"),
    "500 in HTML": (FakeSglang(misbehaves=sends(response(500, HTML, kind="text/html"))), RuntimeUnreachableError, "status 500: exp"),
    "200 in HTML": (FakeSglang(misbehaves=sends(response(200, HTML, kind="text/html"))), RuntimeUnreachableError, "are no completion"),
    "200 in JSON": (FakeSglang(misbehaves=sends(response(200, b'{"choices": []}'))), RuntimeUnreachableError, "are no completion"),
    "half a body": (FakeSglang(misbehaves=sends(response(200, b'{"cho', length=99))), RuntimeUnreachableError, "the exchange failed"),
    "closed at once": (FakeSglang(misbehaves=sends(b"")), RuntimeUnreachableError, "the exchange failed"),
    "not HTTP": (FakeSglang(misbehaves=sends(b"220 mail.example.org ESMTP\r\n")), RuntimeUnreachableError, "the exchange failed"),
    "reset": (FakeSglang(misbehaves=resets()), RuntimeUnreachableError, "expected a reachable model server"),
    "endless answer": (FakeSglang(misbehaves=drips(b"x" * 500_000, every_s=0)), RuntimeUnreachableError, "over 8388608 bytes"),
    "endless refusal": (FakeSglang(misbehaves=drips(b"x" * 50_000, every_s=0, status=500)), RuntimeUnreachableError, "status 500"),
}


@pytest.mark.parametrize("case", FAILURES)
def test_failure_classes(case: str) -> None:
    """Each failure has its class, one sentence with layer, endpoint and what was expected, and a remedy."""
    server, kind, message = FAILURES[case]
    server.port = 0
    fault = failing(server, patience_s=0.2)
    assert type(fault) is kind
    assert str(fault).startswith(f"MIND at {server.base_url}: ")
    assert message in str(fault) and "expected" in str(fault) and "\n" not in str(fault)
    assert fault.hint.endswith(".") and fault.hint not in str(fault)


@pytest.mark.parametrize(
    "misbehaves",
    [hangs(), drips(b" " * 10, every_s=0.05), drips(b" " * 10, every_s=0.05, status=500)],
    ids=["silent", "200 bytes a second", "slow refusal"],
)
def test_the_deadline_holds_over_everything(misbehaves: Any) -> None:
    """However the server dawdles, the call ends at its deadline."""
    began = time.monotonic()
    fault = failing(FakeSglang(misbehaves=misbehaves), timeout_s=0.3)
    assert type(fault) is ModelTimeoutError and "no complete answer within 0.3 s" in str(fault)
    assert str(fault).startswith("MIND at http://127.0.0.1:") and "timeout_ms in the recipe" in fault.hint
    assert time.monotonic() - began < 30


def test_nothing_listens() -> None:
    """A port where nothing listens is unreachable, with the remedy."""
    closed = FakeSglang()

    async def work() -> None:
        async with closed:
            pass
        await ask(closed)

    with pytest.raises(RuntimeUnreachableError, match="refused the connection: expected") as caught:
        run(work)
    assert caught.value.hint == "Start the server, or correct base_url in runtime.yaml."


def test_unknown_host() -> None:
    """A host that no name service knows is unreachable, and said to be unknown."""
    runtime = SglangRuntime(endpoints("http://sglang.invalid:30000/v1"), keys={})
    with pytest.raises(RuntimeUnreachableError, match=r"MIND at http://sglang\.invalid:30000/v1: the host name is unknown: "):
        run(lambda: runtime.complete(pack(), timeout_s=20))


def test_tls_against_a_plain_server() -> None:
    """https to a server that speaks http fails as TLS, not as a riddle."""

    async def speaks_http(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    async def work() -> None:
        async with await asyncio.start_server(speaks_http, "127.0.0.1", 0) as plain:
            runtime = SglangRuntime(endpoints(f"https://127.0.0.1:{plain.sockets[0].getsockname()[1]}/v1"), keys={})
            await runtime.complete(pack(), timeout_s=5)

    with pytest.raises(RuntimeUnreachableError, match=r"^MIND at https://127\.0\.0\.1:[0-9]+/v1: TLS failed") as caught:
        run(work)
    assert caught.value.hint == "Check http or https in base_url, and the server's certificate."


def test_a_fault_of_our_own_is_no_failure_of_the_server() -> None:
    """What has nothing to do with the connection is not dressed up as one."""
    endpoint = endpoints("http://127.0.0.1:9/v1")[ModelLayer.MIND]
    assert model_error(TypeError("a bug"), endpoint) is None
    assert model_error(ConnectionResetError(), endpoint) is not None


NOW = datetime(2026, 1, 4, 14, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        (" 0 ", 0.0),
        ("Sun, 04 Jan 2026 14:30:09 GMT", 9.0),
        ("Sun, 04 Jan 2026 14:29:00 GMT", 0.0),
        ("99999999999999999999", 86_400.0),
        ("", 0.0),
        ("-3", 0.0),
        ("soon", 0.0),
        ("1.5", 0.0),
        ("\u0663", 0.0),
        ("Sun, 99 Jan 2026 14:30:09 GMT", 0.0),
    ],
)
def test_retry_after_is_read_in_both_forms(header: str, seconds: float) -> None:
    """Seconds or a date; what is neither asks for nothing."""
    assert retry_after_seconds(header, NOW) == seconds


@pytest.mark.parametrize(("status", "kind"), [(429, RateLimitedError), (503, RuntimeUnreachableError), (200, None)])
def test_what_a_server_asks_for_comes_with_the_error(status: int, kind: type[RuntimeUnreachableError] | None) -> None:
    """From a real response on a real socket; a success has no use for it."""
    body = LONG if status == 503 else b"{}"

    async def asked() -> ModelError:
        async with FakeSglang(misbehaves=sends(response(status, body, retry_after="4"))) as server:
            with pytest.raises(ModelError) as caught:
                await ask(server)
        return caught.value

    error = run(asked)
    assert error.retry_after_s == (4.0 if kind else 0.0) and (kind is None or isinstance(error, kind))
