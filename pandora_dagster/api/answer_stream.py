"""A streamed answer as server-sent events: comments while nothing is there, the text as it is written, its end or its error."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Protocol

from pandora_dagster.api.answer_delivery import AnswerDelivery, DeliveredText
from pandora_dagster.api.api_errors import ApiError, TurnFailure, TurnHalt
from pandora_dagster.api.chat_format import sse_event
from pandora_dagster.api.turn_request import ChatAnswer
from pandora_dagster.api.turn_worker import AnswerText, DraftWithdrawal, Event, PhaseEnd, TurnStart

KEEP_ALIVE_S = 10.0
"""Seconds without an event after which a stream sends a comment, so that proxies keep the connection open."""


class AnswerEvents(Protocol):
    """The events of one answer in the format of an API."""

    def start(self) -> list[str]: ...
    def text(self, text: str) -> list[str]: ...
    def end(self, chat_answer: ChatAnswer, delivered: DeliveredText) -> list[str]: ...
    def error(self, error: ApiError) -> list[str]: ...


class EventQueue:
    """The events of one turn: put from the thread of the turns, read in the event loop of the server."""

    def __init__(self) -> None:
        self._loop, self._events = asyncio.get_running_loop(), asyncio.Queue[Event]()

    def put(self, event: Event) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)

    async def next(self) -> Event:
        return await self._events.get()

    async def next_within(self, seconds: float) -> Event | None:
        """The next event; None where there is none within that time."""
        try:
            async with asyncio.timeout(seconds):
                return await self._events.get()
        except TimeoutError:
            return None

    async def last(self) -> Event:
        """Skip to the event that ends the turn."""
        while not isinstance(event := await self.next(), ChatAnswer | TurnHalt | TurnFailure):
            pass
        return event


async def answer_stream(
    events: EventQueue,
    first: Event | None,
    delivery: AnswerDelivery,
    make_events: Callable[[TurnStart], AnswerEvents],
    on_delivered: Callable[[TurnStart, str], Awaitable[None]],
) -> AsyncGenerator[str]:
    """The server-sent events of one answer; `first`: the first event where it is there already.

    A client that disconnects ends the stream, not the turn. `on_delivered` runs before the end of the stream is sent.
    """
    while not isinstance(first, TurnStart):
        if isinstance(first, TurnFailure):
            yield sse_event(first.api_error().body)
            return
        yield _comment("queued")
        first = await events.next_within(KEEP_ALIVE_S)
    stream = make_events(first)
    for piece in stream.start():
        yield piece
    while not isinstance(event := await events.next_within(KEEP_ALIVE_S), ChatAnswer | TurnHalt | TurnFailure):
        text = ""
        match event:
            case None:
                yield _comment("under way")
            case PhaseEnd(phase):
                yield _comment(f"{phase} finished")
            case AnswerText(words):
                text = delivery.add(words)
            case DraftWithdrawal(reason):
                text = delivery.withdraw(reason)
            case TurnStart():
                pass
        for piece in stream.text(text) if text else ():
            yield piece
    for piece in await _ending(event, stream, delivery, lambda delivered: on_delivered(first, delivered)):
        yield piece


async def _ending(
    event: ChatAnswer | TurnHalt | TurnFailure,
    stream: AnswerEvents,
    delivery: AnswerDelivery,
    on_delivered: Callable[[str], Awaitable[None]],
) -> list[str]:
    if not isinstance(event, ChatAnswer):
        return stream.error(event.api_error())
    text, delivered = delivery.finish(event.answer)
    await on_delivered(delivered.text)
    return [*(stream.text(text) if text else ()), *stream.end(event, delivered)]


def _comment(text: str) -> str:
    """A server-sent comment: it keeps the connection alive, and clients ignore it."""
    return f": {text}\n\n"
