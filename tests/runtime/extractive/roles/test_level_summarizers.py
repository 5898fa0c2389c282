"""Roles of the levels: verbatim summaries and digests without a model."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jsonschema
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pandora_dagster.contracts.model_calls import Part, PromptPack
from pandora_dagster.documents.token_counter import TokenCounter
from pandora_dagster.recipes.recipe_loader import open_recipes
from pandora_dagster.runtime.extractive.roles.level_summarizers import build_digest, summarize_session
from tests.runtime.extractive.packs import make_pack

Ask = Callable[..., Any]
SUMMARIES = "\n".join(
    [
        "[1] The person asked to move flight AB123 to 3 May. The tool change_flight failed with error 402 for mia_li_3668.",
        "[2] They agreed to a new ticket for $180, bought with book_ticket(). Which seat do they want?",
        "[3] The ticket was issued on 2 May. It is 80% done.",
    ]
)


def with_limit(pack: PromptPack, tokens: int) -> PromptPack:
    """The pack with the variable that the recipes of the levels show."""
    return replace(pack, parts=(Part("variables", "variables", f"max_tokens: {tokens}", 0), *pack.parts))


def test_a_digest_is_made_of_the_summaries_sentences(ask: Ask) -> None:
    """Decisions, tools, errors, open questions and the newest sentence, each whole and where it belongs."""
    assert ask("digest_builder", "digest", {"task_context": "Move the flight", "summaries": SUMMARIES}) == {
        "key_decisions": ["They agreed to a new ticket for $180, bought with book_ticket()."],
        "tools_used": ["change_flight", "book_ticket"],
        "errors_encountered": ["The tool change_flight failed with error 402 for mia_li_3668."],
        "progress_toward_goal": "It is 80% done.",
        "open_questions": ["Which seat do they want?"],
    }


def test_no_summaries_make_an_empty_digest(ask: Ask) -> None:
    """Nothing is invented where nothing is given."""
    assert not any(ask("digest_builder", "digest", {"summaries": ""}).values())


@given(st.lists(st.sampled_from([*SUMMARIES.splitlines(), "They chose x_y and decided again. " * 3, "It failed. Why?"]), max_size=60))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_digest_passes_its_recipe(counter: TokenCounter, lines: list[str]) -> None:
    """Any number of summaries gives an answer that the recipe's schema takes, within the tokens asked for."""
    text = "\n".join(f"[{n}] {line} ({n})." for n, line in enumerate(lines, start=1))
    answer = str(build_digest(with_limit(make_pack("digest_builder", "q", {"summaries": text}), 120), counter))
    jsonschema.validate(json.loads(answer), dict(open_recipes().load("memory/l3_digest").recipe.output_schema or {}))
    assert counter.count(answer) <= 120


def test_a_session_summary_keeps_whole_lines(counter: TokenCounter) -> None:
    """Within the tokens asked for, verbatim and in order, facts before filler; short entries come back as they are."""
    entries = "\n".join([f"[{n}] Well, let us see what comes next here." for n in range(1, 30)] + ["[30] Order 7741 costs $1,299.00."])
    pack = with_limit(make_pack("session_summarizer", "q", {"entries": entries}), 60)
    summary = str(summarize_session(pack, counter))
    assert "[30] Order 7741 costs $1,299.00." in summary and set(summary.splitlines()) <= set(entries.splitlines())
    assert counter.count(summary) <= 60
    short = make_pack("session_summarizer", "q", {"entries": "[1] Order 7741 costs $1,299.00."})
    assert summarize_session(short, counter) == "[1] Order 7741 costs $1,299.00."
