"""A conversation in OpenAI message format, as imported and exported. Messages are kept value for value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Conversation:
    """One line of an import file."""

    id: str
    user_id: str
    created_at: str
    messages: tuple[Message, ...]
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further fields of the line, kept value for value."""


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """One turn of a conversation: the user message and all that follows it up to the next one."""

    messages: tuple[Message, ...]
    first_index: int
    """Index of the user message in the conversation's messages, counted from 0."""


class SessionRecord(BaseModel):
    """What belongs to a whole imported conversation, once: how far its import is, and what stands before its first turn."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    user_id: str
    session_id: str
    created_at: str
    """As the file gave it."""
    state: Literal["importing", "complete"]
    content_sha: str
    """sha256 of the conversation's values: the same content imported again changes nothing, other content is a fault."""
    first_turn: int
    """Number of its first turn; 0 where it has none."""
    turn_count: int
    preamble: tuple[Message, ...] = ()
    """Messages before the first user message (DECISIONS 20)."""
    extra: Mapping[str, Any] = {}

    @property
    def numbers(self) -> range:
        """The numbers of its turns, in order."""
        return range(self.first_turn, self.first_turn + self.turn_count)
