"""Ports of model servers: answers, embeddings, token ratios, capacity."""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.model_calls import ModelAnswer, PromptPack


class ModelRuntime(Protocol):
    """One runtime behind one port: `extractive` or `sglang`."""

    @property
    def name(self) -> str: ...
    def model(self, layer: ModelLayer) -> str: ...
    def context_limit(self, layer: ModelLayer) -> int | None:
        """Tokens the served model can take, None where unbounded or not yet known."""
        ...

    def temperature(self, layer: ModelLayer) -> float: ...
    async def count(self, pack: PromptPack) -> int | None:
        """Tokens of the pack's whole prompt as its layer's model reads it; None where the runtime cannot count them. Never raises."""
        ...

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: Callable[[str], None] | None = None) -> ModelAnswer:
        """One answer; raises ModelError, a ModelTimeoutError after `timeout_s` seconds from when the call has its place at
        the server. Never retries by itself what the recipe's gates decide about.

        `on_words` receives the answer's text in pieces while the model writes it; an exception that it raises ends the call."""
        ...

    async def aclose(self) -> None: ...


class EmbeddingModel(Protocol):
    """Texts as vectors, close to each other where they mean alike; a model server's, or a local model's."""

    @property
    def name(self) -> str:
        """The model and its version: vectors of different names are never compared."""
        ...

    def embed(self, texts: Sequence[str], *, timeout_s: float) -> list[list[float]]:
        """One vector a text, float32 values, all of one length. Raises ModelError; a long text's end may not be read."""
        ...


class TokenRatios(Protocol):
    """What was learned of the served tokenizers: served tokens per cl100k token, of each layer and model."""

    def find(self, layer: ModelLayer, model: str) -> float | None:
        """None where nothing is known of this model on this layer; raises DocumentError for a damaged file."""
        ...

    def keep(self, layer: ModelLayer, model: str, ratio: float) -> None:
        """Raises StoreError."""
        ...


@runtime_checkable
class Capacity(Protocol):
    """How much the model servers take."""

    def max_concurrent_calls(self) -> int:
        """Calls that may be under way at once now, all servers together; 0 while none is there."""
        ...
