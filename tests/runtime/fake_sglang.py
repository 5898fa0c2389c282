"""A stand-in for SGLang 0.5.23 on a real socket: its answers, its refusals and its oddities, as measured on the real one."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Misbehaviour = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class FakeSglang:
    """One server for one model. `says` makes the answer's text; words stand for tokens."""

    model: str = "tiny"
    context: int = 4_096
    lists_context: bool = True
    api_key: str = ""
    starting: bool = False
    has_health: bool = True
    max_running: int = 16
    max_queued: int = 20
    takes_s: float = 0.0
    finish_reason: str | None = "stop"
    reports_usage: bool = True
    reports_cache: bool = True
    tokenizes: bool = True
    templated: bool = True
    has_metrics: bool = True
    caches: bool = True
    info: Mapping[str, Any] | None = None
    """What `/server_info` tells."""
    thinks: str = ""
    says: Callable[[Mapping[str, Any]], str | None] = lambda _: '{"answer": "yes"}'
    misbehaves: Misbehaviour | None = None

    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    aborted: list[str] = field(default_factory=list)
    running: int = 0
    most_running: int = 0
    looks: int = 0
    """How often its metrics were read."""
    connections: int = 0
    port: int = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> "FakeSglang":
        self._open: set[asyncio.Task[None]] = set()
        self._places = asyncio.Semaphore(self.max_running)
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await self._server.wait_closed()
        await asyncio.sleep(0)  # the closed sockets' last callbacks

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in head[1:] if line)}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                method, path, _ = head[0].split(" ")
                if self.misbehaves is not None and path != "/abort_request":
                    await self.misbehaves(writer)
                    return
                status, answer = await self._answer(method, path, headers, body)
                streamed = status == 200 and method == "POST" and json.loads(body).get("stream")
                report = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
                writer.write(events(answer) if streamed else response(status, report, connection="keep-alive"))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    async def _answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, object]:
        if self.api_key and headers.get("authorization") != f"Bearer {self.api_key}" and path != "/health":
            return 401, {"error": "Unauthorized"}
        if (method, path) == ("GET", "/health") and self.has_health:
            return (503, {}) if self.starting else (200, {})
        if (method, path) == ("GET", "/v1/models"):
            length = {"max_model_len": self.context} if self.lists_context else {}
            return 200, {"object": "list", "data": [{"id": self.model, "object": "model", "owned_by": "sglang", **length}]}
        if (method, path) == ("GET", "/metrics") and self.has_metrics:
            self.looks += 1
            on = min(self.running, self.max_running)
            return 200, f'sglang:num_running_reqs{{model_name="x"}} {on}.0\nsglang:num_queue_reqs{{model_name="x"}} {self.running - on}.0\n'
        if (method, path) == ("GET", "/server_info") and self.info is not None:
            return 200, self.info
        if method == "POST" and path in ("/v1/chat/completions", "/v1/completions"):
            self.headers.append(headers)
            return await self._complete(json.loads(body), chat="chat" in path)
        if (method, path) == ("POST", "/abort_request"):
            self.aborted.append(json.loads(body)["rid"])
            return 200, None
        if (method, path) == ("POST", "/v1/tokenize") and self.tokenizes:
            asked = json.loads(body)
            if "messages" in asked and not self.templated:
                return 400, error(400, "BadRequestError", "Cannot use chat template functions: tokenizer.chat_template is not set")
            words = prompt_of(asked, chat="messages" in asked).split()
            return 200, {"tokens": list(range(len(words))), "count": len(words), "max_model_len": self.context}
        return 404, {"detail": "Not Found"}

    async def _complete(self, body: dict[str, Any], *, chat: bool) -> tuple[int, object]:
        self.requests.append(body)
        refusal = self._refusal(body, chat=chat)
        if refusal:
            return 400, error(400, "BadRequestError", refusal)
        if self.running >= self.max_running + self.max_queued:
            return 503, error(503, "ServiceUnavailableError", "The request queue is full.")
        self.running += 1
        try:
            async with self._places:
                self.most_running = max(self.most_running, self.max_running - self._places._value)
                await self.work()
                return 200, self._completion(body, chat=chat)
        finally:
            self.running -= 1

    async def work(self) -> None:
        """What a request that has a place takes."""
        await asyncio.sleep(self.takes_s)

    def _refusal(self, body: dict[str, Any], *, chat: bool) -> str:
        words = len(prompt_of(body, chat=chat).split())
        if words >= self.context:
            return f"The input ({words} tokens) is longer than the model's context length ({self.context} tokens)."
        if words + body["max_tokens"] > self.context:
            return f"Requested token count exceeds the model's maximum context length of {self.context} tokens."
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
        for word in ("uniqueItems", "multipleOf"):
            if f'"{word}"' in json.dumps(schema):
                return f"Failed to compile json grammar: {word} is not supported"
        return ""

    def _completion(self, body: dict[str, Any], *, chat: bool) -> dict[str, Any]:
        text, finish = self.says(body), self.finish_reason
        if text is not None and len(text.split()) > body["max_tokens"]:
            text, finish = " ".join(text.split()[: body["max_tokens"]]), "length"
        report = {"message": {"role": "assistant", "content": text, "reasoning_content": self.thinks or None}} if chat else {"text": text}
        words = len(prompt_of(body, chat=chat).split())
        details = {"cached_tokens": words - 1 if self.caches else 0} if self.reports_cache else None
        usage = {"prompt_tokens": words, "completion_tokens": len((text or "").split()), "prompt_tokens_details": details}
        return {
            "id": body.get("rid", "chatcmpl"),
            "model": body["model"],  # whatever was asked for
            "choices": [{"index": 0, "finish_reason": finish, "matched_stop": None, **report}],
            **({"usage": usage} if self.reports_usage else {}),
        }


