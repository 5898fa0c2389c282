"""The format of OpenAI's Responses API: requests, complete responses, and responses as named server-sent events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict

from pandora_dagster.api.answer_delivery import DeliveredText
from pandora_dagster.api.api_errors import ApiError
from pandora_dagster.api.chat_format import sse_event
from pandora_dagster.api.request_fields import (
    CHAT_REFUSED,
    RequestBody,
    TokenLimit,
    check_model,
    content_text,
    message_query,
    param_error,
    parse_body,
    request_session,
    request_user,
)
from pandora_dagster.api.turn_request import MODELS, AnswerLimits, ChatAnswer, TurnRequest, pandora_fields, token_usage
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.user.conversations import Message
from pandora_dagster.errors import BadIdError

REFUSED: Mapping[str, str] = {
    **CHAT_REFUSED,
    "background": "a response is answered in its request: expected false",
    "conversation": "conversations are not kept under ids of their own: expected previous_response_id or the header X-Pandora-Session",
    "prompt": "prompts of a client's account are not stored here: expected instructions",
}
"""Field -> why it is refused: it would change what the client gets."""
_PART_TYPES = ("input_text", "output_text", "text")
_ID = "resp_"


class _TextOptions(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)
    format: dict[str, Any] | None = None


class _ResponsesBody(RequestBody):
    input: str | list[dict[str, Any]]
    instructions: str | None = None
    previous_response_id: str | None = None
    max_output_tokens: TokenLimit = None
    store: bool | None = None
    text: _TextOptions | None = None


def parse_responses_request(body: bytes, headers: Mapping[str, str], *, user: UserId) -> TurnRequest:
    """Parse a body and its headers; `user` is the user where the request names none. Raises ApiError."""
    request = parse_body(body, _ResponsesBody, REFUSED)
    check_model(request.model)
    if request.store is False:
        raise param_error("store", "every turn is stored: expected true; pandora forget erases a user", code="unsupported_value")
    if request.text and request.text.format and request.text.format.get("type", "text") != "text":
        raise param_error("text.format", "an answer is text: expected the type text", code="unsupported_value")
    messages = _messages(request.input)
    *earlier, last = messages or [{}]
    if request.instructions:
        earlier.insert(0, {"role": "system", "content": request.instructions})
    return TurnRequest(
        query=message_query(last, _PART_TYPES, "input"),
        user=request_user(headers, request.user, user),
        session=request_session(headers),
        mode=MODELS[request.model],
        model=request.model,
        earlier=tuple(earlier),
        previous=_turn_of(request.previous_response_id),
        stream=bool(request.stream),
        limits=AnswerLimits(max_tokens=request.max_output_tokens),
        metadata=request.metadata,
        ignored=request.ignored(REFUSED),
    )


def _messages(given: str | Sequence[Mapping[str, Any]]) -> list[Message]:
    """The input as chat messages; raises ApiError for an item that is no message of text."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    messages: list[Message] = []
    for number, item in enumerate(given):
        if item.get("type", "message") != "message":
            raise param_error(f"input[{number}].type", "expected message")
        text = content_text(item.get("content"), _PART_TYPES)
        if text is None:
            raise param_error(f"input[{number}].content", "expected a string or parts of type input_text or output_text")
        messages.append({"role": item.get("role"), "content": text})
    return messages


def _turn_of(response_id: str | None) -> TurnKey | None:
    if not response_id:
        return None
    try:
        return TurnKey.parse(response_id.removeprefix(_ID))
    except BadIdError:
        raise param_error("previous_response_id", "expected the id of a response of this server") from None


def response_body(chat_answer: ChatAnswer, delivered: DeliveredText, request: TurnRequest, *, created: int) -> dict[str, Any]:
    """The body of a complete response; `created` in seconds since 1970."""
    key, spent = chat_answer.answer.key, token_usage(chat_answer.calls)
    is_whole = delivered.finish == "stop"
    return {
        **_open_response(key, request, created),
        "status": "completed" if is_whole else "incomplete",
        "incomplete_details": None if is_whole else {"reason": "max_output_tokens"},
        "output": [_output_item(key, delivered)],
        "usage": {
            "input_tokens": spent.prompt,
            "input_tokens_details": {"cached_tokens": spent.cached},
            "output_tokens": spent.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": spent.prompt + spent.output,
        },
        "pandora": pandora_fields(chat_answer, request),
    }


def _open_response(key: TurnKey, request: TurnRequest, created: int) -> dict[str, Any]:
    """A response whose answer is not there yet. Its other fields have the values that OpenAI's clients expect."""
    return {
        "id": f"{_ID}{key}",
        "object": "response",
        "created_at": created,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": request.limits.max_tokens,
        "metadata": dict(request.metadata),
        "model": request.model,
        "output": [],
        "parallel_tool_calls": False,
        "previous_response_id": f"{_ID}{request.previous}" if request.previous else None,
        "store": True,
        "temperature": None,
        "text": {"format": {"type": "text"}},
        "tool_choice": "none",
        "tools": [],
        "top_p": None,
        "truncation": "disabled",
        "usage": None,
        "user": request.user,
    }


def _output_item(key: TurnKey, delivered: DeliveredText | None) -> dict[str, Any]:
    """The message of a response; None before its text is there."""
    status = "in_progress" if delivered is None else "completed" if delivered.finish == "stop" else "incomplete"
    content = [_text_part(delivered.text)] if delivered else []
    return {"id": f"msg_{key}", "type": "message", "status": status, "role": "assistant", "content": content}


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


@dataclass(slots=True)
class ResponseEvents:
    """The events of one streamed response; `created` in seconds since 1970."""

    key: TurnKey
    request: TurnRequest
    created: int
    _number: int = field(default=0, init=False)

    def start(self) -> list[str]:
        opened = _open_response(self.key, self.request, self.created)
        return [
            self._event("response.created", response=opened),
            self._event("response.in_progress", response=opened),
            self._event("response.output_item.added", output_index=0, item=_output_item(self.key, None)),
            self._event("response.content_part.added", **self._place, part=_text_part("")),
        ]

    def text(self, text: str) -> list[str]:
        return [self._event("response.output_text.delta", **self._place, delta=text, logprobs=[])]

    def end(self, chat_answer: ChatAnswer, delivered: DeliveredText) -> list[str]:
        body = response_body(chat_answer, delivered, self.request, created=self.created)
        return [
            self._event("response.output_text.done", **self._place, text=delivered.text, logprobs=[]),
            self._event("response.content_part.done", **self._place, part=_text_part(delivered.text)),
            self._event("response.output_item.done", output_index=0, item=_output_item(self.key, delivered)),
            self._event(f"response.{body['status']}", response=body),
        ]

    def error(self, error: ApiError) -> list[str]:
        fault = error.body["error"]
        failed = {
            **_open_response(self.key, self.request, self.created),
            "status": "failed",
            "error": {"code": "server_error", "message": fault["message"]},
            "pandora": {"error": fault},
        }
        return [self._event("response.failed", response=failed)]

    @property
    def _place(self) -> dict[str, Any]:
        return {"item_id": f"msg_{self.key}", "output_index": 0, "content_index": 0}

    def _event(self, name: str, **fields: object) -> str:
        self._number += 1
        return sse_event({"type": name, "sequence_number": self._number - 1, **fields}, name=name)
