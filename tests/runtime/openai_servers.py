"""Stand-ins on real sockets for servers with OpenAI's HTTP API, each with the pages, refusals and oddities of one program."""

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.runtime.fake_sglang import FakeSglang

Refusal = tuple[int, dict[str, Any]]


@dataclass
class FakeOpenAI(FakeSglang):
    """One model behind `/v1`, without any endpoint of SGLang. `refuses`: a word of a request -> status and body of its refusal."""

    refuses: Mapping[str, Refusal] = field(default_factory=dict)
    pages: Mapping[str, Any] = field(default_factory=dict)
    """Pages that a GET finds, `/v1/models` among them."""
    counts: Any = None
    """What a POST to `/tokenize` answers."""
    asked: list[dict[str, Any]] = field(default_factory=list)
    """The bodies of all calls, the refused ones too."""
    reports_cache: bool = False
    says: Any = lambda _: '{"ok": true}'

    async def _answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, object]:
        if self.api_key and headers.get("authorization") != f"Bearer {self.api_key}":
            return 401, {"error": {"message": "Incorrect API key provided", "type": "invalid_request_error"}}
        if method == "GET" and path in self.pages:
            return 200, self.pages[path]
        if (method, path) == ("GET", "/v1/models"):
            return 200, {"object": "list", "data": [{"id": self.model, "object": "model"}]}
        if (method, path) == ("POST", "/tokenize") and self.counts is not None:
            return 200, self.counts
        if method == "POST" and path in ("/v1/chat/completions", "/v1/completions"):
            self.headers.append(headers)
            request = json.loads(body)
            self.asked.append(request)
            refused = [answer for word, answer in self.refuses.items() if f'"{word}"' in json.dumps(request)]
            if refused:
                return refused[0]
            return await self._complete(request | {"max_tokens": request.get("max_tokens", 64)}, chat="chat" in path)
        return 404, {"error": {"message": f"no page {path}"}}


def plain_answer(body: Mapping[str, Any]) -> str:
    """The least answer that the request's schema allows, or one sentence where it has none."""
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    return "Hello! How can I help you?" if schema is None else json.dumps(_instance(schema))


def _instance(schema: Mapping[str, Any]) -> Any:
    """The first choice everywhere: of an enum, of alternatives; what is required, and the topic that a summary of research needs."""
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    if "anyOf" in schema:
        return _instance(schema["anyOf"][0])
    kind = schema["type"][0] if isinstance(schema["type"], list) else schema["type"]
    if kind == "object":
        return {
            name: _instance(part)
            for name, part in schema.get("properties", {}).items()
            if name in (*schema.get("required", ()), "research_topic")
        }
    if kind == "array":
        items = [_instance(schema["items"]) for _ in range(schema.get("minItems", 0))]
        return [f"{item} {n}" if isinstance(item, str) else item for n, item in enumerate(items)]
    return {"string": "hello", "number": 0.9, "integer": schema.get("minimum", 1), "boolean": True, "null": None}[kind]


@contextmanager
def on_a_thread(server: FakeOpenAI) -> Iterator[FakeOpenAI]:
    """The server on a loop of its own, for commands that have one too."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(10)
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def openai_error(status: int, message: str, **fields: Any) -> Refusal:
    """OpenAI's own form of an error."""
    return status, {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None, **fields}}


def ollama(**changes: Any) -> FakeOpenAI:
    """Lists names with a tag, says the context of a loaded model on a page of its own, ignores what it does not know."""
    loaded = {"models": [{"name": "tiny:latest", "model": "tiny:latest", "context_length": 8_192}]}
    return FakeOpenAI(**{"model": "tiny:latest", "pages": {"/api/ps": loaded}, **changes})


def llama_cpp(**changes: Any) -> FakeOpenAI:
    """Says its context in `/props`, counts tokens of a text, refuses a prompt that is too long with a type of its own."""
    properties = {"default_generation_settings": {"n_ctx": 6_144}, "total_slots": 1}
    return FakeOpenAI(**{"pages": {"/props": properties}, "counts": {"tokens": list(range(40))}, **changes})


def lm_studio(**changes: Any) -> FakeOpenAI:
    """Takes a JSON schema and no JSON object; its errors are plain texts; says the loaded context in a list of its own."""
    listed = {"data": [{"id": "tiny", "state": "loaded", "max_context_length": 32_768, "loaded_context_length": 5_120}]}
    refusal = 400, {"error": "'response_format.type' must be 'json_schema' or 'text'"}
    return FakeOpenAI(**{"pages": {"/api/v0/models": listed}, "refuses": {"json_object": refusal}, **changes})


def vllm(**changes: Any) -> FakeOpenAI:
    """Lists the context with the model and counts the tokens of messages."""
    listed = {"data": [{"id": "tiny", "object": "model", "max_model_len": 7_168}]}
    counts = {"count": 33, "max_model_len": 7_168, "tokens": list(range(33))}
    return FakeOpenAI(**{"pages": {"/v1/models": listed}, "counts": counts, **changes})


def cloud(**changes: Any) -> FakeOpenAI:
    """Refuses every field that its model does not take, one at a time."""
    unsupported = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    return FakeOpenAI(
        **{
            "refuses": {
                "chat_template_kwargs": openai_error(400, "Unrecognized request argument supplied: chat_template_kwargs"),
                "max_tokens": openai_error(400, unsupported, param="max_tokens", code="unsupported_parameter"),
                "temperature": openai_error(400, "Unsupported value: 'temperature' does not support 0.5 with this model."),
                "strict": openai_error(400, "Invalid schema for response_format 'planner_chat': 'required' must have every key."),
            },
            **changes,
        }
    )
