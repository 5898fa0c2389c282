"""The SGLang runtime against a server on a real socket: what is sent, what comes back, and what stays in order."""

import asyncio
import json
import logging
import subprocess
import sys
from itertools import permutations
from typing import Any

import pytest

from pandora_dagster.contracts.enums import ModelLayer, OutputFormat
from pandora_dagster.contracts.model_calls import ModelAnswer, Usage
from pandora_dagster.errors import ModelRejectedError, ModelTimeoutError
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from tests.runtime.fake_sglang import FakeSglang, hangs, resets, response, sends
from tests.runtime.sglang_packs import KEY, ask, endpoints, exchange, failing, pack, run


def test_answers_with_text_usage_model_and_latency() -> None:
    """An answer carries the server's text and counts, cached tokens among them, and who made it."""
    server = FakeSglang(takes_s=0.02)
    answer = exchange(server)
    assert (answer.text, answer.finish_reason, answer.runtime, answer.model) == ('{"answer": "yes"}', "stop", "sglang", "tiny")
    assert answer.usage.prompt == answer.usage.cached + 1 > 1
    assert answer.usage.output == 2
    assert 20 <= answer.latency_ms < 5_000


def test_chat_layers_send_system_and_user() -> None:
    """A chat layer gets the shared prefix as system message, the rest as user message, and never seeds or streams."""
    server = FakeSglang()
    exchange(server)
    (sent,) = server.requests
    assert sent["messages"] == [
        {"role": "system", "content": "Be exact.\n\nYou plan."},
        {"role": "user", "content": "<query>\nWhat next?\n</query>"},
    ]
    assert (sent["model"], sent["max_tokens"], sent["temperature"]) == ("tiny", 50, 0.5)
    assert sent["chat_template_kwargs"] == {"enable_thinking": False}
    assert "seed" not in sent and not sent.get("stream")


def test_plain_layers_send_one_text() -> None:
    """A layer without chat template gets system, blank line, user and an answer cue as one prompt, where to stop, and the same grammar."""
    server = FakeSglang()
    exchange(server, chat=False)
    (sent,) = server.requests
    assert sent["prompt"] == "Be exact.\n\nYou plan.\n\n<query>\nWhat next?\n</query>\n\nAnswer:\n"
    assert sent["stop"] == ["\n<document", "\n<query>", "\n<variables>", "\n<feedback>"]
    assert "messages" not in sent and "chat_template_kwargs" not in sent
    assert sent["response_format"]["type"] == "json_schema"


