"""The `sglang` runtime: sends each model call to the server of its layer, through admission, and classifies its failure.

`runtime.openai` is the same for servers that have OpenAI's HTTP API and nothing of SGLang's.
"""

import asyncio
import itertools
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import ClassVar, Protocol

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.images import image_tokens
from pandora_dagster.contracts.model_calls import ModelAnswer, PromptPack, Usage
from pandora_dagster.contracts.ports.measurement import Metrics
from pandora_dagster.errors import ModelError, ModelTimeoutError, RuntimeUnreachableError
from pandora_dagster.runtime.sglang.admission import Admission, NullMeters
from pandora_dagster.runtime.sglang.capability_probes import ServerProbes, probe_servers
from pandora_dagster.runtime.sglang.completion_replies import Reply, parse_token_count
from pandora_dagster.runtime.sglang.completion_requests import Request, completion_request, require_image_support, tokenize_request
from pandora_dagster.runtime.sglang.concurrency_limit import ServerLoad, parse_load
from pandora_dagster.runtime.sglang.connections import Connection, Connections
from pandora_dagster.runtime.sglang.endpoints import Endpoint, EndpointLookup, Endpoints, Server
from pandora_dagster.runtime.sglang.exchange import OnWords, exchange
from pandora_dagster.runtime.sglang.server_status import LayerStatus, layer_statuses, verify_model

_log = logging.getLogger(__name__)
_COUNT_TIMEOUT_S = 10.0
_ABORT_TIMEOUT_S = 2.0
_PROBE_TIMEOUT_S = 2.0


class ServerStarter(Protocol):
    """Starts cold servers for the calls that need them."""

    async def ensure_started(self, endpoint: Endpoint) -> None:
        """Return when the server is ready, at once for one that is not cold; raises RuntimeUnreachableError."""
        ...


