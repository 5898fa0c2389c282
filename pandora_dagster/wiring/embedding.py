"""Whose vectors the search uses, as the settings say."""

import os
from collections.abc import Callable

from pandora_dagster.contracts.ports import EmbeddingModel
from pandora_dagster.errors import ConfigurationError
from pandora_dagster.runtime.embedding.local import LocalEmbedder
from pandora_dagster.runtime.sglang.embeddings import ServerEmbedder
from pandora_dagster.runtime.sglang.runtime_file import load_endpoints
from pandora_dagster.settings import Settings
from pandora_dagster.stores.vectors import TurnVectors


def open_embedder(settings: Settings) -> EmbeddingModel | None:
    """What makes vectors; None where embeddings are off. Raises ConfigurationError for a runtime file that names no server for them."""
    if settings.embeddings == "local":
        return LocalEmbedder()
    if settings.embeddings == "off":
        return None
    endpoints = load_endpoints(settings.runtime_file)
    if endpoints.embeddings is None:
        raise ConfigurationError(
            f"{settings.runtime_file}: preset {endpoints.preset}: embeddings is missing: expected a server's name",
            hint="Name the server that makes vectors, or set PANDORA_EMBEDDINGS to local or off.",
        )
    return ServerEmbedder(endpoints.embeddings, keys=os.environ)


def open_vectors(settings: Settings, embeds: EmbeddingModel | None, report: Callable[[str], None]) -> TurnVectors | None:
    """The vectors of a store; None where nothing makes any."""
    if embeds is None:
        return None
    path = settings.root / "indexes" / "turn_vectors.duckdb"
    return TurnVectors.at(path, embeds, report=report, wait_s=settings.index_lock_wait_s)
