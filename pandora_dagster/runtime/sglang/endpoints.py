"""Which server answers for which layer: the shape of `runtime.yaml`. Knows its rules; opens neither file nor socket."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from pandora_dagster.contracts.calls import Price
from pandora_dagster.contracts.words import ModelLayer
from pandora_dagster.execution.routing import Routing

_STRICT = ConfigDict(frozen=True, extra="forbid")


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


class Server(BaseModel):
    """One model server: one endpoint, one model, whatever number of layers it answers for."""

    model_config = _STRICT
    base_url: Annotated[str, AfterValidator(_endpoint)]
    model: Annotated[str, Field(min_length=1, max_length=300)]
    """The name under which the server lists the model in `/v1/models`."""
    context_length: Annotated[int, Field(ge=512, le=10_000_000, strict=True)]
    """Tokens of one request, prompt and answer together."""
    max_connections: Annotated[int, Field(ge=1, le=1_024, strict=True)] = 16
    chat: Annotated[bool, Field(strict=True)] = True
    """False: no chat template, packs go as plain text (DECISIONS 26)."""
    api_key_env: Annotated[str, AfterValidator(_variable_name)] | None = None
    replicas: tuple[Annotated[str, AfterValidator(_endpoint)], ...] = ()
    """Further addresses that serve the same model; a call goes to the one with the fewest under way."""
    priorities: Annotated[bool, Field(strict=True)] = False
    """Whether the server was started with --enable-priority-scheduling."""
    patience_s: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = 120.0
    """Seconds that a call waits for its place: its turn here, and a server whose queue is full."""

    @property
    def addresses(self) -> "tuple[Server, ...]":
        """The server at each of its addresses, alone."""
        return tuple(self.model_copy(update={"base_url": url, "replicas": ()}) for url in dict.fromkeys((self.base_url, *self.replicas)))


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


Place = Endpoint | EmbeddingEndpoint
"""Where a request goes, and how messages call it."""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Every layer's endpoint, as the chosen preset of `source` has it."""

    source: str
    preset: str
    by_layer: Mapping[ModelLayer, Endpoint]
    embeddings: EmbeddingEndpoint | None = None
    prices: Mapping[ModelLayer, Price] = field(default_factory=dict[ModelLayer, Price])
    routing: Routing | None = None

    def __getitem__(self, layer: ModelLayer) -> Endpoint:
        return self.by_layer[layer]


def chosen(file: RuntimeFile, *, source: str) -> Endpoints:
    """The endpoints of the file's chosen preset; `source` names the file in messages."""
    preset = file.presets[file.preset]
    joined = {
        layer: Endpoint(layer, preset.servers[use.server], use.temperature, use.thinking, use.max_at_once, use.per_minute)
        for layer in ModelLayer
        for use in [preset.layers[layer]]
    }
    vectors = EmbeddingEndpoint(preset.servers[preset.embeddings]) if preset.embeddings is not None else None
    prices = {layer: use.price for layer, use in preset.layers.items() if use.price is not None}
    return Endpoints(source, file.preset, joined, vectors, prices, preset.routing)
