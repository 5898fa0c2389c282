"""A conversation in OpenAI message format, as imported and exported. Messages are kept value for value."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Conversation:
    """One line of an import file."""

    id: str
    user_id: str
    created_at: str
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """One turn of a conversation: the user message and all that follows it up to the next one."""

    messages: tuple[Message, ...]
    first_index: int
    """Index of the user message in the conversation's messages, counted from 0."""
