"""The format of OpenAI's embeddings: requests, and vectors as numbers or as base64 of float32 values."""

import struct
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pandora_dagster.api.request_fields import RequestBody, param_error, parse_body, unknown_model

MAX_TEXTS = 2_048
"""Texts of a request, as OpenAI bounds them."""
REFUSED: Mapping[str, str] = {"dimensions": "the model's vectors have one length: expected no value"}
"""Field -> why it is refused: it would change what the client gets."""


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """Texts whose vectors a client wants."""

    texts: tuple[str, ...]
    encoding: Literal["float", "base64"]


class _EmbeddingsBody(RequestBody):
    input: Any
    encoding_format: Literal["float", "base64"] | None = None


def parse_embedding_request(body: bytes, *, model: str) -> EmbeddingRequest:
    """Parse a body; `model` is the name of the model that makes vectors. Raises ApiError."""
    request = parse_body(body, _EmbeddingsBody, REFUSED)
    if request.model != model:
        raise unknown_model(request.model, model)
    texts = (request.input,) if isinstance(request.input, str) else request.input
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) and text for text in texts):  # pyright: ignore[reportUnknownVariableType] - JSON
        raise param_error("input", "expected a text that is not empty, or a list of them; tokens are not read")
    if not 0 < len(texts) <= MAX_TEXTS:  # pyright: ignore[reportUnknownArgumentType] - JSON
        raise param_error("input", f"expected 1 to {MAX_TEXTS} texts")
    return EmbeddingRequest(tuple(texts), request.encoding_format or "float")  # pyright: ignore[reportUnknownArgumentType] - checked above


def embeddings_body(request: EmbeddingRequest, vectors: Sequence[Sequence[float]], *, model: str, tokens: int) -> dict[str, Any]:
    """The body of an answer, one vector a text."""
    data = [
        {"object": "embedding", "index": place, "embedding": _encoded(vector, request.encoding)} for place, vector in enumerate(vectors)
    ]
    return {"object": "list", "data": data, "model": model, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}


def _encoded(vector: Sequence[float], encoding: str) -> list[float] | str:
    return b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode() if encoding == "base64" else list(vector)
