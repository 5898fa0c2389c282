"""The routes: requests in, OpenAI's answers out. Knows HTTP; what a turn does is not here."""

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
from pandora_dagster.api.chat_request import MODELS, SESSION_HEADER, ChatRequest, parse_chat_request
from pandora_dagster.api.chat_response import (
    DONE,
    ChatAnswer,
    ChatStream,
    completion,
    source_list,
    sse_comment,
    sse_event,
    withdrawal_notice,
)
from pandora_dagster.api.guard import Guard
from pandora_dagster.api.turn_worker import AnswerText, DraftWithdrawal, Event, PhaseEnd, TurnStart, TurnWorker
from pandora_dagster.contracts.ids import UserId

LARGEST_BODY = 8 * 1024 * 1024
"""Bytes of a request, its earlier messages among them."""
KEEP_ALIVE_S = 10.0
"""A stream is never silent for longer."""
Handler = Callable[[Request], Awaitable[Response]]


def make_app(turns: TurnWorker, guard: Guard, *, user: UserId, runtime: str, model_date: int) -> Starlette:
    """The application. `user`: whose turns they are where no header says so; `model_date`: seconds since 1970."""

    async def completions(request: Request) -> Response:
        asked = parse_chat_request(await _body(request), request.headers, user=user)
        following = _EventQueue()
        turns.begin(asked, following.put)
        began = await following.next()
        if not isinstance(began, TurnStart):
            raise _error_of(began)
        headers = {"X-Pandora-Turn": str(began.key), SESSION_HEADER: asked.session}
        created = int(time.time())
        if asked.stream:
            stream = ChatStream(began.key, asked.model, created)
            parts = _event_stream(following, stream, asked)
            more = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
            return StreamingResponse(parts, media_type="text/event-stream", headers={**headers, **more})
        told = await following.last()
        if not isinstance(told, ChatAnswer):
            raise _error_of(told)
        return JSONResponse(completion(told, model=asked.model, created=created), headers=headers)

    async def models(request: Request) -> Response:
        listed = [{"id": name, "object": "model", "created": model_date, "owned_by": "pandora"} for name in MODELS]
        return JSONResponse({"object": "list", "data": listed})

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok", "runtime": runtime, "turns_under_way": turns.active_turns})

    def guarded(handler: Handler) -> Handler:
        async def admitted(request: Request) -> Response:
            guard.admit(request.headers, has_body=request.method == "POST")
            return await handler(request)

        return admitted

    return Starlette(
        routes=[
            Route("/v1/chat/completions", guarded(completions), methods=["POST"]),
            Route("/v1/models", guarded(models)),
            Route("/health", health),
        ],
        exception_handlers={ApiError: _error_response, HTTPException: _http_error_response},
    )


class _EventQueue:
    """What is told of one turn, for the loop that waits for it; told from the turns' thread."""

    def __init__(self) -> None:
        self._loop, self._events = asyncio.get_running_loop(), asyncio.Queue[Event]()

    def put(self, event: Event) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)

    async def next(self) -> Event:
        return await self._events.get()

    async def last(self) -> Event:
        while not isinstance(told := await self.next(), ChatAnswer | TurnHalt | TurnFailure):
            pass
        return told


async def _event_stream(following: _EventQueue, stream: ChatStream, asked: ChatRequest) -> AsyncGenerator[str]:
    """The events of one answer. A client that goes away ends this, not the turn."""
    shown: list[str] = []
    yield stream.start_chunk()
    while True:
        try:
            async with asyncio.timeout(KEEP_ALIVE_S):
                told = await following.next()
        except TimeoutError:
            yield sse_comment("under way")
            continue
        match told:
            case PhaseEnd(phase):
                yield sse_comment(f"{phase} finished")
            case AnswerText(text):
                shown.append(text)
                yield stream.text_chunk(text)
            case DraftWithdrawal(reason) if shown:
                shown.clear()
                yield stream.text_chunk(withdrawal_notice(reason))
            case ChatAnswer(answer):
                rest = source_list(answer)
                if "".join(shown).strip() != answer.response.strip():
                    rest = (withdrawal_notice("the stored answer reads otherwise") if shown else "") + answer.response + rest
                if rest:
                    yield stream.text_chunk(rest)
                yield stream.end_chunk(told)
                if asked.include_usage:
                    yield stream.usage_chunk(told)
                yield DONE
                return
            case TurnHalt() | TurnFailure():
                yield sse_event(told.api_error().body)
                return
            case _:
                pass


async def _body(request: Request) -> bytes:
    """The request's body, within its limit."""
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > LARGEST_BODY:
                raise ApiError(413, f"body: over {LARGEST_BODY} bytes: expected at most that", headers={"Connection": "close"})
    except ClientDisconnect:
        raise ApiError(400, "body: broken off") from None
    return bytes(body)


def _error_of(told: Event) -> ApiError:
    assert isinstance(told, TurnHalt | TurnFailure)  # noqa: S101 - what is told first is Began or Failed, what is told last Told or one of these
    return told.api_error()


async def _error_response(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)  # noqa: S101 - as registered
    return JSONResponse(error.body, error.status, headers=error.headers)


async def _http_error_response(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - as registered
    body: dict[str, Any] = ApiError(error.status_code, f"{request.method} {request.url.path}: {error.detail}", code="unknown_url").body
    return JSONResponse(body, error.status_code, headers=dict(error.headers or {}))
