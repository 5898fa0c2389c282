"""The format of OpenAI's chat completions: requests, complete answers, and answers as server-sent events."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from pandora_dagster.api.answer_delivery import DeliveredText
from pandora_dagster.api.api_errors import ApiError
from pandora_dagster.api.request_fields import (
    CHAT_REFUSED,
    RequestBody,
    Stop,
    TokenLimit,
    check_model,
    message_query,
    param_error,
    parse_body,
    request_session,
    request_user,
)
from pandora_dagster.api.turn_request import MODELS, AnswerLimits, ChatAnswer, TurnRequest, pandora_fields, token_usage
from pandora_dagster.contracts.ids import TurnKey, UserId

REFUSED: Mapping[str, str] = {
    **CHAT_REFUSED,
    "functions": "the functions of a client are not called: expected none; recipes name the tools that a turn may call",
    "logprobs": "an answer has no probabilities of tokens: expected false",
    "audio": "an answer is text: expected no audio",
    "web_search_options": "the search of the client's web is not offered: expected none; recipes name the tools that a turn may call",
}
"""Field -> why it is refused: it would change what the client gets."""


class _StreamOptions(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)
    include_usage: bool = False


class _ChatBody(RequestBody):
    messages: list[dict[str, Any]] = Field(min_length=1)
    stream_options: _StreamOptions | None = None
    n: int | None = 1
    response_format: dict[str, Any] | None = None
    modalities: list[str] | None = None
    stop: Stop = ()
    max_tokens: TokenLimit = None
    max_completion_tokens: TokenLimit = None


def parse_chat_request(body: bytes, headers: Mapping[str, str], *, user: UserId) -> TurnRequest:
    """Parse a body and its headers; `user` is the user where the request names none. Raises ApiError."""
    request = parse_body(body, _ChatBody, REFUSED)
    check_model(request.model)
    if (request.n or 1) != 1:
        raise param_error("n", f"{request.n}: a turn has one answer: expected 1", code="unsupported_value")
    if request.response_format and request.response_format.get("type", "text") != "text":
        raise param_error("response_format", "an answer is text: expected the type text", code="unsupported_value")
    if request.modalities not in (None, ["text"]):
        raise param_error("modalities", "an answer is text: expected ['text']", code="unsupported_value")
    *earlier, last = request.messages
    options = request.stream_options or _StreamOptions()
    limits = [limit for limit in (request.max_tokens, request.max_completion_tokens) if limit is not None]
    return TurnRequest(
        query=message_query(last, ("text",), "messages"),
        user=request_user(headers, request.user, user),
        session=request_session(headers),
        mode=MODELS[request.model],
        model=request.model,
        earlier=tuple(earlier),
        stream=bool(request.stream),
        include_usage=options.include_usage,
        limits=AnswerLimits(request.stop, min(limits, default=None)),
        metadata=request.metadata,
        ignored=request.ignored(REFUSED),
    )


def completion(chat_answer: ChatAnswer, delivered: DeliveredText, request: TurnRequest, *, created: int) -> dict[str, Any]:
    """The body of a complete answer; `created` in seconds since 1970."""
    message = {"role": "assistant", "content": delivered.text, "refusal": None}
    return {
        "id": _completion_id(chat_answer.answer.key),
        "object": "chat.completion",
        "created": created,
        "model": request.model,
        "choices": [{"index": 0, "message": message, "finish_reason": delivered.finish, "logprobs": None}],
        "usage": _usage(chat_answer),
        "metadata": dict(request.metadata),
        "pandora": pandora_fields(chat_answer, request),
    }


@dataclass(frozen=True, slots=True)
class ChatEvents:
    """The events of one streamed answer; `created` in seconds since 1970."""

    key: TurnKey
    request: TurnRequest
    created: int

    def start(self) -> list[str]:
        return [self._chunk({"role": "assistant", "content": ""})]

    def text(self, text: str) -> list[str]:
        return [self._chunk({"content": text})]

    def end(self, chat_answer: ChatAnswer, delivered: DeliveredText) -> list[str]:
        fields = {"metadata": dict(self.request.metadata), "pandora": pandora_fields(chat_answer, self.request)}
        events = [self._chunk({}, finish_reason=delivered.finish, **fields)]
        if self.request.include_usage:
            events.append(sse_event({**self._common_fields(), "choices": [], "usage": _usage(chat_answer)}))
        return [*events, "data: [DONE]\n\n"]

    def error(self, error: ApiError) -> list[str]:
        return [sse_event(error.body)]

    def _chunk(self, delta: Mapping[str, str], *, finish_reason: str | None = None, **fields: object) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
        return sse_event({**self._common_fields(), "choices": [choice], **fields})

    def _common_fields(self) -> dict[str, Any]:
        return {"id": _completion_id(self.key), "object": "chat.completion.chunk", "created": self.created, "model": self.request.model}


def sse_event(value: Mapping[str, Any], *, name: str = "") -> str:
    """A server-sent event with JSON data."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(value, ensure_ascii=False)}\n\n"


def _usage(chat_answer: ChatAnswer) -> dict[str, Any]:
    spent = token_usage(chat_answer.calls)
    return {
        "prompt_tokens": spent.prompt,
        "completion_tokens": spent.output,
        "total_tokens": spent.prompt + spent.output,
        "prompt_tokens_details": {"cached_tokens": spent.cached},
    }


def _completion_id(key: TurnKey) -> str:
    return f"chatcmpl-{key}"
