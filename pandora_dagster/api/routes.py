"""The routes of the chat API: chat completions, responses, embeddings, models, health."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from pandora_dagster.api.answer_delivery import AnswerDelivery, DeliveredText
from pandora_dagster.api.answer_stream import KEEP_ALIVE_S, AnswerEvents, EventQueue, answer_stream
from pandora_dagster.api.api_errors import ApiError, TurnFailure, TurnHalt
from pandora_dagster.api.chat_format import ChatEvents, completion, parse_chat_request
from pandora_dagster.api.embeddings_format import embeddings_body, parse_embedding_request
from pandora_dagster.api.guard import Guard
from pandora_dagster.api.request_fields import unknown_model
from pandora_dagster.api.responses_format import ResponseEvents, parse_responses_request, response_body
from pandora_dagster.api.turn_request import MODELS, SESSION_HEADER, TURN_HEADER, ChatAnswer, TurnRequest
from pandora_dagster.api.turn_worker import Event, TurnStart, TurnWorker
from pandora_dagster.app import App
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.errors import ModelError, ModelTimeoutError

MAX_BODY_BYTES = 8 * 1024 * 1024
"""Bytes of a request body, including the messages of earlier turns."""
EMBEDDING_TIMEOUT_S = 60.0
"""Seconds for all vectors of a request."""
Handler = Callable[[Request], Awaitable[Response]]
MakeEvents = Callable[[TurnKey, TurnRequest, int], AnswerEvents]
MakeBody = Callable[..., dict[str, Any]]


def make_app(app: App, turns: TurnWorker, guard: Guard, *, model_date: int) -> Starlette:
    """The application of the chat API; `model_date`: seconds since 1970."""

    async def completions(request: Request) -> Response:
        chat = parse_chat_request(await _read_body(request), request.headers, user=app.settings.user)
        return await _respond(app, turns, chat, completion, ChatEvents)

    async def responses(request: Request) -> Response:
        asked = parse_responses_request(await _read_body(request), request.headers, user=app.settings.user)
        return await _respond(app, turns, asked, response_body, ResponseEvents)

    async def embeddings(request: Request) -> Response:
        return JSONResponse(await _make_embeddings(app, await _read_body(request)))

    names = [*MODELS, *([app.embedder.name] if app.embedder else [])]
    entries = {name: {"id": name, "object": "model", "created": model_date, "owned_by": "pandora"} for name in names}

    async def models(request: Request) -> Response:
        return JSONResponse({"object": "list", "data": list(entries.values())})

    async def model(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in entries:
            raise unknown_model(name, *names)
        return JSONResponse(entries[name])

    async def health(request: Request) -> Response:
        guard.check_host(request.headers)
        return JSONResponse({"status": "ok"})

    def guard_handler(handler: Handler) -> Handler:
        async def respond(request: Request) -> Response:
            guard.admit(request.headers, has_body=request.method == "POST")
            return await handler(request)

        return respond

    return Starlette(
        routes=[
            Route("/v1/chat/completions", guard_handler(completions), methods=["POST"]),
            Route("/v1/responses", guard_handler(responses), methods=["POST"]),
            Route("/v1/embeddings", guard_handler(embeddings), methods=["POST"]),
            Route("/v1/models", guard_handler(models)),
            Route("/v1/models/{name:path}", guard_handler(model)),
            Route("/health", health),
        ],
        exception_handlers={ApiError: _error_response, HTTPException: _http_error_response},
    )


async def _respond(app: App, turns: TurnWorker, request: TurnRequest, make_body: MakeBody, make_events: MakeEvents) -> Response:
    """Run a turn and answer in the format of `make_body` or, for a stream, of `make_events`.

    A stream waits KEEP_ALIVE_S for its turn, so that it can answer with a status where that fails; then it begins without one.
    """
    events = EventQueue()
    delivery = AnswerDelivery(request.limits, app.dependencies.counter.count)
    turns.begin(request, events.put)
    first = await events.next_within(KEEP_ALIVE_S) if request.stream else await events.next()
    if first is not None and not isinstance(first, TurnStart):
        raise _to_api_error(first)
    headers = _turn_headers(first)
    created = int(time.time())

    async def on_delivered(start: TurnStart, delivered: str) -> None:
        await turns.offer_session(request, start, delivered)

    if request.stream or first is None:
        stream = answer_stream(events, first, delivery, lambda start: make_events(start.key, request, created), on_delivered)
        stream_headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        return StreamingResponse(stream, media_type="text/event-stream", headers={**headers, **stream_headers})
    last = await events.last()
    if not isinstance(last, ChatAnswer):
        raise _to_api_error(last)
    delivered: DeliveredText = delivery.whole(last.answer)
    await on_delivered(first, delivered.text)
    return JSONResponse(make_body(last, delivered, request, created=created), headers=headers)


def _turn_headers(start: TurnStart | None) -> Mapping[str, str]:
    return {TURN_HEADER: str(start.key), SESSION_HEADER: start.session} if start else {}


async def _make_embeddings(app: App, body: bytes) -> dict[str, Any]:
    """The vectors of a request's texts; raises ApiError."""
    embedder = app.embedder
    if embedder is None:
        message = "this server makes no vectors: PANDORA_EMBEDDINGS is off: expected local or runtime"
        raise ApiError(501, message, type="server_error", code="embeddings_off")
    asked = parse_embedding_request(body, model=embedder.name)
    try:
        vectors = await asyncio.to_thread(embedder.embed, asked.texts, timeout_s=EMBEDDING_TIMEOUT_S)
    except ModelTimeoutError as error:
        raise ApiError(504, error.with_hint, type="server_error", code="timeout") from None
    except ModelError as error:
        raise ApiError(503, error.with_hint, type="server_error", code="model_unavailable") from None
    tokens = sum(map(app.dependencies.counter.count, asked.texts))
    return embeddings_body(asked, vectors, model=embedder.name, tokens=tokens)


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
