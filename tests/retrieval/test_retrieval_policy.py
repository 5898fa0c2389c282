"""When a conversation is summarised."""

import pytest

from pandora_dagster.retrieval.retrieval_policy import SummaryTriggers


@pytest.mark.parametrize(
    ("messages", "tokens", "summarised", "due"),
    [
        (29, 3_500, 0, False),
        (30, 0, 0, True),
        (16, 3_501, 0, True),
        (15, 9_000, 0, False),
        (49, 9_000, 30, False),
        (50, 0, 30, True),
    ],
)
def test_when_a_conversation_is_summarised(messages, tokens, summarised, due) -> None:
    """30 messages or 3,500 tokens, again every 20, the newest 15 kept."""
    assert SummaryTriggers().is_due(messages=messages, tokens=tokens, summarized=summarised) is due
