"""The levels and the numbers of 003's summarization. Knows defaults only; decides nothing."""

from dataclasses import dataclass
from enum import IntEnum


class SummarizationLevel(IntEnum):
    """How far a text is condensed (003 "Enums")."""

    L0_RAW = 0
    L1_KEYWORDS = 1
    L2_SUMMARY = 2
    """Narrative, 10:1 to 20:1."""
    L3_DIGEST = 3
    """Structured JSON, 50:1 to 100:1."""


@dataclass
class SummarizationConfig:
    """When to summarise, how much at once, and how many calls that may take; open to change (003 "Configuration").

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
