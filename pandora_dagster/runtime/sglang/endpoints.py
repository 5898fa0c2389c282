"""The content of `runtime.yaml`: presets of servers, and the server that answers for each model layer. Opens neither file nor socket."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Annotated, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.model_calls import Price
from pandora_dagster.contracts.strict_model import removed_fields
from pandora_dagster.execution.call.layer_routing import Routing

_STRICT = ConfigDict(frozen=True, extra="forbid")
ASSUMED_CONTEXT = 4_096
"""Tokens of one request where neither the runtime file nor the server says how many it takes: the least that local servers start with."""
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_MAX_URL_CHARACTERS = 100
"""Characters of a wrong URL that a message quotes."""
_RESERVED_OPTIONS = ("--host", "--port", "--model", "--model-path", "--served-model-name", "--context-length", "--mem-fraction-static")
_FORBIDDEN_OPTIONS = ("--api-key", "--admin-api-key")


def _check_url(text: str) -> str:
    """`text` as the URL of an endpoint, without a slash at its end. The error never repeats a URL that may hold a password."""
    expected = "expected a URL such as http://127.0.0.1:30000/v1"
    if "@" in text:
        raise ValueError(f"a user or password in the URL: {expected}; keys go through api_key_env")
    try:
        parts = urlsplit(text)
        is_http = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        raise ValueError(f"{text[:_MAX_URL_CHARACTERS]!r}: {expected}") from None
    if not is_http or parts.query or parts.fragment or any(character.isspace() for character in text):
        raise ValueError(f"{text[:_MAX_URL_CHARACTERS]!r}: {expected}")
    if not parts.path.rstrip("/").endswith("/v1"):
        raise ValueError(f"{text[:_MAX_URL_CHARACTERS]!r}: does not end in /v1: {expected}")
    return text.rstrip("/")


def _check_variable_name(text: str) -> str:
    """`text` as the name of an environment variable. The error never repeats it: it may be the key itself."""
    if not (text.isascii() and text.isidentifier() and text.upper() == text):
        raise ValueError("expected the name of an environment variable, in capitals, such as SGLANG_API_KEY; never the key itself")
    return text


def _check_option(text: str) -> str:
    """One word of `options`; arguments that have a field of their own, and keys, are not allowed there."""
    flag = text.partition("=")[0]
    if flag in _FORBIDDEN_OPTIONS:
        raise ValueError(f"{flag}: expected no key here: a server that is launched listens on this machine alone")
    if flag in _RESERVED_OPTIONS:
        raise ValueError(f"{flag}: expected in the server's own fields (base_url, model, context_length, model_path, memory_fraction)")
    return text


_Word = Annotated[str, Field(min_length=1, max_length=4_096, coerce_numbers_to_str=True)]


class Launch(BaseModel):
    """What `pandora serve` starts for a server; `{}` is SGLang with the model's own name as its path."""

    model_config = _STRICT
    python: _Word | None = None
    """Python interpreter of the environment that has SGLang; absent: the one that PANDORA_SGLANG_PYTHON names."""
    command: Annotated[tuple[_Word, ...], Field(min_length=1)] | None = None
    """Replaces `python -m sglang.launch_server`; the server's arguments follow it."""
    model_path: _Word | None = None
    """Folder or Hugging Face name; absent: `model`."""
    memory_fraction: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] | None = None
    """Share of the whole GPU's memory for weights and KV cache."""
    gpus: tuple[Annotated[int, Field(ge=0, le=1_023, strict=True)], ...] = ()
    """As `nvidia-smi` numbers them; several share the model by tensor parallelism. Absent: the first visible one."""
    options: tuple[Annotated[_Word, AfterValidator(_check_option)], ...] = ()
    """Further arguments of the server."""
    cold: Annotated[bool, Field(strict=True)] = False
    """Started by the first call, stopped after `idle_s` without one (specification 000, section 3: the layer EYES)."""
    idle_s: Annotated[float, Field(gt=0, le=604_800, allow_inf_nan=False)] = 600.0
    start_s: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = 900.0
    """Seconds that a start may take; loading weights from a disk for the first time is slow."""
    weights_gb: Annotated[float, Field(gt=0, le=10_000, allow_inf_nan=False)] | None = None
    """Size of the weights, for files that are not on this machine yet and cannot be measured."""

    @model_validator(mode="after")
    def _check_consistency(self) -> "Launch":
        if self.python is not None and self.command is not None:
            raise ValueError("python and command: expected one of them")
        if len(set(self.gpus)) != len(self.gpus):
            raise ValueError("gpus: expected each GPU once")
        return self


