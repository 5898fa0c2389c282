"""Role `summarizer`: what stands in the turn index."""

import pytest

from pandora_dagster.contracts.phase_outputs import TurnSummary
from tests.runtime.extractive.packs import context


def test_words_of_the_turn(ask) -> None:
    """Query and first sentence of the answer, verbatim and without marks; key words that stand in them."""
    body = context("Which lamp is best for the hall?", s5="- The Nordlys lamp is best [1]. It is blue.")
    summary = TurnSummary.model_validate(ask("summarizer", "Which lamp is best for the hall?", {"context.md": body}))
    assert summary.summary == "Which lamp is best for the hall? The Nordlys lamp is best."
    assert summary.topics[:3] == ("lamp", "best", "hall")
    assert (summary.intent, summary.has_research, summary.research_topic) == ("query", False, None)


def test_research_is_told_by_the_tool(ask) -> None:
    """Only a result of internet.research makes a turn a research turn; found text that speaks of it does not."""
    done = "### Result 1: internet.research\n\n**Status:** success\n\nTwelve lamps found."
    with_tool = ask("summarizer", "cheap lamps", {"context.md": context("cheap lamps", s4=done, s5="Twelve lamps found.")})
    assert (with_tool["has_research"], with_tool["research_topic"]) == (True, "commerce.lamps")
    spoken = ask("summarizer", "cheap lamps", {"context.md": context("cheap lamps", s4="internet.research was mentioned", s5="None.")})
    assert not spoken["has_research"]


@pytest.mark.parametrize(("query", "topic"), [("günstige Möbel", "query.gunstige"), ("你好，世界", "query"), ("lamp", "query.lamp")])
def test_research_has_a_topic_id_whatever_the_words(ask, query: str, topic: str) -> None:
    """Small plain letters, as the research index names its topics."""
    done = "### Result 1: internet.research\n\n**Status:** success\n\nFound."
    answer = ask("summarizer", query, {"context.md": context(query, s4=done, s5="")})
    assert TurnSummary.model_validate(answer).research_topic == topic


@pytest.mark.parametrize("query", ["hi", "?", "", "42", "a b c", "word " * 3000, "你好，世界", "x" * 5000])
def test_any_turn_has_a_summary_and_two_topics(ask, query: str) -> None:
    """Odd and huge queries still give a valid summary within the limit."""
    summary = TurnSummary.model_validate(ask("summarizer", query, {"context.md": context(query, s5="Hello!")}, limit=400))
    assert 2 <= len(summary.topics) <= 5