def _text_of(content: str | list[dict[str, Any]]) -> str:
    """The text of a message; image parts have none."""
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content if part["type"] == "text")


def prompt_of(body: Mapping[str, Any], *, chat: bool) -> str:
    return "\n".join(_text_of(m["content"]) for m in body["messages"]) if chat else body["prompt"]


def error(code: int, kind: str, message: str) -> dict[str, Any]:
    """An error body of the OpenAI-compatible endpoints."""
    return {"object": "error", "message": message, "type": kind, "param": None, "code": code}


def response(status: int, body: bytes, *, kind: str = "application/json", length: int | None = None, **headers: str) -> bytes:
    """`headers`: further ones, `_` for `-`. It says that the connection closes: one that is used again meanwhile is broken off."""
    fields = {"content-type": kind, "content-length": str(len(body) if length is None else length), "connection": "close", **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status} Said\r\n{lines}\r\n".encode() + body


def events(completion: Any) -> bytes:
    """A completion as the real one streams it: a first chunk without words, one a word, the end's reason, the usage, the end."""
    choice = completion["choices"][0]
    report = choice.get("message") or {"content": choice["text"]}
    chat, text = "message" in choice, report["content"] or ""
    words = [word + " " for word in text.split(" ")[:-1]] + [text.split(" ")[-1]]
    pieces = [(None, "")] + ([(report["reasoning_content"], None)] if report.get("reasoning_content") else []) + [(None, w) for w in words]

    def chunk(thought: str | None, piece: str | None, reason: str | None) -> dict[str, Any]:
        fields = {"delta": {"reasoning_content": thought, "content": piece}} if chat else {"text": piece}
        return {"id": completion["id"], "choices": [{"index": 0, "finish_reason": reason, **fields}], "usage": None}

    fields = [chunk(thought, piece, None) for thought, piece in pieces] + [chunk(None, None, choice["finish_reason"])]
    fields += [{"id": completion["id"], "choices": [], "usage": completion["usage"]}] if "usage" in completion else []
    return response(
        200,
        b"".join(event(part) for part in fields) + b"data: [DONE]\n\n",
        kind="text/event-stream; charset=utf-8",
        connection="keep-alive",
    )


def event(data: object) -> bytes:
    """One server-sent event."""
    return f"data: {json.dumps(data)}\n\n".encode()


def sends(data: bytes) -> Misbehaviour:
    """Sends these bytes and closes."""

    async def misbehave(writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()

    return misbehave


def resets() -> Misbehaviour:
    """Sends half a response and resets the connection."""

    async def misbehave(writer: asyncio.StreamWriter) -> None:
        writer.write(response(200, b'{"choices": [', length=1_000))
        await writer.drain()
        writer.transport.abort()

    return misbehave


def drips(chunk: bytes, *, every_s: float, status: int = 200) -> Misbehaviour:
    """Sends a body that never ends, `chunk` by `chunk`."""

    async def misbehave(writer: asyncio.StreamWriter) -> None:
        writer.write(response(status, b"", length=10**12))
        while True:
            writer.write(chunk)
            await writer.drain()
            await asyncio.sleep(every_s)

    return misbehave


def hangs() -> Misbehaviour:
    """Takes the request and never says a word."""

    async def misbehave(_: asyncio.StreamWriter) -> None:
        await asyncio.sleep(3_600)

    return misbehave