class SglangRuntime(EndpointLookup):
    """`ModelRuntime` over SGLang's servers. `keys`: environment variables that may hold the servers' keys.

    May be used from several event loops, each with connections of its own.
    """

    name = "sglang"
    has_sglang_api: ClassVar[bool] = True
    """Whether the servers have SGLang's own endpoints and request fields."""

    def __init__(
        self, endpoints: Endpoints, *, keys: Mapping[str, str], starter: ServerStarter | None = None, meters: Metrics | None = None
    ) -> None:
        self.endpoints = endpoints
        self._connections = Connections(keys, keep_alive=self.has_sglang_api)
        self._starter = starter
        self._meters = meters or NullMeters()
        self._admission = Admission(self._meters, read_load=self._server_load)
        self._contexts: dict[Server, int] = {}
        self._attempts = itertools.count(1)
        self._without_usage: set[Server] = set()
        self._abort_tasks: set[asyncio.Task[None]] = set()
        self._to_verify: set[str] = set()
        """Addresses that could not be reached: the next call verifies the server's model, because SGLang accepts any model name."""

    def max_concurrent_calls(self) -> int:
        """The sum of the concurrent calls that the layers' servers take, as measured in the running event loop."""
        return self._admission.capacity(self.endpoints[layer].server for layer in ModelLayer)

    def context_limit(self, layer: ModelLayer) -> int | None:
        """Tokens of one request: those of the runtime file or, where it has none, those that the server said when it was checked."""
        server = self.endpoints[layer].server
        return server.context_length if server.states_context else self._contexts.get(server, server.context_length)

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: OnWords | None = None) -> ModelAnswer:
        """One answer to `pack` within `timeout_s` seconds; raises ModelError by the failure classes of specification 000, section 15.

        The deadline starts when the call is admitted. Before that it waits for a cold server to start, and up to the server's
        `patience_s` in the queue and for a full server. With `on_words` the answer is streamed: each piece is
        passed on while the model writes it, and is not withdrawn where the answer fails later.
        """
        endpoint = self.endpoints[pack.layer]
        require_image_support(pack, endpoint)
        if self._starter is not None:
            await self._starter.ensure_started(endpoint)
        admitted = await self._admission.admit(endpoint, pack.priority, partial(self._send, pack, timeout_s=timeout_s, on_words=on_words))
        await asyncio.sleep(0)  # lets the call that got this call's slot be sent before this answer is judged
        usage = self._usage(admitted.reply, endpoint)
        return ModelAnswer(
            admitted.reply.text,
            admitted.reply.finish_reason,
            usage,
            self.name,
            endpoint.server.model,
            admitted.latency_ms,
            queued_ms=admitted.queued_ms,
        )

    async def _send(self, pack: PromptPack, endpoint: Endpoint, *, timeout_s: float, on_words: OnWords | None) -> Reply:
        """The reply of one admitted call; a call that ends without it is aborted on the server."""
        request = completion_request(
            pack, endpoint, attempt=next(self._attempts), streamed=on_words is not None, has_sglang_fields=self.has_sglang_api
        )
        connection = await self._connections.connection_to(endpoint)
        try:
            await self._verify_model_again(endpoint, timeout_s)
            return await self._exchange(connection, request, endpoint, timeout_s, on_words)
        except ModelTimeoutError:
            self._abort(connection, endpoint, request)
            raise
        except ModelError as error:
            if type(error) is RuntimeUnreachableError:
                self._to_verify.add(endpoint.server.base_url)
            raise
        except BaseException:  # the call was cancelled, or its listener failed
            self._abort(connection, endpoint, request)
            raise

    async def _exchange(
        self, connection: Connection, request: Request, endpoint: Endpoint, timeout_s: float, on_words: OnWords | None
    ) -> Reply:
        return await exchange(connection, request, endpoint, timeout_s, on_words)

    async def _verify_model_again(self, endpoint: Endpoint, timeout_s: float) -> None:
        """Verify the model of an address that was unreachable; raises ModelError where it has another one, or is still unreachable."""
        url = endpoint.server.base_url
        if url not in self._to_verify:
            return
        with suppress(TimeoutError):  # the call itself reports what is wrong
            async with asyncio.timeout(min(_PROBE_TIMEOUT_S, timeout_s)):
                await verify_model(self._connections, endpoint)
            self._to_verify.discard(url)

    async def count(self, pack: PromptPack) -> int | None:
        """The prompt's tokens as the server's `/v1/tokenize` counts them, with its template, plus image estimates; None on failure."""
        server = self._admission.available_address(self.endpoints[pack.layer].server)
        if server is None:
            return None
        endpoint = replace(self.endpoints[pack.layer], server=server)
        url = f"{server.base_url if self.has_sglang_api else server.url}/tokenize"
        body = await self._side_request(endpoint, _COUNT_TIMEOUT_S, url, tokenize_request(pack, endpoint))
        tokens = None if body is None else parse_token_count(body)
        return None if tokens is None else tokens + image_tokens(pack.images)

    async def _server_load(self, endpoint: Endpoint) -> ServerLoad | None:
        """The load of the endpoint's server, where its `/metrics` report it."""
        page = await self._side_request(endpoint, _PROBE_TIMEOUT_S, f"{endpoint.server.url}/metrics")
        return None if page is None else parse_load(page)

    async def _side_request(self, endpoint: Endpoint, timeout_s: float, url: str, body: Mapping[str, object] | None = None) -> bytes | None:
        """The response to a request that is no call; None where it fails: a call reports the fault of the server."""
        with suppress(ModelError, TimeoutError):
            await self._connections.connection_to(endpoint)
            async with asyncio.timeout(timeout_s):
                return await self._connections.fetch(endpoint, url, body)
        return None

    def _usage(self, reply: Reply, endpoint: Endpoint) -> Usage:
        """The server's token counts; zeros where it has none, which is logged once for each server."""
        if reply.usage is None and endpoint.server not in self._without_usage:
            self._without_usage.add(endpoint.server)
            _log.warning("%s: answers without usage: its tokens are counted as 0", endpoint)
        return reply.usage or Usage()

    async def check(self, *, timeout_s: float = 5.0) -> tuple[LayerStatus, ...]:
        """The state of each layer's server; faults are reported, never raised. Calls to unreachable ones verify the model again."""
        statuses = await layer_statuses(self.endpoints, self._connections, timeout_s=timeout_s)
        self._to_verify = {status.endpoint for status in statuses if not status.reachable}
        for status in statuses:
            if status.context is not None:
                self._contexts[self.endpoints[status.layer].server] = status.context
        return statuses

    async def probe(self, layers: Sequence[ModelLayer], *, timeout_s: float = 6.0) -> tuple[ServerProbes, ...]:
        """The capabilities of the servers of these layers, probed by a few small calls; faults are reported, never raised."""
        return await probe_servers(self.endpoints, layers, self._connections, timeout_s=timeout_s)

    async def aclose(self) -> None:
        """Close the running loop's connections, after the aborts that are under way."""
        loop = asyncio.get_running_loop()
        if abort_tasks := [task for task in self._abort_tasks if task.get_loop() is loop]:
            await asyncio.wait(abort_tasks, timeout=_ABORT_TIMEOUT_S)
        self._admission.close()
        await self._connections.aclose()

    def _abort(self, connection: Connection, endpoint: Endpoint, request: Request) -> None:
        """Abort a request on the server, which would go on with it for seconds; in the background, errors are ignored."""
        self._meters.count("pandora_aborts_total", server=endpoint.server.base_url)
        if not request.rid:  # the server sees the closed connection
            return
        task = asyncio.get_running_loop().create_task(_send_abort(connection, endpoint, request.rid))
        self._abort_tasks.add(task)
        task.add_done_callback(self._abort_tasks.discard)


async def _send_abort(connection: Connection, endpoint: Endpoint, rid: str) -> None:
    with suppress(Exception):
        async with asyncio.timeout(_ABORT_TIMEOUT_S):
            await connection.fetch(f"{endpoint.server.url}/abort_request", {"rid": rid})
