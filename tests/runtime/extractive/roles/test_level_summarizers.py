"""Roles of the levels: verbatim summaries and digests without a model."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jsonschema
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pandora_dagster.compression.levels.level_check import check_level_digest
from pandora_dagster.contracts.model_calls import Part, PromptPack
from pandora_dagster.recipes.recipe_loader import open_recipes
from pandora_dagster.runtime.extractive.roles.level_summarizers import build_digest, summarize_session
from pandora_dagster.runtime.token_counter import TokenCounter
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
        "progress_toward_goal": "The person asked to move flight AB123 to 3 May.\nIt is 80% done.",
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


def test_a_session_summary_keeps_limits_decisions_and_errors_first(counter: TokenCounter) -> None:
    """Whole statements in their order, without number, day and keywords; what is left of the tokens is used; tools are named once."""
    entries = "\n".join(
        [
            "[1] 2026-01-04 (desk): Looked at several desks in the town.",
            "    Limit: My budget is 700 euros, and the desk must not be wider than 140 cm.",
            "    Tools used: doc.search, place_order",
            *(f"[{n}] 2026-01-05 (shop): The shop number {n} showed a desk of oak." for n in range(2, 9)),
            "[9] 2026-01-06 (order): Which one? They agreed to order the Alda.",
            "    Tools used: place_order",
            "    Error: place_order: card declined",
        ]
    )
    summary = str(summarize_session(with_limit(make_pack("session_summarizer", "q", {"entries": entries}), 80), counter))
    lines = summary.splitlines()
    assert lines[0] == "Looked at several desks in the town." and any("They agreed to order the Alda." in line for line in lines)
    assert lines[1] == "Limit: My budget is 700 euros, and the desk must not be wider than 140 cm."
    assert lines[-2:] == ["Error: place_order: card declined", "Tools used: doc.search, place_order"]
    assert 60 < counter.count(summary) <= 80


def test_courtesies_and_marks_are_in_no_level(counter: TokenCounter) -> None:
    """Neither a narrative nor a digest has them; an entry of nothing else leaves its day."""
    text = "[1] We ordered the desk. Merci beaucoup pour votre aide!\n[2] ###STOP###\n[3] I found nothing about this in the sources. 2."
    assert summarize_session(make_pack("session_summarizer", "q", {"entries": text}), counter) == "We ordered the desk."
    digest = json.loads(str(build_digest(make_pack("digest_builder", "q", {"summaries": text}), counter)))
    assert digest["progress_toward_goal"] == "We ordered the desk."
    only = make_pack("session_summarizer", "q", {"entries": "[1] 2026-01-04: ###STOP###"})
    assert summarize_session(only, counter) == "2026-01-04:"


def test_a_digest_reads_what_the_entries_carry(ask: Ask) -> None:
    """Limits among the decisions; tools and errors by their lines; an answered question is not open."""
    lines = [
        "We looked at two. Which is cheaper? The Alda is.",
        "Limit: At most 300 euros.",
        "Tools used: doc.search, buy",
        "Error: buy: declined",
    ]
    found = ask("digest_builder", "digest", {"summaries": f"[1] {lines[0]}\n    " + "\n    ".join(lines[1:])})
    assert found["key_decisions"] == ["Limit: At most 300 euros."] and found["tools_used"] == ["doc.search", "buy"]
    assert found["errors_encountered"] == ["buy: declined"] and found["open_questions"] == []
    assert found["progress_toward_goal"] == "We looked at two.\nThe Alda is."


def test_the_progress_of_labelled_statements_is_supported(ask: Ask) -> None:
    """The label of the first statement is not read as that of the newest one."""
    lines = [f"Offer {n}: the oak desk from Miller costs ${400 + 5 * n} and does not arrive before 2026-01-1{n}." for n in range(3)]
    found = ask("digest_builder", "digest", {"summaries": "[1] " + "\n    ".join(lines)})
    assert found["progress_toward_goal"] == f"{lines[0]}\n{lines[2]}"
    assert check_level_digest(found, ["\n".join(lines)])[1:] == ((), ())
