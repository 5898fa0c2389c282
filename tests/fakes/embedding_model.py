"""A deterministic embedding model: words of one meaning share a direction, every other word has one of its own."""

from collections.abc import Sequence
from hashlib import sha256

from pandora_dagster.errors import RuntimeUnreachableError

_DIRECTIONS = 64
_MEANINGS = {"sofa": "couch", "doctor": "physician", "car": "automobile"}


class FakeEmbedder:
    """`fails`: every request ends in an error. `asked` keeps the texts."""

    name: str

    def __init__(self, name: str = "fake 1") -> None:
        self.name = name
        self.fails = False
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str], *, timeout_s: float) -> list[list[float]]:
        self.asked += texts
        if self.fails:
            raise RuntimeUnreachableError("embeddings at http://127.0.0.1:1/v1: refused the connection: expected a reachable server")
        return [_vector(text) for text in texts]


def _vector(text: str) -> list[float]:
    values = [0.01] * _DIRECTIONS
    for word in text.lower().split():
        meant = _MEANINGS.get(word, word)
        values[int.from_bytes(sha256(meant.encode()).digest()[:4], "big") % _DIRECTIONS] += 1.0
    return values
