"""Servers and the layers that they answer for: the models of `runtime.yaml` with their rules. Opens neither file nor socket."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.model_calls import Price
from pandora_dagster.execution.call.layer_routing import Routing

_STRICT = ConfigDict(frozen=True, extra="forbid")
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_RESERVED_OPTIONS = ("--host", "--port", "--model", "--model-path", "--served-model-name", "--context-length", "--mem-fraction-static")
_FORBIDDEN_OPTIONS = ("--api-key", "--admin-api-key")


def _endpoint(text: str) -> str:
    """`text` as an endpoint. Faults never repeat it where it carries a password."""
    expected = "expected a URL such as http://127.0.0.1:30000/v1"
    if "@" in text:
        raise ValueError(f"a user or password in the URL: {expected}; keys go through api_key_env")
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        raise ValueError(f"{text[:100]!r}: {expected}") from None
    if not usable or parts.query or parts.fragment or any(c.isspace() for c in text):
        raise ValueError(f"{text[:100]!r}: {expected}")
    if not parts.path.rstrip("/").endswith("/v1"):
        raise ValueError(f"{text[:100]!r}: does not end in /v1: {expected}")
    return text.rstrip("/")


def _variable_name(text: str) -> str:
    """`text` as the name of an environment variable; what fails is never repeated: it may be the key itself."""
    if not (text.isascii() and text.isidentifier() and text.upper() == text):
        raise ValueError("expected the name of an environment variable, in capitals, such as SGLANG_API_KEY; never the key itself")
    return text


def _option(text: str) -> str:
    """One word of `options`; arguments that have a field of their own are not allowed here."""
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
    """Interpreter of the environment that has SGLang; absent: the one that PANDORA_SGLANG_PYTHON names."""
    command: Annotated[tuple[_Word, ...], Field(min_length=1)] | None = None
    """Replaces `python -m sglang.launch_server`; the server's arguments follow it."""
    model_path: _Word | None = None
    """Folder or Hugging Face name; absent: `model`."""
    memory_fraction: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] | None = None
    """Share of the whole GPU's memory for weights and KV cache."""
    gpus: tuple[Annotated[int, Field(ge=0, le=1_023, strict=True)], ...] = ()
    """As `nvidia-smi` numbers them; several share the model by tensor parallelism. Absent: the first visible one."""
    options: tuple[Annotated[_Word, AfterValidator(_option)], ...] = ()
    """Further arguments of the server."""
    cold: Annotated[bool, Field(strict=True)] = False
    """Started by the first call, stopped after `idle_s` without one (000 section 3: EYES)."""
    idle_s: Annotated[float, Field(gt=0, le=604_800, allow_inf_nan=False)] = 600.0
    start_s: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = 900.0
    """What a start may take; loading weights from a disk for the first time is slow."""
    weights_gb: Annotated[float, Field(gt=0, le=10_000, allow_inf_nan=False)] | None = None
    """Size of the weights, where their files are not on this machine yet and cannot be measured."""

    @model_validator(mode="after")
    def _one_way(self) -> "Launch":
        if self.python is not None and self.command is not None:
            raise ValueError("python and command: expected one of them")
        if len(set(self.gpus)) != len(self.gpus):
            raise ValueError("gpus: expected each GPU once")
        return self


class Server(BaseModel):
    """One model server: one endpoint, one model, whatever number of layers it answers for."""

    model_config = _STRICT
    base_url: Annotated[str, AfterValidator(_endpoint)]
    model: Annotated[str, Field(min_length=1, max_length=300)]
    """The name under which the server lists the model in `/v1/models`."""
    context_length: Annotated[int, Field(ge=512, le=10_000_000, strict=True)]
    """Tokens of one request, prompt and answer together."""
    max_connections: Annotated[int, Field(ge=1, le=1_024, strict=True)] | None = None
    """Maximum of concurrent calls; absent: as many as the server keeps up with."""
    chat: Annotated[bool, Field(strict=True)] = True
    """False: no chat template, packs go as plain text (DECISIONS 26)."""
    images: Annotated[bool, Field(strict=True)] = False
    """Whether the model reads images beside text; needs `chat`."""
    api_key_env: Annotated[str, AfterValidator(_variable_name)] | None = None
    launch: Launch | None = None
    """How `pandora serve` starts the server; absent: it is started elsewhere."""

    replicas: tuple[Annotated[str, AfterValidator(_endpoint)], ...] = ()
    """Further addresses that serve the same model; a call goes to the one with the fewest running calls."""
    priorities: Annotated[bool, Field(strict=True)] = False
    """Whether the server was started with --enable-priority-scheduling."""
    patience_s: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = 120.0
    """Seconds that a call waits for admission: in the queue here, and for a server whose queue is full."""

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).hostname or ""

    @property
    def port(self) -> int:
        parts = urlsplit(self.base_url)
        return parts.port or (443 if parts.scheme == "https" else 80)

    @property
    def url(self) -> str:
        """Base of its own endpoints: `/health`, `/metrics`."""
        return self.base_url.removesuffix("/v1")

    @model_validator(mode="after")
    def _can_be_launched(self) -> "Server":
        if self.launch is None:
            return self
        parts = urlsplit(self.base_url)
        if parts.scheme != "http" or parts.path != "/v1" or parts.port is None or not on_this_machine(self.base_url):
            raise ValueError(f"launch: base_url {self.base_url}: expected this machine and a port, such as http://127.0.0.1:30000/v1")
        if self.api_key_env is not None:
            raise ValueError("launch: api_key_env: expected none: a server that is launched listens on this machine alone")
        return self

    @property
    def addresses(self) -> "tuple[Server, ...]":
        """The server at each of its addresses, alone."""
        return tuple(self.model_copy(update={"base_url": url, "replicas": ()}) for url in dict.fromkeys((self.base_url, *self.replicas)))


