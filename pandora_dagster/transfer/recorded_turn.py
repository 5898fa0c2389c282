"""Documents and manifest of a recorded turn, made from messages. Calls no model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.turns import Manifest
from pandora_dagster.contracts.user.conversations import Conversation, Message, RecordedTurn
from pandora_dagster.documents.conversation_messages import message_lines, message_text, message_time
from pandora_dagster.documents.recorded_context import recorded_answer, render_recorded_context
from pandora_dagster.language.terms import TermReader
from pandora_dagster.retrieval.recorded_summary import summarise, summary_fields

RECORDED_RUNTIME = "recorded"
CONTEXT_FILE = "context.md"
MESSAGES_FILE = "messages.jsonl"


@dataclass(frozen=True, slots=True)
class TurnDraft:
    """One turn of a conversation, ready for the store."""

    key: TurnKey
    session: str
    created_at: str
    context: str
    messages: str
    summary: Mapping[str, object]
    first_message: int
    preamble: tuple[Message, ...]
    """Messages before the conversation's first turn; for that turn only."""

    @property
    def files(self) -> Mapping[str, str]:
        return {CONTEXT_FILE: self.context, MESSAGES_FILE: self.messages}


def draft_turn(conversation: Conversation, turn: RecordedTurn, number: int, preamble: Sequence[Message], reader: TermReader) -> TurnDraft:
    """The documents of one recorded turn; the first one of a conversation also shows the messages before it."""
    before = preamble if turn.first_index == len(preamble) else ()
    summary = summarise(message_text(turn.messages[0]), recorded_answer(turn.messages), _tools(turn.messages), reader=reader)
    return TurnDraft(
        key=TurnKey(UserId(conversation.user_id), number),
        session=conversation.id,
        created_at=message_time(turn.messages[0], conversation.created_at),
        context=render_recorded_context(turn.messages, preamble=before),
        messages=message_lines(turn.messages),
        summary=summary_fields(summary),
        first_message=turn.first_index,
        preamble=tuple(before),
    )


def recorded_manifest(item: TurnDraft) -> Manifest:
    """The manifest of a recorded turn: always saved, its last activity is when it happened (DECISIONS 30).

    The store fills in hashes, tokens and the owner of the documents.
    """
    return Manifest(
        user_id=item.key.user,
        turn_id=item.key.turn_id,
        session_id=item.session,
        state=TurnState.SAVED,
        created_at=item.created_at,
        last_activity=item.created_at,
        recorded=True,
        runtime=RECORDED_RUNTIME,
        summary=item.summary,
        first_message=item.first_message,
    )


def _tools(messages: Sequence[Message]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(call["function"]["name"] for m in messages for call in m.get("tool_calls") or ()))
