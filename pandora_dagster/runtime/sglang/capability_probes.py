"""Features that a server supports, found by a few small requests, for `pandora doctor`. Changes nothing.

Measured on SGLang 0.5.23: without a chat template `/v1/tokenize` refuses messages with 400; a thinking budget is passed over in silence
where the server was not started with --enable-strict-thinking; cached tokens are not reported without --enable-cache-report.
"""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import cast

from pydantic import ValidationError

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.errors import ModelError, ModelRejectedError
from pandora_dagster.runtime.sglang.completion_replies import Completion, WireUsage
from pandora_dagster.runtime.sglang.connections import Connections
from pandora_dagster.runtime.sglang.endpoints import Endpoint, Endpoints
from pandora_dagster.runtime.sglang.model_errors import timeout_error

_CALLS = 5
_SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": False}
_SHARED = "You check whether a request can be met, and answer in JSON as the schema says, without any further word. " * 8
"""Some 170 tokens: more than a page of any prefix cache."""
_QUESTION = "Is this a request?"


@dataclass(frozen=True, slots=True)
class Probe:
    """One ability of a server; `remedy` says what to do where it lacks."""

    what: str
    ok: bool
    says: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class ServerProbes:
    """What one server was found to do, for the layers that it answers for."""

    name: str
    layers: tuple[ModelLayer, ...]
    probes: tuple[Probe, ...]
    latency_ms: float | None
    """Median of a few small schema-constrained calls, None where they failed."""


@dataclass(frozen=True, slots=True)
class _Call:
    """One small call that was made."""

    text: str
    usage: WireUsage | None
    latency_ms: float


async def probe_servers(
    endpoints: Endpoints, layers: Sequence[ModelLayer], connections: Connections, *, timeout_s: float
) -> tuple[ServerProbes, ...]:
    """The servers of these layers, all at once, each asked once and for at most `timeout_s` seconds. Faults are reported, never raised."""
    names = dict.fromkeys(endpoints[layer].name for layer in layers)
    return tuple(await asyncio.gather(*(_probe_server(endpoints.layers_of(name), connections, timeout_s) for name in names)))


async def _probe_server(uses: tuple[Endpoint, ...], connections: Connections, timeout_s: float) -> ServerProbes:
    endpoint, found, calls = uses[0], list[Probe](), list[_Call]()
    asked = _ProbedServer(endpoint, connections)
    try:
        async with asyncio.timeout(timeout_s):
            found += await _template(asked)
            found += await _small_calls(asked, calls)
            found += await _metrics(asked)
            found += await _thinking(asked, [use.layer for use in uses if use.thinking])
    except TimeoutError:
        late = timeout_error(endpoint, timeout_s)
        found.append(Probe("small calls", False, f"no answers to a few small calls within {timeout_s:g} s", late.hint))
    except ModelError as error:
        found.append(Probe("small calls", False, str(error), error.hint))
    took = median(call.latency_ms for call in calls[1:]) if len(calls) > 1 else None
    return ServerProbes(endpoint.name, tuple(use.layer for use in uses), tuple(found), took)


@dataclass(frozen=True, slots=True)
class _ProbedServer:
    """A server and its connections."""

    endpoint: Endpoint
    connections: Connections

    async def get(self, url: str) -> bytes:
        return await self.connections.fetch(self.endpoint, url)

    async def post(self, path: str, body: Mapping[str, object]) -> bytes:
        return await self.connections.fetch(self.endpoint, self.endpoint.server.base_url + path, body)


async def _template(asked: _ProbedServer) -> Sequence[Probe]:
    """Whether messages can be rendered as `chat` in the runtime file says."""
    server = asked.endpoint.server
    try:
        await asked.post("/tokenize", {"model": server.model, "messages": [{"role": "user", "content": _QUESTION}]})
    except ModelRejectedError as refusal:
        missing = "template" in str(refusal).lower()
        if not (missing and server.chat):
            return [] if server.chat else [Probe("chat template", True, "plain text")]  # a gateway need not know /tokenize
        remedy = "Set chat: false for this server in the runtime file, or start it with --chat-template."
        return [Probe("chat template", False, "its model has no chat template", remedy)]
    return [Probe("chat template", True, "chat template" if server.chat else "plain text (its chat template is not used)")]


