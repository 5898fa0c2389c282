"""The levels and numbers of specification 003's summarization: when a level is due, and in which batches.

Specification 003's pipeline and archival runs both use it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

Entry = TypeVar("Entry")
_MIN_RATIO, _MIN_SUMMARY_TOKENS = 10, 80
"""The least ratio of level 2 in specification 003, and the tokens that a narrative may have at any ratio."""


class SummarizationLevel(IntEnum):
    """How far a text is condensed (specification 003, "Enums")."""

    L0_RAW = 0
    L1_KEYWORDS = 1
    L2_SUMMARY = 2
    """Narrative, 10:1 to 20:1."""
    L3_DIGEST = 3
    """Structured JSON, 50:1 to 100:1."""


@dataclass
class SummarizationConfig:
    """When to summarise, how much at once, and how many calls that may take; open to change (specification 003, "Configuration").

    Triggers, batches and lengths are read at each use. The three limits on calls are read once, when a pipeline makes its limiter.
    """

    l2_trigger_entries: int = 20
    l3_trigger_summaries: int = 10
    l2_max_summary_tokens: int = 200
    l3_max_digest_tokens: int = 500
    l2_batch_size: int = 5
    preserve_recent_n: int = 5
    max_calls_per_minute: int = 10
    max_calls_per_session: int = 200
    rate_limit_window_seconds: float = 60.0

    def is_l2_due(self, entries: int) -> bool:
        """Whether there are enough entries for level 2."""
        return entries >= self.l2_trigger_entries

    def is_l3_due(self, summaries: int) -> bool:
        """Whether there are enough summaries for level 3."""
        return summaries >= self.l3_trigger_summaries

    def l2_target(self, tokens: int) -> int:
        """Tokens of a narrative of entries whose raw texts have `tokens`: a tenth, at least 80, at most `l2_max_summary_tokens`."""
        return min(self.l2_max_summary_tokens, max(_MIN_SUMMARY_TOKENS, tokens // _MIN_RATIO))

    def without_recent(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """`entries`, oldest first, without the newest `preserve_recent_n`."""
        return entries[: max(0, len(entries) - max(0, self.preserve_recent_n))]

    def l2_batches(self, entries: Sequence[Entry]) -> tuple[tuple[Entry, ...], ...]:
        """`entries` in the batches of level 2."""
        return batches(entries, self.l2_batch_size)

    def l3_batches(self, summaries: Sequence[Entry]) -> tuple[tuple[Entry, ...], ...]:
        """`summaries` in batches of `l3_trigger_summaries`, each merged into a digest by one call."""
        return batches(summaries, self.l3_trigger_summaries)


def batches(entries: Sequence[Entry], size: int) -> tuple[tuple[Entry, ...], ...]:
    """`entries` in order, `size` at a time; a size under 1 counts as 1."""
    step = max(1, size)
    return tuple(tuple(entries[at : at + step]) for at in range(0, len(entries), step))