def test_json_recipes_are_constrained_by_a_safe_schema() -> None:
    """The schema that travels has no length bounds; the recipe's own is left as it was."""
    server, given = FakeSglang(), pack()
    exchange(server, given)
    sent = server.requests[0]["response_format"]
    assert sent["type"] == "json_schema" and sent["json_schema"]["name"] == "planner_chat"
    assert sent["json_schema"]["schema"] == {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
    assert given.output_schema and given.output_schema["properties"]["answer"]["maxLength"] == 9


@pytest.mark.parametrize(
    ("form", "schema", "sent"),
    [
        (OutputFormat.JSON, None, {"type": "json_object"}),
        (OutputFormat.MARKDOWN, None, None),
        (OutputFormat.TEXT, None, None),
        (OutputFormat.YAML, {"type": "object"}, None),
    ],
)
def test_only_json_is_constrained(form: OutputFormat, schema: Any, sent: Any) -> None:
    """Without a schema any JSON object will do; other formats are free."""
    server = FakeSglang()
    exchange(server, pack(output_format=form, output_schema=schema))
    assert server.requests[0].get("response_format") == sent


def test_a_base_model_never_thinks() -> None:
    """Plain text has no template that could ask for it."""
    server = FakeSglang()
    exchange(server, pack(), chat=False)
    assert "chat_template_kwargs" not in server.requests[0]


def test_a_recipes_temperature_wins() -> None:
    """The recipe's temperature overrides its layer's, 0 included."""
    server = FakeSglang()
    exchange(server, pack(temperature=0.0))
    assert server.requests[0]["temperature"] == 0.0


def test_no_request_id_begins_with_another() -> None:
    """Request ids stay free of prefixes, whatever the call ids and however often a call is tried."""
    server = FakeSglang()

    async def work() -> None:
        async with server:
            runtime = SglangRuntime(endpoints(server.base_url), keys={})
            for call in ("call-1", "call-1", "call-11", "call", "call-1/1"):
                await runtime.complete(pack(call_id=call), timeout_s=5)
            await runtime.aclose()

    run(work)
    ids = [sent["rid"] for sent in server.requests]
    assert len(set(ids)) == 5
    assert not [(a, b) for a, b in permutations(ids, 2) if b.startswith(a)]


def test_a_key_opens_the_server_and_stays_secret(caplog: pytest.LogCaptureFixture) -> None:
    """The named variable's key is sent; neither a refusal that echoes it nor a log line shows it."""
    caplog.set_level(logging.INFO)
    server = FakeSglang(api_key=KEY)
    assert exchange(server, api_key_env="SGLANG_API_KEY").text
    echo = response(401, json.dumps({"error": f"Incorrect API key: {KEY}"}).encode())
    fault = failing(FakeSglang(misbehaves=sends(echo)), api_key_env="SGLANG_API_KEY")
    assert "Incorrect API key: ***" in str(fault) and fault.hint == "Set SGLANG_API_KEY to the server's key."
    assert KEY not in repr(fault) + fault.hint + caplog.text


@pytest.mark.parametrize(
    ("keys", "fields"), [({}, "is not set"), ({"OTHER_KEY": " "}, "is not set"), ({"OTHER_KEY": "a\nb"}, "has characters")]
)
def test_a_key_that_is_missing_or_no_key(keys: dict[str, str], fields: str) -> None:
    """A call without its key is rejected before anything is sent."""
    runtime = SglangRuntime(endpoints("http://127.0.0.1:9/v1", api_key_env="OTHER_KEY"), keys=keys)
    with pytest.raises(ModelRejectedError, match=f"OTHER_KEY {fields}"):
        run(lambda: runtime.complete(pack(), timeout_s=5))


def test_missing_usage_counts_as_zero_and_is_noted_once(caplog: pytest.LogCaptureFixture) -> None:
    """An answer without usage is an answer; that its tokens are unknown is reported once a server."""
    server = FakeSglang(reports_usage=False)

    async def work() -> list[Usage]:
        async with server:
            runtime = SglangRuntime(endpoints(server.base_url), keys={})
            answers = [await runtime.complete(pack(), timeout_s=5) for _ in range(3)]
            await runtime.aclose()
            return [answer.usage for answer in answers]

    assert run(work) == [Usage()] * 3
    assert caplog.text.count("answers without usage") == 1


def test_without_a_cache_report_nothing_is_cached() -> None:
    """A server that reports no cached tokens counts none."""
    assert exchange(FakeSglang(reports_cache=False)).usage.cached == 0


def test_calls_wait_their_turn() -> None:
    """No more than max_connections calls are under way at once, so that none meets a full queue; each gets its own answer, and to wait
    counts not for its own time: all take longer together."""
    server = FakeSglang(max_running=3, max_queued=0, takes_s=0.3, says=lambda body: body["rid"])

    async def work() -> list[ModelAnswer]:
        async with server:
            runtime = SglangRuntime(endpoints(server.base_url, max_connections=3), keys={})
            calls = (runtime.complete(pack(call_id=f"call-{n:03}"), timeout_s=1.2) for n in range(15))
            answers = await asyncio.gather(*calls)
            await runtime.aclose()
            return answers

    answers = run(work)
    assert [a.text.partition("/")[0] for a in answers] == [f"call-{n:03}" for n in range(15)]
    assert server.most_running == 3 and server.connections <= 4  # one looks at /metrics


def test_a_failed_call_gives_its_place_back() -> None:
    """After time-outs and refusals the endpoint serves on."""
    server = FakeSglang(misbehaves=hangs())

    async def work() -> ModelAnswer:
        async with server:
            runtime = SglangRuntime(endpoints(server.base_url, max_connections=1), keys={})
            for _ in range(2):
                with pytest.raises(ModelTimeoutError):
                    await runtime.complete(pack(), timeout_s=0.1)
            server.misbehaves = None
            answer = await runtime.complete(pack(), timeout_s=5)
            await runtime.aclose()
            return answer

    assert run(work).text


def test_a_cancelled_call_is_cancelled() -> None:
    """Cancellation passes through as itself: it is no failure of the server."""
    server = FakeSglang(misbehaves=hangs())

    async def work() -> None:
        async with server:
            call = asyncio.create_task(ask(server))
            await asyncio.sleep(0.2)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

    run(work)


def test_one_runtime_on_several_loops() -> None:
    """Each event loop has connections of its own, and they close with their loop even where nobody closes them."""
    server = FakeSglang()
    runtimes: list[SglangRuntime] = []

    async def work() -> str:
        async with server:
            runtimes[:] = runtimes or [SglangRuntime(endpoints(server.base_url), keys={})]
            return (await runtimes[0].complete(pack(), timeout_s=5)).text

    assert [run(work) for _ in range(3)] == ['{"answer": "yes"}'] * 3


def test_a_proxy_is_not_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy named in the environment does not come between us and a server on loopback."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    assert exchange(FakeSglang()).text


def test_what_a_layer_is() -> None:
    """Model, context and temperature come from the runtime file."""
    runtime = SglangRuntime(endpoints("http://127.0.0.1:9/v1", layers={"VOICE": {"temperature": 0.7}}), keys={})
    assert (runtime.name, runtime.model(ModelLayer.VOICE), runtime.context_limit(ModelLayer.VOICE)) == ("sglang", "tiny", 4_096)
    assert (runtime.temperature(ModelLayer.VOICE), runtime.temperature(ModelLayer.MIND)) == (0.7, 0.5)


@pytest.mark.parametrize("chat", [True, False])
def test_a_prompt_is_counted_as_it_will_be_sent(chat: bool) -> None:
    """The count before a call is the usage after it, with a chat template and without."""
    server = FakeSglang()

    async def work() -> tuple[int | None, int]:
        async with server:
            runtime = SglangRuntime(endpoints(server.base_url, chat=chat), keys={})
            counted = await runtime.count(pack())
            answer = await runtime.complete(pack(), timeout_s=5)
            await runtime.aclose()
            return counted, answer.usage.prompt

    counted, served = run(work)
    assert counted == served > 0


@pytest.mark.parametrize(
    "server",
    [FakeSglang(tokenizes=False), FakeSglang(misbehaves=sends(response(200, b"[]"))), FakeSglang(misbehaves=resets())],
    ids=["no such path", "another answer", "broken"],
)
def test_a_server_that_does_not_count_is_no_failure(server: FakeSglang) -> None:
    """Where the server does not say how long a prompt is nobody says; the call itself tells what is wrong."""
    server.port = 0

    async def work() -> int | None:
        async with server:
            runtime = SglangRuntime(endpoints(server.base_url), keys={})
            counted = await runtime.count(pack())
            await runtime.aclose()
            return counted

    assert run(work) is None


def test_importing_the_runtime_costs_no_client() -> None:
    """The client library is loaded by the first connection, not by an import."""
    code = "import sys, pandora_dagster.runtime.sglang.sglang_runtime; sys.exit('openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
