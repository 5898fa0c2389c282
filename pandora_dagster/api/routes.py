"""The routes of the chat API: chat completions, models, health."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from pandora_dagster.api.api_errors import ApiError, TurnFailure, TurnHalt
from pandora_dagster.api.chat_format import (
    DONE,
    MODELS,
    SESSION_HEADER,
    ChatAnswer,
    ChatRequest,
    ChatStream,
    completion,
    parse_chat_request,
    source_list,
    sse_comment,
    sse_event,
    withdrawal_notice,
)
from pandora_dagster.api.guard import Guard
from pandora_dagster.api.turn_worker import AnswerText, DraftWithdrawal, Event, PhaseEnd, TurnStart, TurnWorker
from pandora_dagster.contracts.ids import UserId

MAX_BODY_BYTES = 8 * 1024 * 1024
"""Bytes of a request body, including the messages of earlier turns."""
KEEP_ALIVE_S = 10.0
"""Seconds without an event after which a stream sends a comment, so that proxies keep the connection open."""
Handler = Callable[[Request], Awaitable[Response]]


def make_app(turns: TurnWorker, guard: Guard, *, user: UserId, runtime: str, model_date: int) -> Starlette:
    """The application of the chat API. `user`: the user where no header names one; `model_date`: seconds since 1970."""

    async def completions(request: Request) -> Response:
        chat = parse_chat_request(await _read_body(request), request.headers, user=user)
        events = _EventQueue()
        turns.begin(chat, events.put)
        first_event = await events.next()
        if not isinstance(first_event, TurnStart):
            raise _to_api_error(first_event)
        headers = {"X-Pandora-Turn": str(first_event.key), SESSION_HEADER: chat.session}
        created = int(time.time())
        if chat.stream:
            stream = ChatStream(first_event.key, chat.model, created)
            chunks = _event_stream(events, stream, chat)
            stream_headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
            return StreamingResponse(chunks, media_type="text/event-stream", headers={**headers, **stream_headers})
        last_event = await events.last()
        if not isinstance(last_event, ChatAnswer):
            raise _to_api_error(last_event)
        return JSONResponse(completion(last_event, model=chat.model, created=created), headers=headers)

    async def models(request: Request) -> Response:
        entries = [{"id": name, "object": "model", "created": model_date, "owned_by": "pandora"} for name in MODELS]
        return JSONResponse({"object": "list", "data": entries})

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok", "runtime": runtime, "turns_under_way": turns.active_turns})

    def guard_handler(handler: Handler) -> Handler:
        async def respond(request: Request) -> Response:
            guard.admit(request.headers, has_body=request.method == "POST")
            return await handler(request)

        return respond

    return Starlette(
        routes=[
            Route("/v1/chat/completions", guard_handler(completions), methods=["POST"]),
            Route("/v1/models", guard_handler(models)),
            Route("/health", health),
        ],
        exception_handlers={ApiError: _error_response, HTTPException: _http_error_response},
    )


class _EventQueue:
    """The events of one turn: put from the thread of the turns, read in the event loop of the server."""

    def __init__(self) -> None:
        self._loop, self._events = asyncio.get_running_loop(), asyncio.Queue[Event]()

    def put(self, event: Event) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)

    async def next(self) -> Event:
        return await self._events.get()

    async def last(self) -> Event:
        """Skip to the event that ends the turn."""
        while not isinstance(event := await self.next(), ChatAnswer | TurnHalt | TurnFailure):
            pass
        return event


async def _event_stream(events: _EventQueue, stream: ChatStream, chat: ChatRequest) -> AsyncGenerator[str]:
    """The server-sent events of one answer. A client that disconnects ends the stream, not the turn."""
    sent_texts: list[str] = []
    yield stream.start_chunk()
    while True:
        try:
            async with asyncio.timeout(KEEP_ALIVE_S):
                event = await events.next()
        except TimeoutError:
            yield sse_comment("under way")
            continue
        match event:
            case PhaseEnd(phase):
                yield sse_comment(f"{phase} finished")
            case AnswerText(text):
                sent_texts.append(text)
                yield stream.text_chunk(text)
            case DraftWithdrawal(reason) if sent_texts:
                sent_texts.clear()
                yield stream.text_chunk(withdrawal_notice(reason))
            case ChatAnswer(answer):
                ending = source_list(answer)
                if "".join(sent_texts).strip() != answer.response.strip():
                    notice = withdrawal_notice("the stored answer is different") if sent_texts else ""
                    ending = notice + answer.response + ending
                if ending:
                    yield stream.text_chunk(ending)
                yield stream.end_chunk(event)
                if chat.include_usage:
                    yield stream.usage_chunk(event)
                yield DONE
                return
            case TurnHalt() | TurnFailure():
                yield sse_event(event.api_error().body)
                return
            case _:
                pass


async def _read_body(request: Request) -> bytes:
    """The body of a request; raises ApiError over the limit."""
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                raise ApiError(413, f"body: over {MAX_BODY_BYTES} bytes: expected at most that", headers={"Connection": "close"})
    except ClientDisconnect:
        raise ApiError(400, "body: incomplete: expected the whole body") from None
    return bytes(body)


def _to_api_error(event: Event) -> ApiError:
    assert isinstance(event, TurnHalt | TurnFailure)  # noqa: S101 - the first event is TurnStart or TurnFailure, the last ChatAnswer or one of these
    return event.api_error()


async def _error_response(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)  # noqa: S101 - registered for this class of error
    return JSONResponse(error.body, error.status, headers=error.headers)


async def _http_error_response(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class of error
    body: dict[str, Any] = ApiError(error.status_code, f"{request.method} {request.url.path}: {error.detail}", code="unknown_url").body
    return JSONResponse(body, error.status_code, headers=dict(error.headers or {}))
