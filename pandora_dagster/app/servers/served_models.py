"""Runtimes, embedding models and checks over model servers. Part of the composition root; the embedded runtime imports none of it."""

from pandora_dagster.app.servers.layer_health import ServerHealth
from pandora_dagster.contracts.ports.measurement import Metrics
from pandora_dagster.contracts.ports.model_runtime import EmbeddingModel, ModelRuntime, TokenRatios
from pandora_dagster.errors import ConfigurationError
from pandora_dagster.runtime.embedders import LocalEmbedder, ServerEmbedder
from pandora_dagster.runtime.offline_runtime import OfflineRuntime
from pandora_dagster.runtime.openai.openai_runtime import OpenAIRuntime
from pandora_dagster.runtime.serving.on_demand_start import OnDemandStart
from pandora_dagster.runtime.serving.serving_folder import ServingFolder
from pandora_dagster.runtime.sglang.endpoints import Endpoints
from pandora_dagster.runtime.sglang.runtime_file import load_endpoints, single_server_endpoints
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from pandora_dagster.settings import Settings, process_environment, set_process_variables
from pandora_dagster.shipped import shipped_folder


def open_embeddings(settings: Settings) -> EmbeddingModel:
    """The embedding model that the settings name; raises ConfigurationError for a runtime file without an embeddings server."""
    if settings.embeddings == "local":
        return LocalEmbedder(set_process_variables)
    endpoints = load_endpoints(settings.runtime_file)
    if endpoints.embeddings is None:
        raise ConfigurationError(
            f"{settings.runtime_file}: preset {endpoints.preset}: embeddings is missing: expected a server's name",
            hint="Name the server that makes vectors, or set PANDORA_EMBEDDINGS to local or off.",
        )
    return ServerEmbedder(endpoints.embeddings, keys=process_environment())


def open_served_runtime(settings: Settings, meters: Metrics | None) -> ModelRuntime:
    """The runtime over model servers that the settings name; raises ConfigurationError for a faulty `runtime.yaml`."""
    if settings.runtime == "openai":
        return OpenAIRuntime(_openai_endpoints(settings), keys=process_environment(), meters=meters)
    endpoints = load_endpoints(settings.runtime_file)
    if settings.runtime == "sglang-offline":
        return OfflineRuntime(endpoints, python=settings.sglang_python, environ=process_environment())
    return SglangRuntime(endpoints, keys=process_environment(), starter=OnDemandStart(ServingFolder(settings.root)), meters=meters)


def open_server_checks(settings: Settings, runtime: ModelRuntime, ratios: TokenRatios) -> ServerHealth | None:
    """The checks of the servers of the runtimes `sglang` and `openai`; None for others."""
    if not isinstance(runtime, SglangRuntime):
        return None
    return ServerHealth(runtime, settings.runtime_file, ratios, ServingFolder(settings.root))


def served_endpoints(runtime: ModelRuntime) -> Endpoints | None:
    """The endpoints of the runtime file that a runtime calls; None for a runtime without servers."""
    return runtime.endpoints if isinstance(runtime, SglangRuntime | OfflineRuntime) else None


def _openai_endpoints(settings: Settings) -> Endpoints:
    """The one server that the settings name, or those of a runtime file of the user's own; raises ConfigurationError."""
    if settings.openai_base_url:
        return single_server_endpoints(
            settings.openai_base_url, settings.openai_model, api_key_env=settings.openai_api_key_env, context=settings.openai_context
        )
    if settings.runtime_file == shipped_folder() / "data" / "runtime.yaml":  # its servers are SGLang's
        raise ConfigurationError(
            f"PANDORA_RUNTIME: openai: no server is named: expected PANDORA_OPENAI_BASE_URL or {settings.root / 'runtime.yaml'}",
            hint="For Ollama set PANDORA_OPENAI_BASE_URL=http://127.0.0.1:11434/v1 and PANDORA_OPENAI_MODEL to a name of `ollama list`.",
        )
    return load_endpoints(settings.runtime_file)
