"""Probes what a server supports by a few small requests, for `pandora doctor`. Changes nothing.

Measured on SGLang 0.5.23: without a chat template `/v1/tokenize` refuses messages with 400; cached tokens are not reported
without --enable-cache-report.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import cast

from pydantic import ValidationError

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.documents.plain_json import PlainDataError, parse_json
from pandora_dagster.errors import ModelError, ModelRejectedError
from pandora_dagster.runtime.sglang.completion_replies import Completion, WireUsage
from pandora_dagster.runtime.sglang.connections import Connections
from pandora_dagster.runtime.sglang.endpoints import Endpoint, Endpoints
from pandora_dagster.runtime.sglang.model_errors import timeout_error
from pandora_dagster.shipped import shipped_folder

_CALLS = 5
"""Small calls to a server: the first one fills its prefix cache, the latency is the median of the others."""
_SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": False}
_REPETITIONS = 8
"""Repetitions of the instruction in a small call: about 170 tokens, more than one page of any prefix cache."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One feature of a server; where it is missing, `remedy` says what to do, or `instead` what is done without it."""

    what: str
    ok: bool
    says: str
    remedy: str = ""
    instead: str = ""


@dataclass(frozen=True, slots=True)
class ServerProbes:
    """The probes of one server, and the layers that it answers for."""

    name: str
    layers: tuple[ModelLayer, ...]
    probes: tuple[Probe, ...]
    latency_ms: float | None
    """Median of a few small schema-constrained calls, None where they failed."""


@dataclass(frozen=True, slots=True)
class _CallOutcome:
    """The outcome of one small call."""

    text: str
    usage: WireUsage | None
    latency_ms: float


async def probe_servers(
    endpoints: Endpoints, layers: Sequence[ModelLayer], connections: Connections, *, timeout_s: float
) -> tuple[ServerProbes, ...]:
    """Probe the servers of these layers concurrently, each once and for at most `timeout_s` seconds. Faults are reported, never raised."""
    names = dict.fromkeys(endpoints[layer].name for layer in layers)
    return tuple(await asyncio.gather(*(_probe_server(endpoints.layers_of(name), connections, timeout_s) for name in names)))


async def _probe_server(endpoints: tuple[Endpoint, ...], connections: Connections, timeout_s: float) -> ServerProbes:
    endpoint, probes, outcomes = endpoints[0], list[Probe](), list[_CallOutcome]()
    probed = _ProbedServer(endpoint, connections)
    try:
        async with asyncio.timeout(timeout_s):
            probes += await _probe_template(probed)
            probes += await _probe_small_calls(probed, outcomes)
            probes += await _probe_metrics(probed)
    except TimeoutError:
        error = timeout_error(endpoint, timeout_s)
        probes.append(Probe("small calls", False, f"no answers to a few small calls within {timeout_s:g} s", error.hint))
    except ModelError as error:
        probes.append(Probe("small calls", False, str(error), error.hint))
    latency_ms = median(call.latency_ms for call in outcomes[1:]) if len(outcomes) > 1 else None
    return ServerProbes(endpoint.name, tuple(served.layer for served in endpoints), tuple(probes), latency_ms)


@dataclass(frozen=True, slots=True)
class _ProbedServer:
    """One server with the connections to it, and the texts of small calls."""

    endpoint: Endpoint
    connections: Connections
    instruction: str = field(default_factory=lambda: " ".join([frame_text("probe_instruction")] * _REPETITIONS))
    query: str = field(default_factory=lambda: frame_text("probe_query"))
    answer_cue: str = field(default_factory=lambda: frame_text("answer_cue"))

    async def get(self, url: str) -> bytes:
        return await self.connections.fetch(self.endpoint, url)

    async def post(self, path: str, body: Mapping[str, object]) -> bytes:
        return await self.connections.fetch(self.endpoint, self.endpoint.server.base_url + path, body)


def frame_text(name: str) -> str:
    """The text of a file in the shipped `prompts/frames/`."""
    return (shipped_folder() / "prompts" / "frames" / f"{name}.md").read_text(encoding="utf-8").strip()


