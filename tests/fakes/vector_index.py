"""The VectorIndex port in memory, over any embedding model."""

from collections.abc import Mapping, Sequence
from math import sqrt

from pandora_dagster.contracts.ports.model_runtime import EmbeddingModel
from pandora_dagster.contracts.turns import TurnRow
from pandora_dagster.errors import ModelError
from pandora_dagster.retrieval.messages.document_numbers import document_number, turn_number


class MemoryVectorIndex:
    """The vectors of messages by user and document."""

    def __init__(self, embeds: EmbeddingModel) -> None:
        self._embeds = embeds
        self._vectors: dict[str, dict[int, list[float]]] = {}

    @property
    def name(self) -> str:
        return self._embeds.name

    def put(self, rows: Sequence[TurnRow]) -> None:
        for row in rows:
            stored = self._vectors.setdefault(row.user_id, {})
            for doc in [doc for doc in stored if turn_number(doc) == row.number]:
                del stored[doc]
            for place, message in enumerate(row.messages, 1):
                for vector in self._embedded(message.text):
                    stored[document_number(row.number, place)] = vector

    def similarities(self, user: str, *wordings: str) -> Mapping[int, float]:
        queries = [vector for wording in wordings for vector in self._embedded(wording)]
        if not queries:
            return {}
        query = _unit([sum(values) for values in zip(*queries, strict=True)])
        return {doc: sum(a * b for a, b in zip(vector, query, strict=True)) for doc, vector in self._vectors.get(user, {}).items()}

    def check(self) -> int:
        return len(self._embeds.embed(["search"], timeout_s=1.0)[0])

    def check_stored_model(self) -> None:
        """One model made all vectors of this process."""

    def _embedded(self, text: str) -> list[list[float]]:
        """The vector of a text; none for an empty one, or where the model fails."""
        try:
            return [_unit(vector) for vector in self._embeds.embed([text], timeout_s=1.0)] if text.strip() else []
        except ModelError:
            return []


def _unit(vector: Sequence[float]) -> list[float]:
    length = sqrt(sum(value * value for value in vector))
    return [value / length for value in vector]
