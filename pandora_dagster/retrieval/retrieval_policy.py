"""How many earlier turns a turn sees, by the intent of its query (specification 002, sections 3 to 5). Numbers and their lookup.

Specification 002 counts messages; a turn is two of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Depth = Literal["none", "minimal", "light", "full"]
MAX_CANDIDATES: Mapping[Depth, int] = MappingProxyType({"none": 0, "minimal": 5, "light": 20, "full": 40})
"""Depth -> turns that the index offers; `light` is the twenty of specification 004, section 4.1."""
DEPTHS: Mapping[str, Depth] = MappingProxyType({"greeting": "none", "navigation": "minimal"})
"""Intent -> how far back the index is searched (specification 002, section 4, "Retrieval Depth by Stage")."""
OTHER_DEPTH: Depth = "light"
"""The depth of intents that `DEPTHS` does not name."""
LINKED_WEIGHT = 1.3
"""Factor on the score of a turn of a linked session (specification 002, section 4: a 30 % boost)."""
BUFFERS: Mapping[str, int] = MappingProxyType({"commerce": 5, "query": 5, "recall": 5, "preference": 4, "navigation": 2, "greeting": 0})
"""Intent -> newest turns that are sent whole (specification 002, section 3, "Turn Buffer Sizes"). A purchase, a question and a recall
develop over several turns; navigation needs few of them, and a greeting none."""
_OTHER_BUFFER = 4
"""The buffer of intents that `BUFFERS` does not name: the smaller usual one of specification 002."""


@dataclass(frozen=True, slots=True)
class SummaryTriggers:
    """When a conversation is summarized as a whole (specification 002, section 3, "Summarization")."""

    messages: int = 30
    tokens: int = 3_500
    again_after: int = 20
    """New messages after which it is summarized again."""
    kept: int = 15
    """Newest messages that are not summarized."""
    words: int = 500

    def is_due(self, *, messages: int, tokens: int, summarized: int = 0) -> bool:
        """Whether `messages` with `tokens` in all need a summary; `summarized`: the number of messages at the last one, 0 for none."""
        if messages <= self.kept:
            return False
        if summarized:
            return messages - summarized >= self.again_after
        return messages >= self.messages or tokens > self.tokens


@dataclass(frozen=True, slots=True)
class RetrievalPolicy:
    """The numbers of the window of a session."""

    minimal: int = 2
    """A buffer up to this is all of the session that is sent: no summaries before it."""
    turns_with_summary: int = 8
    turns_without_summary: int = 12
    """How many turns back a window reaches, with and without a summary of the conversation (specification 002, section 3, "Two-Level
    Trimming")."""
    protected_turns: int = 6
    """Newest turns that are never dropped (12 messages)."""
    messages: int = 24
    message_characters: int = 2_000
    """`maxMessageLength` in characters; specification 002 assumes 4 characters a token. A turn longer than two such messages is
    compressed, never cut (decision 2, docs/decisions/02-selection-then-compression.md)."""
    older_share: float = 0.6
    """Share of older history in the tokens that protected turns leave; the other tokens are for retrieved turns, which are dropped first
    (specification 002, section 5)."""
    summary: SummaryTriggers = SummaryTriggers()

    @property
    def turn_tokens(self) -> int:
        """Tokens of one whole turn: two messages at 4 characters a token (specification 002, section 5)."""
        return 2 * self.message_characters // 4

    def reach(self, intent: str, *, has_summary: bool) -> int:
        """How many of the newest turns are sent in any form."""
        buffer = buffer_size(intent)
        trimmed = self.turns_with_summary if has_summary else self.turns_without_summary
        return buffer if buffer <= self.minimal else min(trimmed, self.messages // 2)

    def protected(self, intent: str, *, has_summary: bool) -> int:
        """How many of the newest turns are never dropped."""
        return min(self.protected_turns, self.reach(intent, has_summary=has_summary))


def buffer_size(intent: str) -> int:
    """The number of newest turns that are sent whole for an intent."""
    return BUFFERS.get(intent, _OTHER_BUFFER)
