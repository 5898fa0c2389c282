"""Clients of the model servers: one for each server and event loop, over openai and its HTTP client.

openai takes half a second to import, so it is imported where the first connection is made.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pandora_dagster.errors import ModelError, ModelRejectedError
from pandora_dagster.runtime.sglang.completion_requests import Request
from pandora_dagster.runtime.sglang.endpoints import AnyEndpoint, Server, on_this_machine
from pandora_dagster.runtime.sglang.model_errors import BodyTooLargeError, EndpointRefusedError, model_error

if TYPE_CHECKING:
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

MAX_ANSWER_BYTES = 8 * 1024 * 1024
"""Bytes of a response; the largest recipe's answer is under 100 kB."""
_MAX_REFUSAL_BYTES = 64 * 1024
"""Bytes of a refusal that are read; its message is at the beginning."""
_CONNECT_TIMEOUT_S = 5.0


class _Response(Protocol):
    """What is used of a response: httpx and httpx2, of which openai uses one, both have it."""

    @property
    def is_success(self) -> bool: ...
    @property
    def status_code(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    def aiter_bytes(self) -> AsyncIterator[bytes]: ...


@dataclass(frozen=True, slots=True)
class Connection:
    """The client of one server."""

    client: "AsyncOpenAI"
    http: "DefaultAsyncHttpxClient"
    secret: str
    """The server's key, to be removed from messages; "" where it has none."""

    async def send(self, request: Request) -> bytes:
        """The body of the answer, as the server sent it; at most `MAX_ANSWER_BYTES`."""
        return b"".join([chunk async for chunk in self.stream(request)])

    async def stream(self, request: Request) -> AsyncGenerator[bytes]:
        """The body of the answer piece by piece, as the server sends it; at most `MAX_ANSWER_BYTES`."""
        if request.chat:
            call = self.client.chat.completions.with_streaming_response.create(
                model=request.model,
                messages=request.messages,
                extra_body=request.fields,
            )
        else:
            call = self.client.completions.with_streaming_response.create(
                model=request.model,
                prompt=request.prompt,
                extra_body=request.fields,
            )
        async with call as response:
            async for chunk in _limit_bytes(response.iter_bytes()):
                yield chunk

    async def fetch(self, url: str, body: Mapping[str, object] | None = None) -> bytes:
        """The body behind `url` of this server; with `body` the request is a POST."""
        headers = {"Authorization": f"Bearer {self.secret}"} if self.secret else {}
        async with self.http.stream("GET" if body is None else "POST", url, headers=headers, json=body) as response:
            return b"".join([chunk async for chunk in _limit_bytes(response.aiter_bytes())])


class Connections:
    """Opens one connection for each server and event loop when it is first needed.

    A client belongs to the loop that it was made on. The connections of a loop close with `aclose`, or when `asyncio.run` ends the loop.
    """

    def __init__(self, keys: Mapping[str, str], *, keep_alive: bool = True) -> None:
        """Without `keep_alive` each request has a connection of its own: llama.cpp closes one after a stream without saying so."""
        self._keys, self._keep_alive = keys, keep_alive
        self._by_loop: dict[asyncio.AbstractEventLoop, tuple[dict[Server, Connection], AsyncGenerator[None]]] = {}

    async def connection_to(self, endpoint: AnyEndpoint) -> Connection:
        """The running loop's connection to the endpoint's server; raises ModelRejectedError where its key is missing."""
        connections = await self._loop_connections()
        server = endpoint.server
        if server not in connections:
            connections[server] = _connection(server, _secret(endpoint, self._keys), keep_alive=self._keep_alive)
        return connections[server]

    async def fetch(self, endpoint: AnyEndpoint, url: str, body: Mapping[str, object] | None = None) -> bytes:
        """The body behind `url` of the endpoint's server; raises every fault of the connection as its ModelError."""
        connection = await self.connection_to(endpoint)
        try:
            return await connection.fetch(url, body)
        except Exception as fault:
            error = None if isinstance(fault, ModelError | TimeoutError) else model_error(fault, endpoint, secret=connection.secret)
            if error is None:
                raise
            raise error from None  # the chain below may quote headers

    async def _loop_connections(self) -> dict[Server, Connection]:
        loop = asyncio.get_running_loop()
        if loop not in self._by_loop:
            for closed_loop in [other for other in self._by_loop if other.is_closed()]:
                del self._by_loop[closed_loop]
            connections: dict[Server, Connection] = {}
            closer = _close_at_end(connections)
            self._by_loop[loop] = (connections, closer)
            await anext(closer)
        return self._by_loop[loop][0]

    async def aclose(self) -> None:
        """Closes the running loop's connections."""
        if entry := self._by_loop.pop(asyncio.get_running_loop(), None):
            await entry[1].aclose()


async def _close_at_end(connections: Mapping[Server, Connection]) -> AsyncGenerator[None]:
    """A generator that closes the connections when it is closed: by `aclose`, or by `asyncio.run`, which closes a loop's generators."""
    try:
        yield
    finally:
        for connection in connections.values():
            await connection.http.aclose()


def _connection(server: Server, secret: str, *, keep_alive: bool) -> Connection:
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Timeout

    http = DefaultAsyncHttpxClient(
        # a proxy from the environment is for other machines' servers
        trust_env=not on_this_machine(server.base_url),
        timeout=Timeout(None, connect=_CONNECT_TIMEOUT_S),  # the caller sets one deadline for the rest
        follow_redirects=False,
        headers={} if keep_alive else {"Connection": "close"},
        event_hooks={"response": [_raise_for_refusal]},
    )
    client = AsyncOpenAI(
        base_url=server.base_url,
        api_key=secret or "EMPTY",
        max_retries=0,
        timeout=Timeout(None, connect=_CONNECT_TIMEOUT_S),
        http_client=http,
    )
    client.organization = client.project = None  # it takes them from the environment, which no setting of ours names
    return Connection(client, http, secret)


async def _raise_for_refusal(response: _Response) -> None:
    """Raise EndpointRefusedError for a failed response, before the client reads a body of any length."""
    if response.is_success:
        return
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > _MAX_REFUSAL_BYTES:
            break
    raise EndpointRefusedError(response.status_code, bytes(body), retry_after=response.headers.get("retry-after", ""))


async def _limit_bytes(chunks: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
    """The chunks; raises BodyTooLargeError beyond `MAX_ANSWER_BYTES`."""
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > MAX_ANSWER_BYTES:
            raise BodyTooLargeError(MAX_ANSWER_BYTES)
        yield chunk


def _secret(endpoint: AnyEndpoint, keys: Mapping[str, str]) -> str:
    """The server's key out of the environment variables `keys`; "" where it needs none. Raises ModelRejectedError."""
    name = endpoint.server.api_key_env
    if name is None:
        return ""
    secret = keys.get(name, "").strip()
    if not secret or not secret.isascii() or not secret.isprintable():
        state = "has characters that no key has" if secret else "is not set"
        raise ModelRejectedError(f"{endpoint}: {name} {state}: expected the server's key", hint=f"Set {name}.")
    return secret
