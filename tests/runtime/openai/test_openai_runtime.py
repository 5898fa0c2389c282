"""The `openai` runtime against stand-ins of the servers that people have: what each lacks, the call goes without, and says so."""

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from pandora_dagster.contracts.enums import ModelLayer, OutputFormat
from pandora_dagster.contracts.model_calls import ModelAnswer, PromptPack
from pandora_dagster.errors import BadAnswerError, ModelError, ModelRejectedError, ModelTimeoutError
from pandora_dagster.runtime.openai.openai_runtime import OpenAIRuntime
from pandora_dagster.runtime.sglang.endpoints import Endpoints
from pandora_dagster.runtime.sglang.runtime_file import single_server_endpoints
from tests.runtime.fake_sglang import event, response, sends
from tests.runtime.openai_servers import FakeOpenAI, cloud, llama_cpp, lm_studio, ollama, openai_error, vllm
from tests.runtime.sglang_packs import KEY, pack, run

SERVERS: dict[str, Callable[..., FakeOpenAI]] = {
    "ollama": ollama,
    "llama.cpp": llama_cpp,
    "LM Studio": lm_studio,
    "vLLM": vllm,
    "a cloud": cloud,
}


def one_server(server: FakeOpenAI, *, model: str = "tiny", context: int = 0, key: str = "") -> Endpoints:
    return single_server_endpoints(server.base_url, model, api_key_env=key, context=context)


def with_runtime(server: FakeOpenAI, work: Callable[[OpenAIRuntime], Any], **options: Any) -> Any:
    """What `work` gives with a runtime over the running server."""

    async def main() -> Any:
        async with server:
            runtime = OpenAIRuntime(one_server(server, **options), keys={"MY_KEY": KEY})
            try:
                return await work(runtime)
            finally:
                await runtime.aclose()

    return run(main)


def answer_of(server: FakeOpenAI, given: PromptPack | None = None, *, timeout_s: float = 5, **options: Any) -> ModelAnswer:
    return with_runtime(server, lambda runtime: runtime.complete(given or pack(), timeout_s=timeout_s), **options)


def streamed(server: FakeOpenAI, heard: list[str], given: PromptPack | None = None) -> ModelAnswer:
    return with_runtime(server, lambda runtime: runtime.complete(given or pack(), timeout_s=5, on_words=heard.append))


@pytest.mark.parametrize("name", SERVERS)
def test_every_server_answers(name: str) -> None:
    """Whole and streamed; a key of the environment reaches its server, and none of SGLang's own fields does."""
    server, heard = SERVERS[name](api_key=KEY), list[str]()

    async def work(runtime: OpenAIRuntime) -> tuple[ModelAnswer, ModelAnswer]:
        return await runtime.complete(pack(), timeout_s=5), await runtime.complete(pack(), timeout_s=5, on_words=heard.append)

    whole, words = with_runtime(server, work, key="MY_KEY")
    assert whole.text == words.text == "".join(heard) == '{"ok": true}' and whole.runtime == "openai" and whole.usage.prompt > 0
    assert not {"rid", "priority", "custom_params"} & {field for body in server.asked for field in body}
    assert not server.aborted


def test_no_account_of_the_environment_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenAI's client would send these names to every server."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-another-program")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-of-another-program")
    server = ollama()
    answer_of(server)
    assert server.headers and not any("of-another-program" in value for headers in server.headers for value in headers.values())


def test_what_a_server_refuses_is_asked_for_once(caplog: pytest.LogCaptureFixture) -> None:
    """Each refused field costs one request of the process, is replaced or left out, and is reported; the sent bodies show it."""
    server = cloud()

    async def work(runtime: OpenAIRuntime) -> None:
        for _ in range(3):
            await runtime.complete(pack(), timeout_s=5)

    with caplog.at_level(logging.WARNING):
        with_runtime(server, work)
    assert len(server.asked) == 4 + 3
    last = server.asked[-1]
    assert last["max_completion_tokens"] == 50 and "strict" not in last["response_format"]["json_schema"]
    assert not {"max_tokens", "temperature", "chat_template_kwargs"} & set(last)
    assert sorted(record.message.partition(": no ")[2].partition(":")[0] for record in caplog.records) == [
        "max_tokens",
        "strict JSON schema",
        "temperature",
        "thinking off by template",
    ]
    assert all("MIND at http://127.0.0.1:" in record.message for record in caplog.records)