class Server(BaseModel):
    """One model server: one model at one address or several, for any number of layers."""

    model_config = _STRICT
    base_url: Annotated[str, AfterValidator(_check_url)]
    model: Annotated[str, Field(min_length=1, max_length=300)]
    """The name under which the server lists the model in `/v1/models`."""
    context_length: Annotated[int, Field(ge=512, le=10_000_000, strict=True)] = ASSUMED_CONTEXT
    """Tokens of one request, prompt and answer together; absent: what the server says."""
    max_connections: Annotated[int, Field(ge=1, le=1_024, strict=True)] | None = None
    """Maximum of concurrent calls; absent: as many as the server keeps up with."""
    chat: Annotated[bool, Field(strict=True)] = True
    """False: no chat template, prompt packs are sent as plain text (decision 26)."""
    images: Annotated[bool, Field(strict=True)] = False
    """Whether the model reads images beside text; needs `chat`."""
    api_key_env: Annotated[str, AfterValidator(_check_variable_name)] | None = None
    launch: Launch | None = None
    """How `pandora serve` starts the server; absent: it is started elsewhere."""

    replicas: tuple[Annotated[str, AfterValidator(_check_url)], ...] = ()
    """Further addresses that serve the same model; a call goes to the one with the fewest running calls."""
    priorities: Annotated[bool, Field(strict=True)] = False
    """Whether the server was started with --enable-priority-scheduling."""
    patience_s: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = 120.0
    """Seconds that a call waits for admission: in the queue here, and for a server whose queue is full."""

    @property
    def states_context(self) -> bool:
        """Whether the runtime file has the context length."""
        return "context_length" in self.model_fields_set

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).hostname or ""

    @property
    def port(self) -> int:
        parts = urlsplit(self.base_url)
        return parts.port or (443 if parts.scheme == "https" else 80)

    @property
    def url(self) -> str:
        """The URL before `/v1`, for SGLang's own endpoints such as `/health` and `/metrics`."""
        return self.base_url.removesuffix("/v1")

    @model_validator(mode="after")
    def _check_launch(self) -> "Server":
        if self.launch is None:
            return self
        if not self.states_context:
            raise ValueError("context_length: missing: expected the length that the server is launched with")
        parts = urlsplit(self.base_url)
        if parts.scheme != "http" or parts.path != "/v1" or parts.port is None or not on_this_machine(self.base_url):
            raise ValueError(f"launch: base_url {self.base_url}: expected this machine and a port, such as http://127.0.0.1:30000/v1")
        if self.api_key_env is not None:
            raise ValueError("launch: api_key_env: expected none: a server that is launched listens on this machine alone")
        return self

    @property
    def addresses(self) -> "tuple[Server, ...]":
        """One server for each address: `base_url`, then the replicas."""
        return tuple(self.model_copy(update={"base_url": url, "replicas": ()}) for url in dict.fromkeys((self.base_url, *self.replicas)))


def on_this_machine(url: str) -> bool:
    """Whether `url` leads to the loopback interface."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Layer(BaseModel):
    """How one model layer uses its server (specification 000, section 3)."""

    model_config = _STRICT
    server: str
    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)]
    max_at_once: Annotated[int, Field(ge=1, le=1_024, strict=True)] | None = None
    """Calls of this layer under way at once; beside the server's own `max_connections`."""
    per_minute: Annotated[int, Field(ge=1, le=1_000_000, strict=True)] | None = None
    """Calls of this layer begun within any 60 seconds."""
    price: Price | None = None
    """Price of a million tokens, for the costs in call records."""
    _removed = removed_fields(thinking=False)


_TEMPERATURES = {ModelLayer.REFLEX: 0.0, ModelLayer.NERVES: 0.3, ModelLayer.MIND: 0.5, ModelLayer.VOICE: 0.7, ModelLayer.EYES: 0.2}
"""Temperatures of the layers of a preset without `layers`."""


class Preset(BaseModel):
    """Servers, and the one that each model layer uses; with one server, `layers` may be absent."""

    model_config = _STRICT
    servers: Annotated[Mapping[str, Server], Field(min_length=1)]
    layers: Mapping[ModelLayer, Layer]
    """Absent: every layer uses the only server."""
    embeddings: str | None = None
    """The server that makes vectors (PANDORA_EMBEDDINGS=runtime)."""
    routing: Routing | None = None
    """The choice between two layers by the score of a call (specification 002, section 7); absent: each recipe runs on its own layer."""

    @model_validator(mode="before")
    @classmethod
    def _share_the_only_server(cls, fields: object) -> object:
        """Give every layer the only server where the preset has no `layers`."""
        preset = cast("Mapping[str, object]", fields if isinstance(fields, Mapping) else {})
        servers = preset.get("servers")
        if "layers" in preset or not isinstance(servers, Mapping) or len(names := list(cast("Mapping[str, object]", servers))) != 1:
            return cast("object", fields)
        return {**preset, "layers": {layer.value: {"server": names[0], "temperature": t} for layer, t in _TEMPERATURES.items()}}

    @model_validator(mode="after")
    def _check_references(self) -> "Preset":
        missing = [layer.value for layer in ModelLayer if layer not in self.layers]
        if missing:
            raise ValueError(f"layers: {', '.join(missing)} missing: expected all of {', '.join(ModelLayer)}")
        for name, layer in self.layers.items():
            if layer.server not in self.servers:
                raise ValueError(f"layers.{name}.server: {layer.server!r}: expected one of {', '.join(self.servers)}")
        if self.embeddings is not None and self.embeddings not in self.servers:
            raise ValueError(f"embeddings: {self.embeddings!r}: expected one of {', '.join(self.servers)}")
        embedding_launch = self.servers[self.embeddings].launch if self.embeddings is not None else None
        if embedding_launch is not None and embedding_launch.cold:
            raise ValueError(f"servers.{self.embeddings}.launch.cold: expected false: a search does not wait for a server to start")
        return self

    @model_validator(mode="after")
    def _check_launched_servers(self) -> "Preset":
        ports: dict[int, str] = {}
        for name, server in self.servers.items():
            if server.launch is None:
                continue
            if not _FILE_NAME.fullmatch(name):
                raise ValueError(f"servers: {name[:64]!r}: expected letters, digits, _ and -: a launched server's log is named after it")
            if server.port in ports:
                raise ValueError(f"servers.{name}: port {server.port} is that of {ports[server.port]}: expected one of its own")
            ports[server.port] = name
        return self


