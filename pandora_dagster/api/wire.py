"""Turns as OpenAI's chat completions say them, whole and as server-sent events. Shapes only."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pandora_dagster.contracts.calls import CallRecord
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.phases.answers import Answered

DONE = "data: [DONE]\n\n"
_LONGEST_REASON = 300


@dataclass(frozen=True, slots=True)
class Told:
    """A turn's answer, with what it took. `created`: seconds since 1970."""

    answer: Answered
    session: str
    usage: Mapping[str, Any]


def completion(told: Told, *, model: str, created: int) -> dict[str, Any]:
    """The answer in one body."""
    message = {"role": "assistant", "content": told.answer.response + sources(told.answer)}
    return {
        "id": _id(told.answer.key),
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
        "usage": told.usage,
        "pandora": about(told),
    }


@dataclass(frozen=True, slots=True)
class Stream:
    """The events of one streamed answer."""

    key: TurnKey
    model: str
    created: int

    def begins(self) -> str:
        return self._chunk({"role": "assistant", "content": ""})

    def words(self, text: str) -> str:
        return self._chunk({"content": text})

    def ends(self, told: Told) -> str:
        return self._chunk({}, finish_reason="stop", pandora=about(told))

    def usage(self, told: Told) -> str:
        return event({**self._base(), "choices": [], "usage": told.usage})

    def _chunk(self, delta: Mapping[str, str], *, finish_reason: str | None = None, **more: object) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
        return event({**self._base(), "choices": [choice], **more})

    def _base(self) -> dict[str, Any]:
        return {"id": _id(self.key), "object": "chat.completion.chunk", "created": self.created, "model": self.model}


def event(value: Mapping[str, Any]) -> str:
    """One event with data."""
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"


def comment(text: str) -> str:
    """What keeps a connection alive; clients pass over it."""
    return f": {text}\n\n"


def about(told: Told) -> dict[str, Any]:
    """What this project says of an answer beside OpenAI's fields; places of documents are below the person's folder."""
    cited = [{"label": c["label"], "turn_id": c["turn_id"]} for c in told.answer.citations]
    return {"turn": str(told.answer.key), "session": told.session, "state": told.answer.state.value, "citations": cited}


def sources(answer: Answered) -> str:
    """The list at the answer's end, as `pandora ask` shows it, without places on this machine; "" where nothing is cited."""
    lines = [f"[{cited['label']}] {cited['turn_id'] or 'memory'}" for cited in answer.citations]
    return "\n\n" + "  \n".join(lines) if lines else ""


def withdrawal(reason: str) -> str:
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


def _id(key: TurnKey) -> str:
    return f"chatcmpl-{key}"
