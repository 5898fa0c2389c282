"""What a request of any of the chat APIs asks for, and what its answer consists of. No wire format."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.contracts.model_calls import CallRecord
from pandora_dagster.contracts.user.conversations import Message
from pandora_dagster.documents.conversation_messages import INSTRUCTION_ROLES, message_text, tool_call_lines
from pandora_dagster.phases.flow.turn_answer import TurnAnswer

MODELS: Mapping[str, Literal["chat", "code"]] = {"pandora": "chat", "pandora-code": "code"}
"""Model name -> mode of the turn. Recipes and runtime.yaml decide which models answer."""
USER_HEADER, SESSION_HEADER, TURN_HEADER = "X-Pandora-User", "X-Pandora-Session", "X-Pandora-Turn"


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """Where an answer ends as it is delivered; the stored answer is whole."""

    stop: tuple[str, ...] = ()
    """The answer ends before the first of these texts."""
    max_tokens: int | None = None
    """Tokens (cl100k); None for no limit."""


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """One query. `earlier` are the messages before it in the request, unchanged."""

    query: str
    user: UserId
    session: SessionId | None
    """None where the client names none."""
    mode: Literal["chat", "code"]
    model: str
    earlier: tuple[Message, ...] = ()
    previous: TurnKey | None = None
    """The turn that the client names as the one before."""
    stream: bool = False
    include_usage: bool = False
    limits: AnswerLimits = AnswerLimits()
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    """Stored with the turn and returned with the answer."""
    ignored: tuple[str, ...] = ()
    """Fields of the request that have no effect."""


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """The answer of a turn, with its session and the calls that made it."""

    answer: TurnAnswer
    session: SessionId
    calls: tuple[CallRecord, ...]


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of the calls of a turn: as the servers counted them, else as the prompt packs planned them."""

    prompt: int
    output: int
    cached: int


def token_usage(calls: Sequence[CallRecord]) -> TokenUsage:
    prompt = sum(call.spent.prompt or (call.tokens.prompt + call.tokens.input) for call in calls)
    output = sum(call.spent.output or call.tokens.output for call in calls)
    return TokenUsage(prompt, output, sum(call.spent.cached for call in calls))


def pandora_fields(chat_answer: ChatAnswer, request: TurnRequest) -> dict[str, Any]:
    """The field `pandora` of an answer: turn, session, state, citations, and the fields of the request that had no effect."""
    cited = [{"label": c["label"], "turn_id": c["turn_id"]} for c in chat_answer.answer.citations]
    return {
        "turn": str(chat_answer.answer.key),
        "session": chat_answer.session,
        "state": chat_answer.answer.state.value,
        "citations": cited,
        "ignored": list(request.ignored),
    }


def conversation_hash(messages: Sequence[Message]) -> str:
    """The sha256 of what was said, instructions left out: the same for all clients that sent and got the same words."""
    said = [
        [message.get("role"), " ".join(message_text(message).split()), *tool_call_lines(message)]
        for message in messages
        if message.get("role") not in INSTRUCTION_ROLES
    ]
    return sha256(json.dumps(said).encode()).hexdigest()
