"""What is compressed first, and what never (000 section 24.2). Knows names and content types; counts nothing."""

from collections.abc import Collection
from enum import IntEnum

from pandora_dagster.contracts.words import ContentType


class CompressionPriority(IntEnum):
    """The lower, the earlier it is compressed."""

    LOW = 1
    MEDIUM = 2
    HIGH = 3
    CRITICAL = 4


PRIORITY_ORDER: tuple[tuple[str, CompressionPriority], ...] = (
    ("section_0", CompressionPriority.CRITICAL),
    ("error", CompressionPriority.CRITICAL),
    ("url", CompressionPriority.HIGH),
    ("price", CompressionPriority.HIGH),
    ("section_N", CompressionPriority.MEDIUM),
    ("claim", CompressionPriority.MEDIUM),
    ("description", CompressionPriority.LOW),
    ("history", CompressionPriority.LOW),
)
"""What -> its priority. Errors, addresses and prices are facts: the ledger holds on to them wherever they stand."""

_KINDS = {
    ContentType.PRIOR_TURN: "history",
    ContentType.GENERIC: "description",
    ContentType.PAGE_DOC: "description",
    ContentType.RESEARCH_DOC: "claim",
    ContentType.TOOL_RESULT: "claim",
    ContentType.CONTEXT_DOC: "section_N",
}
_HISTORY = frozenset({"turn_summaries", "prior_turns", "conversation"})
_CRITICAL = frozenset({"raw_query", "tools", "command"})
"""Documents that a call can not do without: the person's words, what may be called, what is to be done."""


def priority_of(name: str, content_type: ContentType, preserve: Collection[str] = ()) -> CompressionPriority:
    """The priority of a whole document; one that its recipe's `compression.preserve` names is never compressed."""
    if name in preserve or name in _CRITICAL:
        return CompressionPriority.CRITICAL
    what = "history" if name in _HISTORY else _KINDS[content_type]
    return dict(PRIORITY_ORDER)[what]
