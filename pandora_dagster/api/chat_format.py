"""The format of OpenAI's chat completions: requests, complete answers, and answers as server-sent events."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pandora_dagster.api.api_errors import ApiError
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId, session_id, user_id
from pandora_dagster.contracts.model_calls import CallRecord
from pandora_dagster.contracts.user.conversations import Message
from pandora_dagster.errors import BadIdError
from pandora_dagster.phases.flow.turn_answer import TurnAnswer

MODELS: Mapping[str, Literal["chat", "code"]] = {"pandora": "chat", "pandora-code": "code"}
"""Model name -> mode of the turn. Recipes and runtime.yaml decide which models answer."""
USER_HEADER, SESSION_HEADER = "X-Pandora-User", "X-Pandora-Session"
_SESSION_HASH_DIGITS = 20
_MAX_SHOWN_CHARACTERS = 60
"""Characters of a client's value that an error message shows."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One query. `earlier` are the messages before it in the request, unchanged."""

    query: str
    user: UserId
    session: SessionId
    mode: Literal["chat", "code"]
    model: str
    earlier: tuple[Message, ...] = ()
    stream: bool = False
    include_usage: bool = False


class _StreamOptions(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)
    include_usage: bool = False


class _RequestBody(BaseModel):
    """The fields of a request that are read. Recipes decide the others (temperature, max_tokens and the like), so they are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    model: str
    messages: list[dict[str, Any]] = Field(min_length=1)
    stream: bool | None = False
    stream_options: _StreamOptions | None = None
    n: int | None = 1
    tools: list[Any] | None = None
    functions: list[Any] | None = None
    response_format: dict[str, Any] | None = None
    logprobs: bool | None = None


def parse_chat_request(body: bytes, headers: Mapping[str, str], *, user: UserId) -> ChatRequest:
    """Parse a body and its headers; `user` is the user where no header names one. Raises ApiError."""
    request = _parse_body(body)
    if request.model not in MODELS:
        message = f"model {request.model[:_MAX_SHOWN_CHARACTERS]!r}: expected one of {', '.join(MODELS)}"
        raise ApiError(404, message, param="model", code="model_not_found")
    _check_unsupported(request)
    *earlier, last = request.messages
    if last.get("role") != "user":
        raise _param_error("messages", f"the last one has role {str(last.get('role'))[:_MAX_SHOWN_CHARACTERS]!r}: expected role user")
    query = _extract_query(last.get("content"))
    try:
        owner = user_id(headers[USER_HEADER]) if headers.get(USER_HEADER) else user
        session = session_id(headers.get(SESSION_HEADER) or _derive_session(request.messages))
    except BadIdError as error:
        raise ApiError(400, str(error), code="bad_id") from None
    options = request.stream_options or _StreamOptions()
    mode = MODELS[request.model]
    return ChatRequest(query, owner, session, mode, request.model, tuple(earlier), bool(request.stream), options.include_usage)


def _parse_body(body: bytes) -> _RequestBody:
    try:
        value: object = json.loads(body)
        return _RequestBody.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise _param_error(".".join(map(str, first["loc"])) or "body", first["msg"]) from None
    except (ValueError, RecursionError):
        raise ApiError(400, "body: expected one JSON object", code="not_json") from None


def _check_unsupported(request: _RequestBody) -> None:
    """Raise ApiError for a field that would change the answer and that this API does not support."""
    unsupported = {"tools": request.tools, "functions": request.functions, "logprobs": request.logprobs}
    for name in (name for name, value in unsupported.items() if value):
        raise _param_error(name, "not supported: the pipeline has its own")
    if (request.n or 1) != 1:
        raise _param_error("n", "expected 1, a turn has one answer")
    if request.response_format and request.response_format.get("type", "text") != "text":
        raise _param_error("response_format", "expected text")


def _extract_query(content: object) -> str:
    """The text of a message, given as a string or as text parts."""
    if isinstance(content, str):
        text = content
    elif isinstance(content, list) and all(_is_text(part) for part in cast("list[object]", content)):
        text = "\n".join(str(part["text"]) for part in cast("Sequence[Mapping[str, object]]", content))
    else:
        raise _param_error("messages", "the last one's content: expected a string or parts of type text")
    if not text.strip():
        raise _param_error("messages", "the last one is empty: expected a question or request")
    return text


def _is_text(part: object) -> bool:
    if not isinstance(part, dict):
        return False
    fields = cast("Mapping[str, object]", part)
    return fields.get("type") == "text" and isinstance(fields.get("text"), str)


def _derive_session(messages: Sequence[Message]) -> str:
    """Derive the session of a client that names none from the messages up to the user's first one, which all its requests share."""
    first = next((i for i, message in enumerate(messages) if message.get("role") == "user"), len(messages) - 1)
    opening = [[message.get("role"), message.get("content")] for message in messages[: first + 1]]
    return f"chat-{sha256(json.dumps(opening, sort_keys=True).encode()).hexdigest()[:_SESSION_HASH_DIGITS]}"


