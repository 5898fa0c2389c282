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
        """Tokens that the served model can read; None where unbounded or not yet known."""
        ...

    def picture_fault(self, layer: ModelLayer) -> str:
        """Why the model of `layer` reads no pictures; "" where it does."""
        ...

    def temperature(self, layer: ModelLayer) -> float: ...
    async def count(self, pack: PromptPack) -> int | None:
        """Tokens of the pack's whole prompt as its layer's model reads it; None where the runtime cannot count them. Never raises."""
        ...

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: Callable[[str], None] | None = None) -> ModelAnswer:
        """One answer; raises ModelError, of these ModelTimeoutError `timeout_s` seconds after the server admitted the call.

        It never sends a call again because of the answer: the recipe's gates decide that.

        `on_words` receives the answer's text in pieces while the model writes it; an exception that it raises ends the call."""
        ...

    async def aclose(self) -> None: ...


class EmbeddingModel(Protocol):
    """Turns texts into vectors, which are close to each other where the texts mean the same."""

    @property
    def name(self) -> str:
        """The model and its version: vectors of different names are never compared."""
        ...

    def embed(self, texts: Sequence[str], *, timeout_s: float) -> list[list[float]]:
        """One vector for each text: float32 values, all of one length. Raises ModelError. The model may ignore the end of a long text."""
        ...


class TokenRatios(Protocol):
    """Measured ratios of the served tokenizers: served tokens per cl100k token, by layer and model."""

    def find(self, layer: ModelLayer, model: str) -> float | None:
        """None where the model was not measured on this layer; raises DocumentError for a damaged file."""
        ...

    def keep(self, layer: ModelLayer, model: str, ratio: float) -> None:
        """Raises StoreError."""
        ...


@runtime_checkable
class Capacity(Protocol):
    """The capacity of the model servers."""

    def max_concurrent_calls(self) -> int:
        """Calls that all servers together answer concurrently now; 0 while no server runs."""
        ...