async def _probe_template(probed: _ProbedServer) -> Sequence[Probe]:
    """Whether messages can be rendered as `chat` in the runtime file says."""
    server = probed.endpoint.server
    try:
        await probed.post("/tokenize", {"model": server.model, "messages": [{"role": "user", "content": probed.query}]})
    except ModelRejectedError as refusal:
        is_template_missing = "template" in str(refusal).lower()
        if not (is_template_missing and server.chat):
            return [] if server.chat else [Probe("chat template", True, "plain text")]  # a gateway may lack /tokenize
        remedy = "Set chat: false for this server in the runtime file, or start it with --chat-template."
        return [Probe("chat template", False, "its model has no chat template", remedy)]
    return [Probe("chat template", True, "chat template" if server.chat else "plain text (its chat template is not used)")]


async def _probe_small_calls(probed: _ProbedServer, outcomes: list[_CallOutcome]) -> Sequence[Probe]:
    """Repeat a small schema-constrained call: does the answer match the schema, does the repeated prefix come from the cache?"""
    for _ in range(_CALLS):
        outcomes.append(await _make_small_call(probed))
    return (_judge_structure(outcomes[-1]), _judge_cache(outcomes[-1]))


async def _make_small_call(probed: _ProbedServer) -> _CallOutcome:
    server = probed.endpoint.server
    response_format = {"type": "json_schema", "json_schema": {"name": "probe", "schema": _SCHEMA, "strict": True}}
    body: dict[str, object] = {"model": server.model, "max_tokens": 32, "temperature": 0.0, "response_format": response_format}
    if server.chat:
        body |= {
            "messages": [{"role": "system", "content": probed.instruction}, {"role": "user", "content": probed.query}],
            "chat_template_kwargs": {"enable_thinking": False},
        }
    else:
        body |= {"prompt": f"{probed.instruction}\n\n{probed.query}\n\n{probed.answer_cue}\n"}
    started_at = time.perf_counter()
    response = await probed.post("/chat/completions" if server.chat else "/completions", body)
    latency_ms = (time.perf_counter() - started_at) * 1_000
    try:
        completion = Completion.model_validate_json(response)
        usage = None if completion.usage is None else WireUsage.model_validate(completion.usage)
    except ValidationError:
        return _CallOutcome("", None, latency_ms)
    return _CallOutcome(completion.choices[0].content, usage, latency_ms)


def _judge_structure(outcome: _CallOutcome) -> Probe:
    try:
        parsed = parse_json(outcome.text)
    except PlainDataError:
        parsed = None
    fields = cast("dict[str, object]", parsed) if isinstance(parsed, dict) else {}
    if set(fields) == {"ok"} and isinstance(fields["ok"], bool):
        return Probe("structured output", True, "structured output")
    remedy = "Start the server with --grammar-backend xgrammar and --constrained-json-disable-any-whitespace."
    return Probe("structured output", False, f"an answer that does not fit its schema: {outcome.text[:60]!r}", remedy)


def _judge_cache(outcome: _CallOutcome) -> Probe:
    details = outcome.usage.prompt_tokens_details if outcome.usage else None
    if outcome.usage is None or details is None or details.cached_tokens is None:
        return Probe("prefix cache", False, "usage does not report cached tokens", "Start the server with --enable-cache-report.")
    if details.cached_tokens < outcome.usage.prompt_tokens / 2:
        fault = f"{details.cached_tokens} of {outcome.usage.prompt_tokens} repeated tokens came from the cache"
        return Probe("prefix cache", False, fault, "Start the server without --disable-radix-cache; a full cache forgets what was asked.")
    return Probe("prefix cache", True, f"prefix cache ({details.cached_tokens} of {outcome.usage.prompt_tokens} repeated tokens)")


async def _probe_metrics(probed: _ProbedServer) -> Sequence[Probe]:
    try:
        is_enabled = b"sglang:" in await probed.get(f"{probed.endpoint.server.url}/metrics")
    except ModelRejectedError:
        is_enabled = False
    if is_enabled:
        return [Probe("metrics", True, "metrics")]
    return [Probe("metrics", False, "/metrics has no figures of SGLang", "Start the server with --enable-metrics.")]
