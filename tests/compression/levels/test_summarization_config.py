"""The length of a narrative: a tenth of what it sums up, within 003's limit."""

import pytest

from pandora_dagster.compression.levels.summarization_config import SummarizationConfig


@pytest.mark.parametrize(("tokens", "target"), [(4_000, 200), (2_000, 200), (1_300, 130), (400, 80), (0, 80)])
def test_a_narrative_is_a_tenth_of_its_turns(tokens: int, target: int) -> None:
    """At most the limit, and never less than a few sentences need."""
    assert SummarizationConfig().l2_target(tokens) == target


def test_the_limit_holds_for_the_shortest_narrative() -> None:
    """A configured limit below the tokens of a few sentences is the target."""
    assert SummarizationConfig(l2_max_summary_tokens=50).l2_target(100) == 50