def _param_error(param: str, message: str) -> ApiError:
    return ApiError(400, f"{param}: {message}", param=param)


DONE = "data: [DONE]\n\n"
_MAX_REASON_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """The answer of a turn, with its session and token usage."""

    answer: TurnAnswer
    session: str
    usage: Mapping[str, Any]


def completion(chat_answer: ChatAnswer, *, model: str, created: int) -> dict[str, Any]:
    """The body of a complete answer; `created` in seconds since 1970."""
    message = {"role": "assistant", "content": chat_answer.answer.response + source_list(chat_answer.answer)}
    return {
        "id": _completion_id(chat_answer.answer.key),
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
        "usage": chat_answer.usage,
        "pandora": pandora_fields(chat_answer),
    }


@dataclass(frozen=True, slots=True)
class ChatStream:
    """The events of one streamed answer; `created` in seconds since 1970."""

    key: TurnKey
    model: str
    created: int

    def start_chunk(self) -> str:
        return self._chunk({"role": "assistant", "content": ""})

    def text_chunk(self, text: str) -> str:
        return self._chunk({"content": text})

    def end_chunk(self, chat_answer: ChatAnswer) -> str:
        return self._chunk({}, finish_reason="stop", pandora=pandora_fields(chat_answer))

    def usage_chunk(self, chat_answer: ChatAnswer) -> str:
        return sse_event({**self._common_fields(), "choices": [], "usage": chat_answer.usage})

    def _chunk(self, delta: Mapping[str, str], *, finish_reason: str | None = None, **fields: object) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
        return sse_event({**self._common_fields(), "choices": [choice], **fields})

    def _common_fields(self) -> dict[str, Any]:
        return {"id": _completion_id(self.key), "object": "chat.completion.chunk", "created": self.created, "model": self.model}


def sse_event(value: Mapping[str, Any]) -> str:
    """A server-sent event with JSON data."""
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"


def sse_comment(text: str) -> str:
    """A server-sent comment: it keeps the connection alive, and clients ignore it."""
    return f": {text}\n\n"


def pandora_fields(chat_answer: ChatAnswer) -> dict[str, Any]:
    """The field `pandora` of an answer: turn, session, state and citations."""
    cited = [{"label": c["label"], "turn_id": c["turn_id"]} for c in chat_answer.answer.citations]
    return {
        "turn": str(chat_answer.answer.key),
        "session": chat_answer.session,
        "state": chat_answer.answer.state.value,
        "citations": cited,
    }


def source_list(answer: TurnAnswer) -> str:
    """The list of sources after an answer, as `pandora ask` prints it but without paths; "" where nothing is cited."""
    lines = [f"[{cited['label']}] {cited['turn_id'] or 'memory'}" for cited in answer.citations]
    return "\n\n" + "  \n".join(lines) if lines else ""


def withdrawal_notice(reason: str) -> str:
    """The text between a withdrawn draft and its replacement: a client shows both, one after the other."""
    line = " ".join(reason.split())
    line = line if len(line) <= _MAX_REASON_CHARACTERS else f"{line[:_MAX_REASON_CHARACTERS]} ..."
    return f"\n\n---\n\n*The draft above is withdrawn: {line}*\n\n"


def token_usage(calls: Sequence[CallRecord]) -> dict[str, Any]:
    """Token usage of the calls of a turn: as the servers counted it, else as the prompt packs planned it."""
    prompt = sum(call.spent.prompt or call.tokens.prompt + call.tokens.input for call in calls)
    output = sum(call.spent.output or call.tokens.output for call in calls)
    cached = sum(call.spent.cached for call in calls)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def _completion_id(key: TurnKey) -> str:
    return f"chatcmpl-{key}"
