"""One request and its answer, whole or streamed, within a deadline; each failure as a ModelError. Knows nothing of admission."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import aclosing

from pydantic import ValidationError

from pandora_dagster.errors import EndpointFullError, ModelError, RuntimeUnreachableError
from pandora_dagster.runtime.sglang.completion_replies import Choice, Reply, WireModel, complete_reply, parse_reply
from pandora_dagster.runtime.sglang.completion_requests import Request
from pandora_dagster.runtime.sglang.connections import Connection
from pandora_dagster.runtime.sglang.endpoints import Endpoint
from pandora_dagster.runtime.sglang.model_errors import EndpointRefusedError, model_error, timeout_error

# A streamed answer, event by event -> its words as they come, and the whole `Reply`. Knows SGLang's events; knows no socket.

_END = b"[DONE]"


class _Error(WireModel):
    code: int = 500


class _Event(WireModel):
    choices: tuple[Choice, ...] = ()
    usage: object = None
    error: _Error | None = None


async def parse_events(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """The data of each event, wherever the chunks end; comments and other fields are passed over."""
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield line[5:].strip()


class ReplyStream:
    """One answer in the making."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._words: list[str] = []
        self._reason: str | None = None
        self._thought = False
        self._usage: object = None
        self._ended = False

    @property
    def has_words(self) -> bool:
        """Whether the listener has received a word."""
        return any(self._words)

    def take(self, data: bytes) -> str:
        """The words of one event, "" where it has none.

        Raises EndpointRefusedError for a refusal that came after the stream had begun (its status is 200 all the same), and
        RuntimeUnreachableError for what is no event of an answer.
        """
        if data == _END:
            self._ended = True
            return ""
        event = self._event(data)
        if event.error is not None:
            raise EndpointRefusedError(event.error.code, data)
        self._usage = event.usage if event.usage is not None else self._usage
        if not event.choices:
            return ""
        choice = event.choices[0]
        self._reason = choice.finish_reason or self._reason
        self._thought = self._thought or choice.is_thought
        self._words.append(choice.words)
        return choice.words

    def reply(self) -> Reply:
        """The whole answer; raises as `answers.reply_in` does, and RuntimeUnreachableError where the stream broke off."""
        if not self._ended and self._reason is None:
            raise RuntimeUnreachableError(
                f"{self._endpoint}: the stream ended after {sum(map(len, self._words))} characters: expected the answer's end",
                hint="Look into the server's log; it may have stopped.",
            )
        return complete_reply("".join(self._words), self._reason, thought=self._thought, usage=self._usage, endpoint=self._endpoint)

    def _event(self, data: bytes) -> _Event:
        try:
            return _Event.model_validate_json(data)
        except ValidationError:
            raise RuntimeUnreachableError(
                f"{self._endpoint}: an event of {len(data)} bytes that is no part of an answer: expected OpenAI's form",
                hint="Check that base_url in runtime.yaml names an SGLang server.",
            ) from None


OnWords = Callable[[str], None]


async def exchange(connection: Connection, request: Request, endpoint: Endpoint, timeout_s: float, on_words: OnWords | None) -> Reply:
    """The answer; raises ModelError, and a fault of the listener as its own. EndpointFullError only before the first word."""
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