NO_SCHEMA = openai_error(400, "This response_format type is unavailable now")
PYDANTIC = {"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]}
FORMATS: dict[str, tuple[FakeOpenAI, object]] = {
    "schema": (FakeOpenAI(), "json_schema"),
    "no schema": (FakeOpenAI(refuses={"json_schema": NO_SCHEMA}), "json_object"),
    "neither": (FakeOpenAI(refuses={"response_format": NO_SCHEMA}), None),
    "a schema that is not understood": (FakeOpenAI(refuses={"json_schema": openai_error(400, "failed to parse grammar")}), "json_object"),
    "no object": (lm_studio(refuses={"json_schema": NO_SCHEMA, **lm_studio().refuses}), None),
}


@pytest.mark.parametrize("case", FORMATS)
def test_a_server_without_schemas_is_asked_for_json(case: str) -> None:
    """JSON schema, else a JSON object, else the prompt alone, which has the shape of every recipe's answer."""
    server, kind = FORMATS[case]
    server.port, _ = 0, server.asked.clear()
    assert answer_of(server).text == '{"ok": true}'
    sent = server.asked[-1].get("response_format")
    assert (sent and sent["type"]) == kind


def test_a_refusal_in_another_form() -> None:
    """FastAPI's list of faults names the field too; without usage the output is counted as nothing here, and the answer stays."""
    server, heard = FakeOpenAI(refuses={"stream_options": (422, PYDANTIC)}, reports_usage=False), list[str]()
    answer = streamed(server, heard)
    assert answer.text == '{"ok": true}' and answer.usage.prompt == 0 and "stream_options" not in server.asked[-1]


REFUSALS: dict[str, tuple[FakeOpenAI, str]] = {
    "llama.cpp's": (
        llama_cpp(refuses={"max_tokens": openai_error(400, "the request exceeds the available context size, try increasing it")}),
        "exceeds the available context size",
    ),
    "llama.cpp's older": (
        llama_cpp(refuses={"max_tokens": openai_error(500, "the request exceeds the available context size")}),
        "exceeds the available context size",
    ),
    "vLLM's": (
        vllm(refuses={"max_tokens": openai_error(400, "'max_tokens' is too large: 50. This model's maximum context length is 40 tokens")}),
        "maximum context length is 40",
    ),
    "unknown model": (
        ollama(refuses={"messages": openai_error(404, 'model "tiny" not found, try pulling it first')}),
        "expected a model that it serves",
    ),
    "another fault": (FakeOpenAI(refuses={"messages": openai_error(400, "messages: too many")}), "messages: too many"),
    "key": (FakeOpenAI(api_key="other"), "expected the key to be accepted"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_refusal_that_is_about_no_field(case: str) -> None:
    """It fails at once, in the server's words, with no further request: a prompt that is too long names `max_tokens` too."""
    server, message = REFUSALS[case]
    server.port, _ = 0, server.asked.clear()
    with pytest.raises(ModelRejectedError, match=message) as caught:
        answer_of(server)
    assert len(server.asked) <= 1 and caught.value.hint and KEY not in str(caught.value)


def test_a_key_that_is_refused_is_not_repeated() -> None:
    """Servers quote the key that they refuse; messages do not."""
    quoted = FakeOpenAI(refuses={"messages": openai_error(401, f"Incorrect API key provided: {KEY}.")})
    with pytest.raises(ModelRejectedError, match=r"Incorrect API key provided: \*\*\*") as caught:
        answer_of(quoted, key="MY_KEY")
    assert caught.value.hint == "Set MY_KEY to the server's key."


CONTEXTS = {"ollama": 8_192, "llama.cpp": 6_144, "LM Studio": 5_120, "vLLM": 7_168, "a cloud": 4_096}


@pytest.mark.parametrize("name", SERVERS)
def test_the_context_is_what_the_server_says(name: str) -> None:
    """Each on its own page; 4,096 is assumed where there is none, and what the user sets goes first."""

    async def checked(runtime: OpenAIRuntime) -> tuple[int | None, bool]:
        statuses = await runtime.check()
        return runtime.context_limit(ModelLayer.MIND), all(status.ok for status in statuses)

    assert with_runtime(SERVERS[name](), checked) == (CONTEXTS[name], True)
    assert with_runtime(SERVERS[name](), checked, context=3_000) == (3_000, True)


def test_names_of_models() -> None:
    """Ollama lists a tag that one need not write; a wrong name is reported with those that are served."""

    async def status(runtime: OpenAIRuntime) -> Any:
        return (await runtime.check())[0]

    assert with_runtime(ollama(), status).ok and with_runtime(ollama(), status, model="tiny:latest").ok
    wrong = with_runtime(ollama(), status, model="huge")
    assert not wrong.right_model and wrong.message.endswith("serves tiny:latest: expected huge")


COUNTED = {"llama.cpp": 40 + 64, "vLLM": 33, "ollama": None}


@pytest.mark.parametrize("name", COUNTED)
def test_tokens_are_counted_where_the_server_can(name: str) -> None:
    """vLLM counts the messages; llama.cpp the text, to which a template's share is added."""
    assert with_runtime(SERVERS[name](), lambda runtime: runtime.count(pack())) == COUNTED[name]


THOUGHT = "<think>The user wants\nJSON.</think>\n\n"


@pytest.mark.parametrize("text", [THOUGHT + '{"a": 1}', '{"a": 1}', '\n{"a": "<think>"}'])
def test_thoughts_are_no_answer(text: str) -> None:
    """What a model thinks aloud before its answer is removed, streamed or not; the sign inside an answer stays."""
    expected, heard = text.removeprefix(THOUGHT), list[str]()
    plain = pack(output_format=OutputFormat.TEXT, output_schema=None)
    assert answer_of(FakeOpenAI(says=lambda _: text), plain).text == expected
    assert streamed(FakeOpenAI(says=lambda _: text), heard, plain).text == expected == "".join(heard)


def test_thoughts_alone() -> None:
    """An answer that ends in its thoughts is none; `reasoning` is Ollama's name for thoughts apart."""
    with pytest.raises(BadAnswerError, match="only thoughts and no answer"):
        answer_of(FakeOpenAI(says=lambda _: "<think>hmm"))
    apart = {"choices": [{"message": {"content": "", "reasoning": "hmm"}, "finish_reason": "stop"}]}
    with pytest.raises(BadAnswerError, match="only thoughts and no answer"):
        answer_of(FakeOpenAI(misbehaves=sends(response(200, json.dumps(apart).encode()))))


def test_a_model_is_kept_from_thinking() -> None:
    """By the argument of its template, and by the effort that Ollama reads."""
    server = FakeOpenAI()
    answer_of(server)
    sent = server.asked[0]
    assert sent["chat_template_kwargs"] == {"enable_thinking": False} and sent["reasoning_effort"] == "none"


STREAM = "text/event-stream"
PIECES = event({"choices": [{"delta": {"role": "assistant", "content": ""}}]}) + event({"choices": [{"delta": {"content": "yes"}}]})
LAST = event({"choices": [{"delta": {}, "finish_reason": "stop"}]})
STREAMS: dict[str, bytes] = {
    "no [DONE]": PIECES + LAST,
    "comments and empty choices": b": OPENROUTER PROCESSING\n\n" + event({"choices": []}) + PIECES + LAST + b"data: [DONE]\n\n",
    "no blank after data, carriage returns": (PIECES + LAST).replace(b"data: ", b"data:").replace(b"\n", b"\r\n"),
    "unknown fields": PIECES.replace(b'{"choices"', b'{"system_fingerprint": null, "choices"') + LAST,
}


@pytest.mark.parametrize("case", STREAMS)
def test_streams_as_servers_send_them(case: str) -> None:
    """None of them ends as OpenAI's does."""
    heard = list[str]()
    server = FakeOpenAI(misbehaves=sends(response(200, STREAMS[case], kind=STREAM)))
    assert streamed(server, heard).text == "yes" == "".join(heard)


def test_an_error_within_a_stream() -> None:
    """Its code may be a word; the server's message is shown."""
    body = event({"error": {"message": "model runner stopped", "type": "server_error", "code": "runner"}})
    with pytest.raises(ModelError, match="model runner stopped"):
        streamed(FakeOpenAI(misbehaves=sends(response(200, body, kind=STREAM))), [])


def test_a_slow_first_token() -> None:
    """A local server loads its model first: the call waits as long as its time-out, and not longer."""
    assert answer_of(FakeOpenAI(takes_s=0.3), timeout_s=5).text == '{"ok": true}'
    with pytest.raises(ModelTimeoutError):
        answer_of(FakeOpenAI(takes_s=2), timeout_s=0.2)


def test_one_call_at_a_time_on_this_machine() -> None:
    """Ollama runs one request and lets the others wait while their time runs, so they wait here."""

    async def work(runtime: OpenAIRuntime) -> int:
        await asyncio.gather(*(runtime.complete(pack(), timeout_s=5) for _ in range(4)))
        return runtime.max_concurrent_calls()

    server = FakeOpenAI(takes_s=0.02)
    assert with_runtime(server, work) == 1 == server.most_running


def test_a_connection_is_used_once() -> None:
    """llama.cpp closes a connection after a stream without saying so; the next request would break on it."""

    async def work(runtime: OpenAIRuntime) -> None:
        for _ in range(3):
            await runtime.complete(pack(), timeout_s=5, on_words=lambda _: None)

    server = FakeOpenAI()
    with_runtime(server, work)
    assert server.connections == 3 and {headers["connection"] for headers in server.headers} == {"close"}
