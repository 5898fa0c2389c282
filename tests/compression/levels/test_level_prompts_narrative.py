"""Level 2's prompts and answers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.compression.levels.level_prompts import L2Summarizer

SUMMARIZER = L2Summarizer()


@pytest.mark.parametrize(
    ("response", "summary"),
    [
        ("Here is a summary: It works.", "It works."),
        ("Here is a summary:\n\nIt works.", "It works."),
        ("Here's the concise summary of the entries: It works.", "It works."),
        ("Sure! Here is the summary:\nIt works.", "It works."),
        ("Summary: It works.", "It works."),
        ("SUMMARY : It works.", "It works."),
        ("**Summary:** It works.", "It works."),
        ("## Summary\n\nIt works.", "It works."),
        ("## Summary: It works.", "It works."),
        ("The summary follows: It works.", "It works."),
        ("The summary is as follows:\nIt works.", "It works."),
        ("Summary: **Bold** stays.", "**Bold** stays."),
        ("Here is a summary:\nSummary: It works.", "It works."),
        ("Summary:\n```text\nIt works.\n```", "It works."),
        ("```\nIt works.\n```", "It works."),
        ("  It works.\n", "It works."),
        ("Summary:", ""),
        ("", ""),
        ("   \n", ""),
    ],
)
def test_preambles_go(response: str, summary: str) -> None:
    """What a chatty model says before its summary is not part of it (003 "parse_summary_response")."""
    assert SUMMARIZER.parse_summary_response(response) == summary


@pytest.mark.parametrize(
    "response",
    [
        "The summary of the meeting was sent to Ana: she agreed.",
        "Summary statistics failed: NaN in row 7.",
        "Sure of the price: $697.",
        "Okay was pressed twice; the form hung.",
        "Here is where it failed: line 7 of app.py.",
        "It works. Summary: nothing is left out.",
        "Run this:\n```sh\nls\n```",
        "```sh\nls\n```\nlists files, and\n```sh\npwd\n```",
    ],
)
def test_content_stays(response: str) -> None:
    """A summary that only looks like a preamble is kept whole."""
    assert SUMMARIZER.parse_summary_response(response) == response


@given(
    st.lists(
        st.sampled_from(["Summary:", "Here is a summary:", "```", "\n", "**", "# ", "It works. ", "the summary follows: "]), max_size=8
    )
)
@settings(max_examples=100)
def test_cleaning_twice_is_cleaning_once(pieces: list[str]) -> None:
    """A clean summary is clean, and nothing is added to an answer."""
    once = SUMMARIZER.parse_summary_response("".join(pieces))
    assert SUMMARIZER.parse_summary_response(once) == once and once in "".join(pieces)


def test_no_entries_no_prompt() -> None:
    """003 "Error Handling": empty in, empty out."""
    assert SUMMARIZER.build_summary_prompt([]) == "" and SUMMARIZER.build_batch_summary_prompt([]) == []


def test_a_prompt_says_how_long_the_summary_may_be() -> None:
    """200 tokens unless told otherwise; every entry stands in it whole, with its number."""
    prompt = SUMMARIZER.build_summary_prompt(["first " * 400, "second"])
    assert "at most 200 tokens" in prompt and "[1] " + "first " * 400 in prompt and "\n[2] second\n" in prompt


@pytest.mark.parametrize(("entries", "size", "batches"), [(5, 5, 1), (5, 2, 3), (6, 2, 3), (1, 9, 1), (3, 0, 3), (3, -4, 3)])
def test_batches(entries: int, size: int, batches: int) -> None:
    """As many prompts as batches; no entry is lost, whatever the size."""
    named = [f"entry-{n}-" for n in range(entries)]
    prompts = SUMMARIZER.build_batch_summary_prompt(named, batch_size=size)
    assert len(prompts) == batches
    assert [n for prompt in prompts for n in named if n in prompt] == named


@pytest.mark.parametrize(("original", "summary", "ratio"), [(1000, 100, 10.0), (90, 60, 1.5), (10, 0, 0.0), (10, -1, 0.0), (0, 5, 0.0)])
def test_compression_ratio(original: int, summary: int, ratio: float) -> None:
    """Original over summary; 0.0 where nothing was written."""
    assert SUMMARIZER.estimate_compression_ratio(original, summary) == ratio
