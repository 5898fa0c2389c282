"""One request and its answer, whole or word by word, within a deadline; every fault of the way as its ModelError. Knows no places."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

from pandora_dagster.errors import EndpointFullError, ModelError, RuntimeUnreachableError
from pandora_dagster.runtime.sglang.answers import Reply, parse_reply
from pandora_dagster.runtime.sglang.connections import Connection
from pandora_dagster.runtime.sglang.endpoints import Endpoint
from pandora_dagster.runtime.sglang.events import ReplyStream, parse_events
from pandora_dagster.runtime.sglang.failures import model_error, timeout_error
from pandora_dagster.runtime.sglang.requests import Request

OnWords = Callable[[str], None]


async def exchange(connection: Connection, request: Request, endpoint: Endpoint, timeout_s: float, on_words: OnWords | None) -> Reply:
    """The answer; raises ModelError, and a fault of the listener as its own. EndpointFullError only while no word was told."""
    deadline, listening = asyncio.timeout(timeout_s), ReplyStream(endpoint)
    try:
        async with deadline:
            if on_words is None:
                return parse_reply(await connection.send(request), endpoint)
            return await _read_stream(connection, request, listening, on_words)
    except ModelError:
        raise
    except _ListenerError as fault:
        raise fault.own from None
    except Exception as fault:
        if deadline.expired():
            raise timeout_error(endpoint, timeout_s) from None
        found = model_error(fault, endpoint, secret=connection.secret)
        if found is None:
            raise
        if isinstance(found, EndpointFullError) and listening.has_words:
            found = RuntimeUnreachableError(str(found), hint=found.hint)
        raise found from None  # the chain below may quote headers


async def _read_stream(connection: Connection, request: Request, listening: ReplyStream, on_words: OnWords) -> Reply:
    async with aclosing(connection.streamed(request)) as chunks:
        async for data in parse_events(chunks):
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