async def _small_calls(asked: _ProbedServer, calls: list[_Call]) -> Sequence[Probe]:
    """A tiny constrained call a few times: whether the schema holds, whether what repeats comes from the cache."""
    for _ in range(_CALLS):
        calls.append(await _small_call(asked))
    return (_structured(calls[-1]), _cached(calls[-1]))


async def _small_call(asked: _ProbedServer) -> _Call:
    server = asked.endpoint.server
    form = {"type": "json_schema", "json_schema": {"name": "probe", "schema": _SCHEMA, "strict": True}}
    body: dict[str, object] = {"model": server.model, "max_tokens": 32, "temperature": 0.0, "response_format": form}
    if server.chat:
        body |= {
            "messages": [{"role": "system", "content": _SHARED}, {"role": "user", "content": _QUESTION}],
            "chat_template_kwargs": {"enable_thinking": False},
        }
    else:
        body |= {"prompt": f"{_SHARED}\n\n{_QUESTION}\n\nAnswer:\n"}
    began = time.perf_counter()
    answer = await asked.post("/chat/completions" if server.chat else "/completions", body)
    took = (time.perf_counter() - began) * 1_000
    try:
        completion = Completion.model_validate_json(answer)
        usage = None if completion.usage is None else WireUsage.model_validate(completion.usage)
    except ValidationError:
        return _Call("", None, took)
    return _Call(completion.choices[0].words, usage, took)


def _structured(call: _Call) -> Probe:
    try:
        parsed: object = json.loads(call.text)
    except ValueError:
        parsed = None
    fields = cast("dict[str, object]", parsed) if isinstance(parsed, dict) else {}
    if set(fields) == {"ok"} and isinstance(fields["ok"], bool):
        return Probe("structured output", True, "structured output")
    remedy = "Start the server with --grammar-backend xgrammar and --constrained-json-disable-any-whitespace."
    return Probe("structured output", False, f"an answer that does not fit its schema: {call.text[:60]!r}", remedy)


def _cached(call: _Call) -> Probe:
    details = call.usage.prompt_tokens_details if call.usage else None
    if call.usage is None or details is None or details.cached_tokens is None:
        return Probe("prefix cache", False, "usage does not report cached tokens", "Start the server with --enable-cache-report.")
    if details.cached_tokens < call.usage.prompt_tokens / 2:
        says = f"{details.cached_tokens} of {call.usage.prompt_tokens} repeated tokens came from the cache"
        return Probe("prefix cache", False, says, "Start the server without --disable-radix-cache; a full cache forgets what was asked.")
    return Probe("prefix cache", True, f"prefix cache ({details.cached_tokens} of {call.usage.prompt_tokens} repeated tokens)")


async def _metrics(asked: _ProbedServer) -> Sequence[Probe]:
    try:
        on = b"sglang:" in await asked.get(f"{asked.endpoint.server.url}/metrics")
    except ModelRejectedError:
        on = False
    if on:
        return [Probe("metrics", True, "metrics")]
    return [Probe("metrics", False, "/metrics has nothing of SGLang", "Start the server with --enable-metrics.")]


async def _thinking(asked: _ProbedServer, layers: Sequence[ModelLayer]) -> Sequence[Probe]:
    """Whether a thinking budget holds, for layers that may think; nothing where the server does not report its arguments."""
    if not layers:
        return []
    try:
        info = json.loads(await asked.get(f"{asked.endpoint.server.url}/server_info"))
    except (ModelRejectedError, ValueError):
        return []
    started = cast("dict[str, object]", info) if isinstance(info, dict) else {}
    if started.get("enable_strict_thinking") and started.get("reasoning_parser"):
        return [Probe("thinking", True, "thinking within its budget")]
    says = f"{', '.join(layers)} may think, and the server holds no thinking budget"
    return [Probe("thinking", False, says, "Start the server with --enable-strict-thinking and its model's --reasoning-parser.")]
