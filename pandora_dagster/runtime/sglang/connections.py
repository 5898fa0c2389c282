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
_CONNECT_S = 5.0


class _Response(Protocol):
    """The used part of a response, for either HTTP package of openai."""

    @property
    def is_success(self) -> bool: ...
    @property
    def status_code(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    def aiter_bytes(self) -> AsyncIterator[bytes]: ...


@dataclass(frozen=True, slots=True)
class Connection:
    """A server's client."""

    client: "AsyncOpenAI"
    http: "DefaultAsyncHttpxClient"
    secret: str
    """The server's key, for taking it out of messages; "" where it has none."""

    async def send(self, request: Request) -> bytes:
        """The body of the answer, as the server sent it; at most LARGEST_ANSWER bytes."""
        return b"".join([chunk async for chunk in self.streamed(request)])

    async def streamed(self, request: Request) -> AsyncGenerator[bytes]:
        """The body of the answer piece by piece, as the server sends it; at most LARGEST_ANSWER bytes."""
        if request.chat:
            call = self.client.chat.completions.with_streaming_response.create(
                model=request.model,
                messages=request.messages,
                temperature=request.temperature,
                max_tokens=request.max_tokens,
                extra_body=request.extra,
            )
        else:
            call = self.client.completions.with_streaming_response.create(
                model=request.model,
                prompt=request.prompt,
                temperature=request.temperature,
                max_tokens=request.max_tokens,
                extra_body=request.extra,
            )
        async with call as response:
            async for chunk in _bounded(response.iter_bytes()):
                yield chunk

    async def fetch(self, url: str, body: Mapping[str, object] | None = None) -> bytes:
        """The body behind `url` of this server; with `body` the request is a POST."""
        headers = {"Authorization": f"Bearer {self.secret}"} if self.secret else {}
        async with self.http.stream("GET" if body is None else "POST", url, headers=headers, json=body) as response:
            return b"".join([chunk async for chunk in _bounded(response.aiter_bytes())])


class Connections:
    """Opens connections when they are first needed and keeps them for their event loop's life.

    A client belongs to the loop it was made on. The connections of a loop close with `aclose`, or with the loop itself
    where it is shut down as `asyncio.run` does.
    """

    def __init__(self, keys: Mapping[str, str]) -> None:
        self._keys = keys
        self._by_loop: dict[asyncio.AbstractEventLoop, tuple[dict[Server, Connection], AsyncGenerator[None]]] = {}

    async def connection_to(self, endpoint: AnyEndpoint) -> Connection:
        """The running loop's connection to the endpoint's server; raises ModelRejectedError where its key is missing."""
        opened = await self._loop_connections()
        server = endpoint.server
        if server not in opened:
            opened[server] = _connection(server, _secret(endpoint, self._keys))
        return opened[server]

    async def fetch(self, endpoint: AnyEndpoint, url: str, body: Mapping[str, object] | None = None) -> bytes:
        """The body behind `url` of the endpoint's server; raises every fault of the connection as its ModelError."""
        connection = await self.connection_to(endpoint)
        try:
            return await connection.fetch(url, body)
        except Exception as fault:
            found = None if isinstance(fault, ModelError | TimeoutError) else model_error(fault, endpoint, secret=connection.secret)
            if found is None:
                raise
            raise found from None  # the chain below may quote headers

    async def _loop_connections(self) -> dict[Server, Connection]:
        loop = asyncio.get_running_loop()
        if loop not in self._by_loop:
            for gone in [known for known in self._by_loop if known.is_closed()]:
                del self._by_loop[gone]
            opened: dict[Server, Connection] = {}
            closing = _closing_connections(opened)
            self._by_loop[loop] = (opened, closing)
            await anext(closing)
        return self._by_loop[loop][0]

    async def aclose(self) -> None:
        """Closes the running loop's connections."""
        held = self._by_loop.pop(asyncio.get_running_loop(), None)
        if held is not None:
            await held[1].aclose()


async def _closing_connections(opened: Mapping[Server, Connection]) -> AsyncGenerator[None]:
    """Closes what is open when it is closed itself; a loop closes its generators on its way out."""
    try:
        yield
    finally:
        for connection in opened.values():
            await connection.http.aclose()


def _connection(server: Server, secret: str) -> Connection:
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Timeout

    http = DefaultAsyncHttpxClient(
        # a proxy of the environment is not meant for this machine's own servers
        trust_env=not on_this_machine(server.base_url),
        timeout=Timeout(None, connect=_CONNECT_S),  # the rest has one deadline, the caller's
        follow_redirects=False,
        event_hooks={"response": [_raise_for_refusal]},
    )
    client = AsyncOpenAI(
        base_url=server.base_url,
        api_key=secret or "EMPTY",
        max_retries=0,
        timeout=Timeout(None, connect=_CONNECT_S),
        http_client=http,
    )
    return Connection(client, http, secret)


async def _raise_for_refusal(response: _Response) -> None:
    """Raise for a failed response before the client reads its body, however long that is."""
    if response.is_success:
        return
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > _MAX_REFUSAL_BYTES:
            break
    raise EndpointRefusedError(response.status_code, bytes(body), retry_after=response.headers.get("retry-after", ""))


async def _bounded(chunks: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > MAX_ANSWER_BYTES:
            raise BodyTooLargeError(MAX_ANSWER_BYTES)
        yield chunk


def _secret(endpoint: AnyEndpoint, keys: Mapping[str, str]) -> str:
    name = endpoint.server.api_key_env
    if name is None:
        return ""
    secret = keys.get(name, "").strip()
    if not secret or not secret.isascii() or not secret.isprintable():
        state = "has characters that no key has" if secret else "is not set"
        raise ModelRejectedError(f"{endpoint}: {name} {state}: expected the server's key", hint=f"Set {name}.")
    return secret
