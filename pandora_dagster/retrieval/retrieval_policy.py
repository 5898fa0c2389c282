"""How much of the history a turn sees, by policy and by stage or intent (002 sections 3 to 5). Numbers and their lookup.

Counts of messages are 002's; a turn is two of them. Thresholds are quantiles of the ranker in use (DECISIONS 27): 0.6 leaves the best 40 %
of what it found.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from pandora_dagster.errors import InputError

Depth = Literal["none", "minimal", "light", "full"]
OFFERED: Mapping[Depth, int] = MappingProxyType({"none": 0, "minimal": 5, "light": 20, "full": 40})
"""Depth -> turns that the index offers; light is 004 section 4.1's twenty."""


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
    """The numbers of one policy. Tables are keyed by stage or intent."""

    buffers: Mapping[str, int]
    """Newest turns that go whole (002 section 3, "Turn Buffer Sizes")."""
    depths: Mapping[str, Depth]
    """How far back the index is searched (002 section 4, "Retrieval Depth by Stage")."""
    other_depth: Depth = "light"
    thresholds: Mapping[str, float] = field(default_factory=lambda: MappingProxyType(dict[str, float]()))
    """The quantile under which what was found is left out; absent: nothing is, RETRIEVAL judges."""
    other_sessions: Literal["own", "consented"] = "own"
    """`own`: the user's other sessions are searched; `consented`: only once the user consents."""
    linked_weight: float = 1.3
    """How much more a turn of a linked session counts (002 section 4: a 30 % boost)."""
    other_buffer: int = 4
    """For a stage or intent that `buffers` does not name: 002's smaller ordinary buffer."""
    minimal: int = 2
    """A buffer up to this is all of the session that is sent: no summaries before it (avoid recall 0, stage enforcement 2)."""
    turns_with_summary: int = 8
    turns_without_summary: int = 12
    """How far back a window reaches, with and without a summary of the conversation (002 section 3, "Two-Level Trimming")."""
    protected_turns: int = 6
    """Newest turns that are never dropped (12 messages)."""
    messages: int = 24
    message_characters: int = 2_000
    """`maxMessageLength`: characters, for 002 counts a text's length at 4 characters a token. A turn over two such messages is
    compressed to it (DECISIONS 2), never cut."""
    cross_session: int | None = None
    """Retrieved turns of other sessions that began after this one; None, here and below: tokens alone decide."""
    current_session: int | None = None
    """Retrieved turns of this session."""
    pre_session: int | None = None
    """Retrieved turns from before this session's first."""
    older_share: float = 0.6
    """Of what protected turns leave; the rest is retrieved turns', which are dropped first (002 section 5)."""
    summary: SummaryTriggers = SummaryTriggers()

    @property
    def turn_tokens(self) -> int:
        """Tokens of one turn that goes whole: two messages at 4 characters a token (002 section 5)."""
        return 2 * self.message_characters // 4

    def buffer(self, kind: str) -> int:
        """Newest turns that go whole for a stage or intent."""
        return self.buffers.get(kind, self.other_buffer)

    def reach(self, kind: str, *, has_summary: bool) -> int:
        """How many of the newest turns are sent in any form."""
        buffer = self.buffer(kind)
        trimmed = self.turns_with_summary if has_summary else self.turns_without_summary
        return buffer if buffer <= self.minimal else min(trimmed, self.messages // 2)

    def protected(self, kind: str, *, has_summary: bool) -> int:
        """How many of the newest turns are never dropped."""
        return min(self.protected_turns, self.reach(kind, has_summary=has_summary))


POLICIES: Mapping[str, RetrievalPolicy] = MappingProxyType(
    {
        # A purchase, a question and a look back grow over turns as stages 1 and 4 do; a preference is set like a need; going somewhere
        # needs as little as stage enforcement, and a greeting recalls nothing.
        "assistant": RetrievalPolicy(
            buffers=MappingProxyType(
                {
                    "commerce": 5,
                    "query": 5,
                    "recall": 5,
                    "preference": 4,
                    "navigation": 2,
                    "greeting": 0,
                    "avoid_recall": 0,
                    "stage_enforcement": 2,
                }
            ),
            depths=MappingProxyType({"greeting": "none", "navigation": "minimal"}),
        ),
        # Two people meet in a mediation: what one session heard reaches another only with consent.
        "mediation": RetrievalPolicy(
            buffers=MappingProxyType(
                {"witnessing": 5, "perspective": 4, "need_mapping": 4, "repair": 5, "avoid_recall": 0, "stage_enforcement": 2}
            ),
            depths=MappingProxyType(
                {
                    "witnessing": "light",
                    "perspective": "light",
                    "need_mapping": "full",
                    "repair": "full",
                    "high_distress": "none",
                    "avoid_recall": "none",
                }
            ),
            other_depth="minimal",
            thresholds=MappingProxyType(
                {"onboarding": 0.60, "witnessing": 0.65, "perspective": 0.55, "need_mapping": 0.50, "repair": 0.50}
            ),
            other_sessions="consented",
            cross_session=10,
            current_session=5,
            pre_session=10,
        ),
    }
)
"""The shipped policies (DECISIONS 27)."""


def retrieval_policy(name: str) -> RetrievalPolicy:
    """A shipped policy; raises InputError."""
    try:
        return POLICIES[name]
    except KeyError:
        raise InputError(f"policy {name!r}: expected one of {', '.join(POLICIES)}") from None
