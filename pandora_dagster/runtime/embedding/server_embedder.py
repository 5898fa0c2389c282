"""`Embeds` by the `/v1/embeddings` of a model server. Knows its form; knows nothing of what the texts are.

A search is no async work, so the request runs on a loop of its own, in a thread of its own.
"""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from pydantic import BaseModel, ConfigDict, ValidationError

from pandora_dagster.errors import BadAnswerError, ModelError
from pandora_dagster.runtime.sglang.connections import Connection, Connections
from pandora_dagster.runtime.sglang.endpoints import EmbeddingEndpoint
from pandora_dagster.runtime.sglang.model_errors import model_error, timeout_error

_TEXTS_AT_ONCE = 64
_CHARACTERS_A_TOKEN = 2
"""Fewer than a token has as a rule, so that a text within the model's context in characters is so in tokens too."""


class _Vector(BaseModel):
    model_config = ConfigDict(extra="ignore")
    index: int
    embedding: list[float]


class _Vectors(BaseModel):
    model_config = ConfigDict(extra="ignore")
    data: list[_Vector]


class ServerEmbedder:
    """The model that `embeddings` in `runtime.yaml` names. `keys`: environment variables that may hold the server's key."""

    def __init__(self, endpoint: EmbeddingEndpoint, *, keys: Mapping[str, str]) -> None:
        self._endpoint = endpoint
        self._keys = keys
        self.name = endpoint.server.model

    def embed(self, texts: Sequence[str], *, timeout_s: float) -> list[list[float]]:
        """One vector a text, all within `timeout_s` seconds. A text beyond the model's context is cut. Raises ModelError."""
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, self._embedded(texts, timeout_s)).result()

    async def _embedded(self, texts: Sequence[str], timeout_s: float) -> list[list[float]]:
        connections = Connections(self._keys)
        try:
            connection = await connections.connection_to(self._endpoint)
            async with asyncio.timeout(timeout_s):
                parts = [texts[first : first + _TEXTS_AT_ONCE] for first in range(0, len(texts), _TEXTS_AT_ONCE)]
                return [vector for part in parts for vector in await self._request_vectors(connection, part)]
        except TimeoutError:
            raise timeout_error(self._endpoint, timeout_s) from None
        finally:
            await connections.aclose()

    async def _request_vectors(self, connection: Connection, texts: Sequence[str]) -> list[list[float]]:
        server = self._endpoint.server
        longest = server.context_length * _CHARACTERS_A_TOKEN
        body = {"model": server.model, "input": [text[:longest] for text in texts], "encoding_format": "float"}
        try:
            answer = await connection.post(f"{server.base_url}/embeddings", body)
        except Exception as fault:
            found = None if isinstance(fault, ModelError | TimeoutError) else model_error(fault, self._endpoint, secret=connection.secret)
            if found is None:
                raise
            raise found from None
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
