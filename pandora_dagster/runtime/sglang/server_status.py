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


class _Model(WireModel):
    id: str
    max_model_len: int | None = None


class _Models(WireModel):
    data: tuple[_Model, ...]


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
            return await _models(connections, endpoint)
    except TimeoutError:
        return timeout_error(endpoint, timeout_s)
    except ModelError as error:
        return error


async def _models(connections: Connections, endpoint: Endpoint) -> Mapping[str, int | None]:
    """Model name -> context length, as `/v1/models` lists them; raises ModelRejectedError for another body."""
    body = await connections.fetch(endpoint, f"{endpoint.server.base_url}/models")
    try:
        return {model.id: model.max_model_len for model in _Models.model_validate_json(body).data}
    except ValidationError:
        raise ModelRejectedError(
            f"{endpoint}: /v1/models lists no models: expected SGLang's API there", hint="Correct base_url in runtime.yaml."
        ) from None


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
    if server.model not in models:
        # SGLang takes any model name and echoes it: nothing but this list shows the difference
        listed = ", ".join(sorted(models)[:_MAX_LISTED]) or "none"
        message = f"{endpoint}: serves {listed}: expected {server.model}"
        return LayerStatus(
            *identity, True, False, None, message, "Set model in runtime.yaml to the served name, or start the server with that model."
        )
    context = models[server.model]
    if context is not None and context < server.context_length:
        message = f"{endpoint}: takes {context} tokens: expected the {server.context_length} of runtime.yaml"
        remedy = f"Set context_length to {context}, or start the server with --context-length {server.context_length}."
        return LayerStatus(*identity, True, True, context, message, remedy)
    return LayerStatus(*identity, True, True, context)
