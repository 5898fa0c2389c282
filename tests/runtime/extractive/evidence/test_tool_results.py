"""Section 4 as the embedded runtime reads it: which tools ran, which failed, and what is cited for each."""

import pytest

from pandora_dagster.runtime.extractive.evidence.tool_results import ToolResult, read_results


def test_each_result_has_its_tool_and_the_source_of_its_status_line() -> None:
    """In their order; a status line of two sources has a first one and no only one."""
    section = "### Result 1: doc.search\n\nFound [3]\n\n### Result 2: `memory.query`\n\n- seat: aisle [1] [2]\n\nmore [4]"
    assert read_results(section) == [ToolResult("doc.search", True, "3", "3"), ToolResult("memory.query", True, "1", None)]


@pytest.mark.parametrize("status", ["**Error:** no such page", "Status: failed", "failure"])
def test_a_result_may_have_failed(status: str) -> None:
    assert read_results(f"### Result 1: doc.search\n\n{status}") == [ToolResult("doc.search", False, None, None)]


def test_a_heading_inside_a_found_text_is_no_result() -> None:
    """Only one that counts on is."""
    section = "### Result 1: doc.search\n\nFound [1]\n\n### Result 7: doc.search\n\nan older one\n\n### Result 2: memory.query\n\nseat [2]"
    assert [result.tool for result in read_results(section)] == ["doc.search", "memory.query"]
    assert read_results("Nothing was found.") == []
