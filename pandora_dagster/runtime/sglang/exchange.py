"""Sends one request and reads its answer, whole or streamed, within a deadline; each failure becomes a ModelError."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import aclosing

from pydantic import ValidationError

from pandora_dagster.errors import EndpointFullError, ModelError, RuntimeUnreachableError
from pandora_dagster.runtime.sglang.completion_replies import Choice, Reply, ThoughtFilter, WireModel, complete_reply, parse_reply
from pandora_dagster.runtime.sglang.completion_requests import Request
from pandora_dagster.runtime.sglang.connections import Connection
from pandora_dagster.runtime.sglang.endpoints import Endpoint
from pandora_dagster.runtime.sglang.model_errors import EndpointRefusedError, model_error, timeout_error

# A streamed answer: server-sent events such as `data: {"choices": [{"delta": {"content": "Hel"}}]}`, the last one `data: [DONE]`.

_DATA, _END = b"data:", b"[DONE]"


class _Error(WireModel):
    code: int | str | None = None

    @property
    def status(self) -> int:
        """The HTTP status of the refusal; 500 where the server names none."""
        return self.code if isinstance(self.code, int) else 500


class _Event(WireModel):
    choices: tuple[Choice, ...] = ()
    usage: object = None
    error: _Error | None = None


async def parse_events(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """The data of each event, wherever the chunks end; comments and other fields are skipped."""
    partial_line = b""
    async for chunk in chunks:
        *lines, partial_line = (partial_line + chunk).split(b"\n")
        for line in lines:
            if line.startswith(_DATA):
                yield line.removeprefix(_DATA).strip()


class ReplyStream:
    """Collects the events of one streamed answer."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._pieces: list[str] = []
        self._finish_reason: str | None = None
        self._has_thoughts = False
        self._thoughts = ThoughtFilter()
        self._usage: object = None
        self._ended = False

    @property
    def has_text(self) -> bool:
        """Whether the listener has received a piece of the answer."""
        return any(self._pieces)

    def take(self, data: bytes) -> str:
        """Add one event and return its piece of the answer, "" where it has none.

        Raises EndpointRefusedError for a refusal after the stream began (its HTTP status is 200), RuntimeUnreachableError for data that is
        no event of an answer.
        """
        if data == _END:
            self._ended = True
            return ""
        event = self._event(data)
        if event.error is not None:
            raise EndpointRefusedError(event.error.status, data)
        self._usage = event.usage if event.usage is not None else self._usage
        if not event.choices:
            return ""
        choice = event.choices[0]
        self._finish_reason = choice.finish_reason or self._finish_reason
        self._has_thoughts = self._has_thoughts or choice.has_thoughts
        piece = self._thoughts.take(choice.content)
        self._pieces.append(piece)
        return piece

    def reply(self) -> Reply:
        """The whole answer; raises as `parse_reply` does, and RuntimeUnreachableError where the stream broke off."""
        if not self._ended and self._finish_reason is None:
            raise RuntimeUnreachableError(
                f"{self._endpoint}: the stream ended after {sum(map(len, self._pieces))} characters: expected the end of the answer",
                hint="Look into the server's log; it may have stopped.",
            )
        has_thoughts = self._has_thoughts or self._thoughts.has_thoughts
        return complete_reply(
            "".join(self._pieces), self._finish_reason, has_thoughts=has_thoughts, usage=self._usage, endpoint=self._endpoint
        )

    def _event(self, data: bytes) -> _Event:
        try:
            return _Event.model_validate_json(data)
        except ValidationError:
            raise RuntimeUnreachableError(
                f"{self._endpoint}: an event of {len(data)} bytes that is no part of an answer: expected OpenAI's format",
                hint="Check that base_url in runtime.yaml names a model server.",
            ) from None


OnWords = Callable[[str], None]
"""The listener: receives each piece of an answer as it arrives."""


async def exchange(connection: Connection, request: Request, endpoint: Endpoint, timeout_s: float, on_words: OnWords | None) -> Reply:
    """The answer to a request; pieces go to `on_words` as they arrive.

    Raises ModelError, EndpointFullError only before the first piece; an error of the listener is raised unchanged.
    """
    deadline, stream = asyncio.timeout(timeout_s), ReplyStream(endpoint)
    try:
        async with deadline:
            if on_words is None:
                return parse_reply(await connection.send(request), endpoint)
            return await _read_stream(connection, request, stream, on_words)
    except ModelError:
        raise
    except _ListenerError as fault:
        raise fault.error from None
    except Exception as fault:
        if deadline.expired():
            raise timeout_error(endpoint, timeout_s) from None
        error = model_error(fault, endpoint, secret=connection.secret)
        if error is None:
            raise
        if isinstance(error, EndpointFullError) and stream.has_text:
            error = RuntimeUnreachableError(str(error), hint=error.hint)
        raise error from None  # the chain below may quote headers


async def _read_stream(connection: Connection, request: Request, stream: ReplyStream, on_words: OnWords) -> Reply:
    async with aclosing(connection.stream(request)) as chunks:
        async for data in parse_events(chunks):
            if piece := stream.take(data):
                try:
                    on_words(piece)
                except Exception as error:
                    raise _ListenerError(error) from error
    return stream.reply()


class _ListenerError(Exception):
    """Wraps an error of the listener, so that it is not taken for a fault of the server: a closed terminal is no broken connection."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error