class RuntimeFile(BaseModel):
    """The whole `runtime.yaml`: presets by name, and the one in use."""

    model_config = _STRICT
    preset: str
    presets: Annotated[Mapping[str, Preset], Field(min_length=1)]

    @model_validator(mode="after")
    def _check_preset(self) -> "RuntimeFile":
        if self.preset not in self.presets:
            raise ValueError(f"preset: {self.preset!r}: expected one of {', '.join(self.presets)}")
        return self


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model layer with its server and its settings: where and how a call is sent."""

    layer: ModelLayer
    server: Server
    temperature: float
    name: str = ""
    """The server's name in `runtime.yaml`."""
    max_at_once: int | None = None
    per_minute: int | None = None

    def __str__(self) -> str:
        return f"{self.layer} at {self.server.base_url}"


@dataclass(frozen=True, slots=True)
class EmbeddingEndpoint:
    """The server that makes vectors."""

    server: Server

    def __str__(self) -> str:
        return f"embeddings at {self.server.base_url}"


AnyEndpoint = Endpoint | EmbeddingEndpoint
"""The target of a request; its `str` names it in messages."""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The selected preset of the file `source`: the endpoint of each layer."""

    source: str
    preset: str
    by_layer: Mapping[ModelLayer, Endpoint]
    embeddings: EmbeddingEndpoint | None = None
    servers: Mapping[str, Server] = field(default_factory=dict[str, Server])
    """Every server of the preset by name, also those that no layer uses."""
    prices: Mapping[ModelLayer, Price] = field(default_factory=dict[ModelLayer, Price])
    routing: Routing | None = None

    def __getitem__(self, layer: ModelLayer) -> Endpoint:
        return self.by_layer[layer]

    def layers_of(self, name: str) -> tuple[Endpoint, ...]:
        """The layers that the server of this name answers for, in the order of `ModelLayer`."""
        return tuple(self.by_layer[layer] for layer in ModelLayer if self.by_layer[layer].name == name)


class EndpointLookup:
    """The part of the ModelRuntime port that follows from the endpoints alone."""

    endpoints: Endpoints

    def model(self, layer: ModelLayer) -> str:
        """The name of the model that answers for `layer`."""
        return self.endpoints[layer].server.model

    def context_limit(self, layer: ModelLayer) -> int | None:
        """Tokens of one request, prompt and answer together, as `runtime.yaml` says (decision 21)."""
        return self.endpoints[layer].server.context_length

    def picture_fault(self, layer: ModelLayer) -> str:
        """Why the layer's server takes no pictures, as `runtime.yaml` says; "" where it does."""
        server = self.endpoints[layer].server
        reads = server.images and server.chat
        return "" if reads else f"{self.endpoints.source}: the server of the layer {layer.value} has no `images: true`"

    def temperature(self, layer: ModelLayer) -> float:
        """The layer's temperature, for recipes that name none."""
        return self.endpoints[layer].temperature


def select_endpoints(file: RuntimeFile, *, source: str) -> Endpoints:
    """The endpoints of the preset in use; `source` names the file in messages."""
    preset = file.presets[file.preset]
    by_layer = {
        layer: Endpoint(
            layer,
            preset.servers[settings.server],
            settings.temperature,
            settings.server,
            settings.max_at_once,
            settings.per_minute,
        )
        for layer, settings in ((layer, preset.layers[layer]) for layer in ModelLayer)
    }
    embeddings = EmbeddingEndpoint(preset.servers[preset.embeddings]) if preset.embeddings is not None else None
    prices = {layer: settings.price for layer, settings in preset.layers.items() if settings.price is not None}
    return Endpoints(source, file.preset, by_layer, embeddings, preset.servers, prices, preset.routing)
