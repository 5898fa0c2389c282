"""Answers in the format of OpenAI's chat completions, complete and as server-sent events."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.model_calls import CallRecord
from pandora_dagster.phases.flow.turn_answer import TurnAnswer

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
        return sse_event({**self._base(), "choices": [], "usage": chat_answer.usage})

    def _chunk(self, delta: Mapping[str, str], *, finish_reason: str | None = None, **more: object) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
        return sse_event({**self._base(), "choices": [choice], **more})

    def _base(self) -> dict[str, Any]:
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


def usage_of(calls: Sequence[CallRecord]) -> dict[str, Any]:
    """Token usage of the calls of a turn: as the servers counted it, else as planned."""
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
