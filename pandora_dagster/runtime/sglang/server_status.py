"""Status of all servers in `runtime.yaml` (reachable, served model, context length), for `pandora doctor` and the start of a run."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from pydantic import ValidationError

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.errors import ModelError, ModelRejectedError
from pandora_dagster.runtime.sglang.completion_replies import WireModel
from pandora_dagster.runtime.sglang.connections import Connections
from pandora_dagster.runtime.sglang.endpoints import Endpoint, Endpoints
from pandora_dagster.runtime.sglang.model_errors import timeout_error

_MAX_LISTED = 5
"""Served models that a message names."""


@dataclass(frozen=True, slots=True)
class LayerStatus:
    """The status of one layer at one address. An empty `message` means no fault; `remedy` is what to do about one."""

    layer: ModelLayer
    endpoint: str
    model: str
    reachable: bool
    right_model: bool
    context: int | None
    """Tokens that the server says it can take; None where it does not say."""
    message: str = ""
    remedy: str = ""

    @property
    def ok(self) -> bool:
        return not self.message


class _Meta(WireModel):
    n_ctx: int | None = None


class _Model(WireModel):
    """A listed model. SGLang and vLLM say its context as `max_model_len`, llama.cpp as `meta.n_ctx`, LM Studio in a list of its own."""

    id: str
    max_model_len: int | None = None
    loaded_context_length: int | None = None
    meta: _Meta | None = None

    @property
    def context(self) -> int | None:
        return self.max_model_len or self.loaded_context_length or (self.meta.n_ctx if self.meta else None)


class _Models(WireModel):
    data: tuple[_Model, ...]


class _LlamaProperties(WireModel):
    """`/props` of llama.cpp's server."""

    default_generation_settings: _Meta


class _LoadedModel(WireModel):
    name: str
    context_length: int | None = None


class _LoadedModels(WireModel):
    """`/api/ps` of Ollama: the models in memory."""

    models: tuple[_LoadedModel, ...]


def _context_in_list(body: bytes, model: str) -> int | None:
    return next((listed.context for listed in _Models.model_validate_json(body).data if listed.id == model), None)


def _context_in_properties(body: bytes, model: str) -> int | None:
    return _LlamaProperties.model_validate_json(body).default_generation_settings.n_ctx


def _context_in_memory(body: bytes, model: str) -> int | None:
    return next((m.context_length for m in _LoadedModels.model_validate_json(body).models if m.name == model), None)


_CONTEXT_PAGES = (("/props", _context_in_properties), ("/api/ps", _context_in_memory), ("/api/v0/models", _context_in_list))
"""Where llama.cpp, Ollama and LM Studio say how many tokens the loaded model takes, which OpenAI's list of models does not."""


async def layer_statuses(endpoints: Endpoints, connections: Connections, *, timeout_s: float) -> tuple[LayerStatus, ...]:
    """Every layer's status in the stack's order, at each of its addresses; a server that several layers share is asked once."""
    addressed = [replace(endpoints[layer], server=address) for layer in ModelLayer for address in endpoints[layer].server.addresses]
    by_address = {endpoint.server: endpoint for endpoint in addressed}
    listings = await asyncio.gather(*(_served_models(endpoint, connections, timeout_s) for endpoint in by_address.values()))
    models = dict(zip(by_address, listings, strict=True))
    return tuple(_status(endpoint, models[endpoint.server]) for endpoint in addressed)


async def verify_model(connections: Connections, endpoint: Endpoint) -> None:
    """Verify that an address serves the runtime file's model; one that lists no models (a gateway) is not verified.

    Raises ModelRejectedError where it lists other models only, RuntimeUnreachableError where it cannot be reached.
    """
    try:
        models = await _models(connections, endpoint)
    except ModelRejectedError:
        return
    status = _status(endpoint, models)
    if not status.right_model:
        raise ModelRejectedError(status.message, hint=status.remedy)


async def _served_models(endpoint: Endpoint, connections: Connections, timeout_s: float) -> Mapping[str, int | None] | ModelError:
    """Model name -> context length, as the server lists them; or why it does not list them."""
    try:
        await connections.connection_to(endpoint)
        async with asyncio.timeout(timeout_s):
            with suppress(ModelRejectedError):  # a gateway before the server need not know /health
                await connections.fetch(endpoint, f"{endpoint.server.url}/health")
            models = await _models(connections, endpoint)
            name = _listed_name(endpoint.server.model, models)
            if name is not None and models[name] is None and not endpoint.server.states_context:
                return {**models, name: await _own_context(connections, endpoint, name)}
            return models
    except TimeoutError:
        return timeout_error(endpoint, timeout_s)
    except ModelError as error:
        return error


async def _models(connections: Connections, endpoint: Endpoint) -> Mapping[str, int | None]:
    """Model name -> context length, as `/v1/models` lists them; raises ModelRejectedError for another body."""
    body = await connections.fetch(endpoint, f"{endpoint.server.base_url}/models")
    try:
        return {model.id: model.context for model in _Models.model_validate_json(body).data}
    except ValidationError:
        raise ModelRejectedError(
            f"{endpoint}: /v1/models lists no models: expected OpenAI's API there", hint="Correct base_url in runtime.yaml."
        ) from None


async def _own_context(connections: Connections, endpoint: Endpoint, model: str) -> int | None:
    """The context length by the server's own pages; None where it has none of them."""
    for path, read in _CONTEXT_PAGES:
        with suppress(ModelError, ValidationError):
            if (context := read(await connections.fetch(endpoint, endpoint.server.url + path), model)) is not None:
                return context
    return None


def _listed_name(model: str, models: Mapping[str, int | None]) -> str | None:
    """The name under which the model is listed: its own, or with the tag that Ollama adds; None where it is not listed."""
    return next((name for name in (model, f"{model}:latest") if name in models), None)


def _status(endpoint: Endpoint, models: Mapping[str, int | None] | ModelError) -> LayerStatus:
    """The status of a layer whose address lists `models`, or failed to."""
    layer, server = endpoint.layer, endpoint.server
    identity = (layer, server.base_url, server.model)
    if isinstance(models, ModelError):
        message = f"{endpoint}{str(models)[str(models).index(': ') :]}"  # the fault of a shared server, reported for this layer
        return LayerStatus(
            *identity,
            reachable=isinstance(models, ModelRejectedError),
            right_model=False,
            context=None,
            message=message,
            remedy=models.hint,
        )
    name = _listed_name(server.model, models)
    if name is None:
        # SGLang takes any model name and echoes it: nothing but this list shows the difference
        listed = ", ".join(sorted(models)[:_MAX_LISTED]) or "none"
        message = f"{endpoint}: serves {listed}: expected {server.model}"
        return LayerStatus(
            *identity, True, False, None, message, "Set model in runtime.yaml to the served name, or start the server with that model."
        )
    context = models[name]
    if server.states_context and context is not None and context < server.context_length:
        message = f"{endpoint}: takes {context} tokens: expected the {server.context_length} of runtime.yaml"
        remedy = f"Set context_length to {context}, or start the server with --context-length {server.context_length}."
        return LayerStatus(*identity, True, True, context, message, remedy)
    return LayerStatus(*identity, True, True, context)
