"""A conversation in OpenAI message format, as imported and exported with unchanged values, and its rolling summary."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from pandora_dagster.contracts.strict_model import StrictModel

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Conversation:
    """One line of an import file."""

    id: str
    user_id: str
    created_at: str
    messages: tuple[Message, ...]
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further fields of the line, with unchanged values."""


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """One turn of a conversation: the user message and all that follows it up to the next one."""

    messages: tuple[Message, ...]
    first_index: int
    """Index of the user message in the conversation's messages, counted from 0."""


class SessionRecord(StrictModel):
    """The record of an imported conversation: the state of its import, and the messages before its first turn."""

    user_id: str
    session_id: str
    created_at: str
    """As in the file."""
    state: Literal["importing", "complete"]
    content_sha: str
    """sha256 of the conversation's values: importing the same content again changes nothing, other content is a fault."""
    first_turn: int
    """Number of its first turn; 0 without turns."""
    turn_count: int
    preamble: tuple[Message, ...] = ()
    """Messages before the first user message (decision 20, docs/decisions/20-files-of-a-user.md)."""
    extra: Mapping[str, Any] = {}

    @property
    def numbers(self) -> range:
        """The numbers of its turns, in order."""
        return range(self.first_turn, self.first_turn + self.turn_count)


class Continuation(StrictModel):
    """The place at which a chat client that names no session goes on: the turn whose answer ends the conversation that it has."""

    session_id: str
    turn_id: str


Items = tuple[Annotated[str, Field(min_length=1)], ...]


class ConversationDigest(StrictModel):
    """The summary of a conversation so far (specification 002, section 3, "Summarization"); an item ends with its turn: `(turn 12)`."""

    summary: Annotated[str, Field(min_length=1)]
    """The narrative, in the order of events."""
    key_themes: Items = ()
    journey: str = ""
    """The development of the user's situation; specification 002's `emotionalJourney`."""
    unresolved_topics: Items = ()
    agreed_facts: Items = ()
    user_needs: Items = ()
    """The user's needs, and the limits that the user set."""
    others_needs: Items = ()
    """Needs of other people concerned; specification 002's `partnerNeeds`."""
    open_questions: Items = ()
    agreements: Items = ()
    """Decisions."""


class ConversationSummary(StrictModel):
    """The stored rolling summary of one session: its text, the turns it covers, and the call that made it."""

    format_version: Literal[1] = 1
    user_id: str
    session_id: str
    turns: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)]
    """Numbers of the turns that it covers, ascending."""
    linked: tuple[int, ...] = ()
    """Covered turns with a limit or a decision that did not fit; it can be read in the turn (decision 7,
    docs/decisions/07-levels-link-every-fact.md)."""
    digest: ConversationDigest
    tokens: int
    """Tokens of the digest in a prompt (cl100k)."""
    created_at: str
    made_by: str
    """The turn after which it was made, e.g. `turn_000031`."""
    runtime: str
    recipe: str
    recipe_version: str
    prompt_version: str
    call_id: str
    """Id of the last call; many turns take several calls."""

    @property
    def last_turn(self) -> int:
        """The newest turn that it covers."""
        return self.turns[-1]