def on_this_machine(url: str) -> bool:
    """Whether `url` leads to the loopback interface."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Layer(BaseModel):
    """How one layer of the stack uses its server (000 section 3)."""

    model_config = _STRICT
    server: str
    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)]
    thinking: Annotated[bool, Field(strict=True)] = False
    max_at_once: Annotated[int, Field(ge=1, le=1_024, strict=True)] | None = None
    """Calls of this layer under way at once; beside the server's own `max_connections`."""
    per_minute: Annotated[int, Field(ge=1, le=1_000_000, strict=True)] | None = None
    """Calls of this layer begun within any 60 seconds."""
    price: Price | None = None
    """Of a million tokens, for the records' costs."""


class Preset(BaseModel):
    """Servers, and every layer of the stack on one of them."""

    model_config = _STRICT
    servers: Annotated[Mapping[str, Server], Field(min_length=1)]
    layers: Mapping[ModelLayer, Layer]
    embeddings: str | None = None
    """The server that makes vectors (PANDORA_EMBEDDINGS=runtime)."""
    routing: Routing | None = None
    """The choice between two layers by the score of a call (002 section 7); absent, a recipe's layer is its layer."""

    @model_validator(mode="after")
    def _complete(self) -> "Preset":
        missing = [layer.value for layer in ModelLayer if layer not in self.layers]
        if missing:
            raise ValueError(f"layers: {', '.join(missing)} missing: expected all of {', '.join(ModelLayer)}")
        for name, layer in self.layers.items():
            if layer.server not in self.servers:
                raise ValueError(f"layers.{name}.server: {layer.server!r}: expected one of {', '.join(self.servers)}")
        if self.embeddings is not None and self.embeddings not in self.servers:
            raise ValueError(f"embeddings: {self.embeddings!r}: expected one of {', '.join(self.servers)}")
        vectors = self.servers[self.embeddings].launch if self.embeddings is not None else None
        if vectors is not None and vectors.cold:
            raise ValueError(f"servers.{self.embeddings}.launch.cold: expected false: a search does not wait for its vectors' server")
        return self

    @model_validator(mode="after")
    def _launched_apart(self) -> "Preset":
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
    """`runtime.yaml`."""

    model_config = _STRICT
    preset: str
    presets: Annotated[Mapping[str, Preset], Field(min_length=1)]

    @model_validator(mode="after")
    def _chosen(self) -> "RuntimeFile":
        if self.preset not in self.presets:
            raise ValueError(f"preset: {self.preset!r}: expected one of {', '.join(self.presets)}")
        return self


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A layer with its server: all that one call needs to know."""

    layer: ModelLayer
    server: Server
    temperature: float
    thinking: bool
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
"""Where a request goes, and how messages call it."""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Every layer's endpoint, as the chosen preset of `source` has it."""

    source: str
    preset: str
    by_layer: Mapping[ModelLayer, Endpoint]
    embeddings: EmbeddingEndpoint | None = None
    servers: Mapping[str, Server] = field(default_factory=dict[str, Server])
    """Every server of the preset by its name, those that no layer uses among them."""
    prices: Mapping[ModelLayer, Price] = field(default_factory=dict[ModelLayer, Price])
    routing: Routing | None = None

    def __getitem__(self, layer: ModelLayer) -> Endpoint:
        return self.by_layer[layer]

    def layers_of(self, name: str) -> tuple[Endpoint, ...]:
        """The layers that the server of this name answers for, in the stack's order."""
        return tuple(self.by_layer[layer] for layer in ModelLayer if self.by_layer[layer].name == name)


class EndpointLookup:
    """What a runtime over endpoints knows of each layer."""

    endpoints: Endpoints

    def model(self, layer: ModelLayer) -> str:
        """The name of the model that answers for `layer`."""
        return self.endpoints[layer].server.model

    def context_limit(self, layer: ModelLayer) -> int | None:
        """Tokens of one request, prompt and answer together, as `runtime.yaml` says (DECISIONS 21)."""
        return self.endpoints[layer].server.context_length

    def temperature(self, layer: ModelLayer) -> float:
        """The layer's temperature, for recipes that name none."""
        return self.endpoints[layer].temperature


def chosen_endpoints(file: RuntimeFile, *, source: str) -> Endpoints:
    """The endpoints of the file's chosen preset; `source` names the file in messages."""
    preset = file.presets[file.preset]
    joined = {
        layer: Endpoint(layer, preset.servers[use.server], use.temperature, use.thinking, use.server, use.max_at_once, use.per_minute)
        for layer in ModelLayer
        for use in [preset.layers[layer]]
    }
    vectors = EmbeddingEndpoint(preset.servers[preset.embeddings]) if preset.embeddings is not None else None
    prices = {layer: use.price for layer, use in preset.layers.items() if use.price is not None}
    return Endpoints(source, file.preset, joined, vectors, preset.servers, prices, preset.routing)
