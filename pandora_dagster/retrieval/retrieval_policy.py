"""How much of the history a turn sees, by the intent of its query (002 sections 3 to 5). Numbers and their lookup.

Counts of messages are 002's; a turn is two of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Depth = Literal["none", "minimal", "light", "full"]
OFFERED: Mapping[Depth, int] = MappingProxyType({"none": 0, "minimal": 5, "light": 20, "full": 40})
"""Depth -> turns that the index offers; light is 004 section 4.1's twenty."""
DEPTHS: Mapping[str, Depth] = MappingProxyType({"greeting": "none", "navigation": "minimal"})
"""Intent -> how far back the index is searched (002 section 4, "Retrieval Depth by Stage")."""
OTHER_DEPTH: Depth = "light"
"""The depth of intents that `DEPTHS` does not name."""
LINKED_WEIGHT = 1.3
"""How much more a turn of a linked session counts (002 section 4: a 30 % boost)."""
BUFFERS: Mapping[str, int] = MappingProxyType({"commerce": 5, "query": 5, "recall": 5, "preference": 4, "navigation": 2, "greeting": 0})
"""Intent -> newest turns that go whole (002 section 3, "Turn Buffer Sizes"). A purchase, a question and a look back grow over turns, as
stages 1 and 4 of 002 do; a preference is set like a need; going somewhere needs little, and a greeting recalls nothing."""
_OTHER_BUFFER = 4
"""For an intent that `BUFFERS` does not name: 002's smaller ordinary buffer."""


@dataclass(frozen=True, slots=True)
class SummaryTriggers:
    """When a conversation is summarised as a whole (002 section 3, "Summarization")."""

    messages: int = 30
    tokens: int = 3_500
    again_after: int = 20
    """New messages after which it is summarised again."""
    kept: int = 15
    """Newest messages that stay out of the summary."""
    words: int = 500

    def due(self, *, messages: int, tokens: int, summarised: int = 0) -> bool:
        """Whether `messages` of `tokens` in all call for a summary; `summarised`: how many there were at the last one, 0 for none."""
        if messages <= self.kept:
            return False
        if summarised:
            return messages - summarised >= self.again_after
        return messages >= self.messages or tokens > self.tokens


@dataclass(frozen=True, slots=True)
class RetrievalPolicy:
    """The numbers of the window of a session."""

    minimal: int = 2
    """A buffer up to this is all of the session that is sent: no summaries before it."""
    turns_with_summary: int = 8
    turns_without_summary: int = 12
    """How far back a window reaches, with and without a summary of the conversation (002 section 3, "Two-Level Trimming")."""
    protected_turns: int = 6
    """Newest turns that are never dropped (12 messages)."""
    messages: int = 24
    message_characters: int = 2_000
    """`maxMessageLength`: characters, for 002 counts a text's length at 4 characters a token. A turn over two such messages is
    compressed to it (DECISIONS 2), never cut."""
    older_share: float = 0.6
    """Of what protected turns leave; the rest is retrieved turns', which are dropped first (002 section 5)."""
    summary: SummaryTriggers = SummaryTriggers()

    @property
    def turn_tokens(self) -> int:
        """Tokens of one turn that goes whole: two messages at 4 characters a token (002 section 5)."""
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
    """Newest turns that go whole for an intent."""
    return BUFFERS.get(intent, _OTHER_BUFFER)
