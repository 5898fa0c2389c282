"""Turns as OpenAI's chat completions say them, whole and as server-sent events. Shapes only."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.model_calls import CallRecord
from pandora_dagster.phases.flow.turn_answer import TurnAnswer

DONE = "data: [DONE]\n\n"
_LONGEST_REASON = 300


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """A turn's answer, with what it took. `created`: seconds since 1970."""

    answer: TurnAnswer
    session: str
    usage: Mapping[str, Any]


def completion(told: ChatAnswer, *, model: str, created: int) -> dict[str, Any]:
    """The answer in one body."""
    message = {"role": "assistant", "content": told.answer.response + source_list(told.answer)}
    return {
        "id": _completion_id(told.answer.key),
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
        "usage": told.usage,
        "pandora": pandora_fields(told),
    }


@dataclass(frozen=True, slots=True)
class ChatStream:
    """The events of one streamed answer."""

    key: TurnKey
    model: str
    created: int

    def start_chunk(self) -> str:
        return self._chunk({"role": "assistant", "content": ""})

    def text_chunk(self, text: str) -> str:
        return self._chunk({"content": text})

    def end_chunk(self, told: ChatAnswer) -> str:
        return self._chunk({}, finish_reason="stop", pandora=pandora_fields(told))

    def usage_chunk(self, told: ChatAnswer) -> str:
        return sse_event({**self._base(), "choices": [], "usage": told.usage})

    def _chunk(self, delta: Mapping[str, str], *, finish_reason: str | None = None, **more: object) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
        return sse_event({**self._base(), "choices": [choice], **more})

    def _base(self) -> dict[str, Any]:
        return {"id": _completion_id(self.key), "object": "chat.completion.chunk", "created": self.created, "model": self.model}


def sse_event(value: Mapping[str, Any]) -> str:
    """One event with data."""
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"


def sse_comment(text: str) -> str:
    """What keeps a connection alive; clients pass over it."""
    return f": {text}\n\n"


def pandora_fields(told: ChatAnswer) -> dict[str, Any]:
    """What this project says of an answer beside OpenAI's fields; places of documents are below the person's folder."""
    cited = [{"label": c["label"], "turn_id": c["turn_id"]} for c in told.answer.citations]
    return {"turn": str(told.answer.key), "session": told.session, "state": told.answer.state.value, "citations": cited}


def source_list(answer: TurnAnswer) -> str:
    """The list at the answer's end, as `pandora ask` shows it, without places on this machine; "" where nothing is cited."""
    lines = [f"[{cited['label']}] {cited['turn_id'] or 'memory'}" for cited in answer.citations]
    return "\n\n" + "  \n".join(lines) if lines else ""


def withdrawal_notice(reason: str) -> str:
    """What parts a withdrawn draft from what takes its place: a client shows both, one after the other."""
    told = " ".join(reason.split())
    told = told if len(told) <= _LONGEST_REASON else f"{told[:_LONGEST_REASON]} ..."
    return f"\n\n---\n\n*The draft above is withdrawn: {told}*\n\n"


def usage_of(calls: Sequence[CallRecord]) -> dict[str, Any]:
    """Tokens of a turn's calls, as their servers counted them, else as planned."""
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
