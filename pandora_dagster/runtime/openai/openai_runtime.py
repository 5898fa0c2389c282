"""The `openai` runtime: any server with OpenAI's HTTP API, such as Ollama, llama.cpp, vLLM, LM Studio or a cloud (decision 39).

It is the `sglang` runtime without SGLang's own endpoints and request fields. What a server does not take, the request goes without.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence

from pandora_dagster.contracts.enums import ModelLayer, OutputFormat
from pandora_dagster.contracts.model_calls import Part, PromptPack
from pandora_dagster.contracts.ports.measurement import Metrics
from pandora_dagster.documents.plain_json import PlainDataError, parse_json
from pandora_dagster.errors import ModelError, ModelRejectedError
from pandora_dagster.runtime.openai.server_features import RefusedFeatures
from pandora_dagster.runtime.sglang.capability_probes import Probe, ServerProbes, frame_text
from pandora_dagster.runtime.sglang.completion_replies import Reply
from pandora_dagster.runtime.sglang.completion_requests import Request
from pandora_dagster.runtime.sglang.concurrency_limit import ServerLoad
from pandora_dagster.runtime.sglang.connections import Connection
from pandora_dagster.runtime.sglang.endpoints import Endpoint, Endpoints
from pandora_dagster.runtime.sglang.exchange import OnWords, exchange
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime

_PROBE_SHAPE = '{"ok": boolean}'
_ABSENT = "absent"


def _probe_pack(layer: ModelLayer) -> PromptPack:
    """A small call with an output schema."""
    return PromptPack(
        call_id="probe",
        recipe="probe",
        recipe_version="",
        role="probe",
        layer=layer,
        mode="chat",
        output_format=OutputFormat.JSON,
        output_schema={"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": False},
        temperature=0.0,
        max_output_tokens=64,
        parts=(
            Part("schema", "schema", f"{frame_text('json_answer')} {frame_text('answer_shape').replace('{{shape}}', _PROBE_SHAPE)}", 18),
            Part("query", "query", frame_text("probe_query"), 6),
        ),
        answer_cue=frame_text("answer_cue"),
    )


class OpenAIRuntime(SglangRuntime):
    """`ModelRuntime` over servers with OpenAI's HTTP API. `keys`: environment variables that may hold their keys."""

    name = "openai"
    has_sglang_api = False

    def __init__(self, endpoints: Endpoints, *, keys: Mapping[str, str], meters: Metrics | None = None) -> None:
        super().__init__(endpoints, keys=keys, meters=meters)
        self._refused = RefusedFeatures()

    async def probe(self, layers: Sequence[ModelLayer], *, timeout_s: float = 120.0) -> tuple[ServerProbes, ...]:
        """What the servers of these layers have and lack; the first call to a local server may load its model."""
        names = dict.fromkeys(self.endpoints[layer].name for layer in layers)
        return tuple(await asyncio.gather(*(self._probe_server(self.endpoints.layers_of(name), timeout_s) for name in names)))

    async def _exchange(
        self, connection: Connection, request: Request, endpoint: Endpoint, timeout_s: float, on_words: OnWords | None
    ) -> Reply:
        """The answer to the request without the fields that the server refused before, or refuses now."""
        while True:
            adapted = self._refused.adapt(endpoint.server, request)
            try:
                return await exchange(connection, adapted, endpoint, timeout_s, on_words)
            except ModelRejectedError as refusal:
                if not self._refused.learn(endpoint, adapted, refusal):
                    raise

    async def _server_load(self, endpoint: Endpoint) -> ServerLoad | None:
        """None: the calls under way are bounded by `max_connections` alone."""
        return None

    async def _probe_server(self, endpoints: tuple[Endpoint, ...], timeout_s: float) -> ServerProbes:
        endpoint, layers = endpoints[0], tuple(served.layer for served in endpoints)
        pack = _probe_pack(endpoint.layer)
        try:
            whole = await self._send(pack, endpoint, timeout_s=timeout_s, on_words=None)
            started_at = time.perf_counter()
            streamed = await self._send(pack, endpoint, timeout_s=timeout_s, on_words=lambda _: None)
        except ModelError as error:
            return ServerProbes(endpoint.name, layers, (Probe("small calls", False, str(error), error.hint),), None)
        latency_ms = (time.perf_counter() - started_at) * 1_000
        probes = [_judge_schema(whole.text), _judge_usage("usage", whole), _judge_usage("usage of streams", streamed)]
        probes += [
            Probe(feature.name, False, _ABSENT, instead=feature.instead)
            for feature in self._refused.of(endpoint.server)
            if feature.name not in {probe.what for probe in probes}
        ]
        probes.append(await self._probe_count(pack))
        bound = self.max_concurrent_calls()
        probes.append(Probe("queue length and priorities", False, _ABSENT, instead=f"calls wait here, at most {bound} are under way"))
        return ServerProbes(endpoint.name, layers, tuple(probes), latency_ms)

    async def _probe_count(self, pack: PromptPack) -> Probe:
        if await self.count(pack) is not None:
            return Probe("token counts", True, "token counts")
        return Probe("token counts", False, _ABSENT, instead="prompts are planned with the ratio that answers show")


def _judge_usage(what: str, reply: Reply) -> Probe:
    """Whether an answer has its token counts."""
    return Probe(what, True, what) if reply.usage else Probe(what, False, _ABSENT, instead="output tokens are counted here")


def _judge_schema(text: str) -> Probe:
    """Whether the answer to the small call has the shape that was asked for."""
    try:
        answer = parse_json(text)
    except PlainDataError:
        answer = None
    if isinstance(answer, dict) and answer.keys() == {"ok"}:
        return Probe("structured output", True, "structured output")
    fault = f"an answer that does not fit its schema: {text[:60]!r}"
    return Probe("structured output", False, fault, instead="each answer is validated, and asked for again where it fails")
