"""The `sglang` runtime: one model call, classified. Knows endpoints and connections; knows no recipe and never retries."""

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Protocol

from pandora_dagster.contracts.calls import ModelAnswer, PromptPack, Usage
from pandora_dagster.contracts.words import ModelLayer
from pandora_dagster.errors import ModelError
from pandora_dagster.runtime.sglang.answers import Reply, reply_in, size_in
from pandora_dagster.runtime.sglang.check import LayerStatus, look_at
from pandora_dagster.runtime.sglang.connections import Connection, Connections
from pandora_dagster.runtime.sglang.endpoints import Endpoint, Endpoints, Server
from pandora_dagster.runtime.sglang.events import Listening, events_in
from pandora_dagster.runtime.sglang.failures import failure, timed_out
from pandora_dagster.runtime.sglang.probes import ServerProbes, probe
from pandora_dagster.runtime.sglang.requests import Request, question_of_size, request_for

_log = logging.getLogger(__name__)
OnWords = Callable[[str], None]
_COUNT_S = 10.0


class Wakes(Protocol):
    """Servers that are started by the call that needs them."""

    async def wake(self, endpoint: Endpoint) -> None:
        """Returns at once for a server that is always there, else when it is ready; raises RuntimeUnreachableError."""
        ...


class SglangRuntime:
    """`ModelRuntime` over SGLang's servers. `keys`: environment variables that may hold the servers' keys.

    May be used from several event loops, each with connections of its own.
    """

    name = "sglang"

    def __init__(
        self, endpoints: Endpoints, *, keys: Mapping[str, str], wakes: Wakes | None = None, timer: Callable[[], float] = time.perf_counter
    ) -> None:
        self._endpoints = endpoints
        self._connections = Connections(keys)
        self._wakes = wakes
        self._timer = timer
        self._attempts = itertools.count(1)
        self._uncounted: set[Server] = set()

    def model(self, layer: ModelLayer) -> str:
        """The name of the model that answers for `layer`."""
        return self._endpoints[layer].server.model

    def endpoint(self, layer: ModelLayer) -> Endpoint:
        """Where the layer's calls go."""
        return self._endpoints[layer]

    def context_limit(self, layer: ModelLayer) -> int | None:
        """Tokens of one request, prompt and answer together, as `runtime.yaml` says (DECISIONS 21)."""
        return self._endpoints[layer].server.context_length

    def temperature(self, layer: ModelLayer) -> float:
        """The layer's temperature, for recipes that name none."""
        return self._endpoints[layer].temperature

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: OnWords | None = None) -> ModelAnswer:
        """One answer to `pack` within `timeout_s` seconds; raises ModelError as its failure classes say (000 section 15).

        Where `max_connections` calls are under way the call waits its turn, and for a cold server until it is there; its deadline
        starts after that. With `on_words` the
        answer is streamed: each piece is told as it comes, and stays told where the answer fails after all.
        """
        endpoint = self._endpoints[pack.layer]
        request = request_for(pack, endpoint, attempt=next(self._attempts), streamed=on_words is not None)
        connection = await self._connections.to(endpoint)
        if self._wakes is not None:
            await self._wakes.wake(endpoint)
        async with connection.places:
            began = self._timer()
            reply = await _exchange(connection, request, endpoint, timeout_s, on_words)
            latency_ms = (self._timer() - began) * 1_000
        return ModelAnswer(reply.text, reply.finish_reason, self._counted(reply, endpoint), self.name, endpoint.server.model, latency_ms)

    async def count(self, pack: PromptPack) -> int | None:
        """The prompt's tokens as the server's `/v1/tokenize` counts them, template and all; None where it does not say.

        What is wrong with a server is the call's to tell.
        """
        endpoint = self._endpoints[pack.layer]
        try:
            connection = await self._connections.to(endpoint)
            async with asyncio.timeout(_COUNT_S):
                body = await connection.post(f"{endpoint.server.base_url}/tokenize", question_of_size(pack, endpoint))
        except Exception as fault:
            if isinstance(fault, ModelError | TimeoutError) or failure(fault, endpoint) is not None:
                return None
            raise
        return size_in(body)

    def _counted(self, reply: Reply, endpoint: Endpoint) -> Usage:
        """The server's counts; without them 0, said once a server."""
        if reply.usage is None and endpoint.server not in self._uncounted:
            self._uncounted.add(endpoint.server)
            _log.warning("%s: answers without usage: its tokens are counted as 0", endpoint)
        return reply.usage or Usage()

    async def check(self, *, timeout_s: float = 5.0) -> tuple[LayerStatus, ...]:
        """How each layer's server stands; faults are told, never raised."""
        return await look_at(self._endpoints, self._connections, timeout_s=timeout_s)

    async def probe(self, layers: Sequence[ModelLayer], *, timeout_s: float = 6.0) -> tuple[ServerProbes, ...]:
        """What the servers of these layers can do, by a few small calls to each; faults are told, never raised."""
        return await probe(self._endpoints, layers, self._connections, timeout_s=timeout_s)

    async def aclose(self) -> None:
        """Closes the running loop's connections."""
        await self._connections.aclose()


async def _exchange(connection: Connection, request: Request, endpoint: Endpoint, timeout_s: float, on_words: OnWords | None) -> Reply:
    """The answer; every fault of the way becomes its ModelError, a fault of the listener stays its own."""
    deadline = asyncio.timeout(timeout_s)
    try:
        async with deadline:
            if on_words is None:
                return reply_in(await connection.send(request), endpoint)
            return await _heard(connection, request, endpoint, on_words)
    except ModelError:
        raise
    except _ListenerError as fault:
        raise fault.own from None
    except Exception as fault:
        if deadline.expired():
            raise timed_out(endpoint, timeout_s) from None
        found = failure(fault, endpoint, secret=connection.secret)
        if found is None:
            raise
        raise found from None  # the chain below may quote headers


async def _heard(connection: Connection, request: Request, endpoint: Endpoint, on_words: OnWords) -> Reply:
    listening = Listening(endpoint)
    async with aclosing(connection.streamed(request)) as chunks:
        async for data in events_in(chunks):
            if words := listening.take(data):
                try:
                    on_words(words)
                except Exception as own:
                    raise _ListenerError(own) from own
    return listening.reply()


class _ListenerError(Exception):
    """Carries what `on_words` raised past the handling of the server's faults: a closed terminal is no broken connection."""

    def __init__(self, own: Exception) -> None:
        super().__init__(str(own))
        self.own = own
