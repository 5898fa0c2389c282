"""Tools, errors and limits of a turn, read from its own sections."""

import pytest

from pandora_dagster.documents.recorded_context import render_recorded_context
from pandora_dagster.documents.sections import ContextDocument, new_context
from pandora_dagster.documents.turn_entry import turn_trace


def call(number, name, result):
    made = {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": "{}"}}
    return [{"role": "assistant", "content": None, "tool_calls": [made]}, {"role": "tool", "tool_call_id": f"c{number}", "content": result}]


def test_a_recorded_turn_names_its_tools_and_their_errors():
    """Each tool once, in order; an error with its tool."""
    results = [*call(1, "get_user", '{"id": 3}'), *call(2, "change_flight", "Error: fare cannot be changed"), *call(3, "get_user", "ok")]
    context = render_recorded_context([{"role": "user", "content": "Please move it."}, *results])
    trace = turn_trace(ContextDocument.parse(context))
    assert trace["tools"] == ["get_user", "change_flight"] and trace["errors"] == ["change_flight: Error: fare cannot be changed"]
    assert "limits" not in trace


def test_a_live_turn_names_what_its_status_lines_say():
    """A failed call says so in its status line; its text is the error, or its name where that is too long to be shown whole."""
    body = (
        "### Result 1: doc.search\n\n**Status:** error\n**Arguments:** `{}`\n\nno such index: it is locked\n\n"
        "### Result 2: doc.list\n\n**Status:** error\n**Arguments:** `{}`\n\n" + "a very long message " * 40 + "\n\n"
        "### Result 3: memory.query\n\n**Status:** success [1]\n**Arguments:** `{}`\n\nThe error of 2 May was solved."
    )
    trace = turn_trace(new_context("q").with_section(4, body))
    assert trace == {
        "tools": ["doc.search", "doc.list", "memory.query"],
        "errors": ["doc.search: no such index: it is locked", "doc.list failed"],
    }


@pytest.mark.parametrize(
    ("query", "limits"),
    [
        (
            "Hello! My budget is 700 euros, and it must not be wider than 140 cm.",
            ["My budget is 700 euros, and it must not be wider than 140 cm."],
        ),
        ("You must never call before nine.", ["You must never call before nine."]),
        ("Does it cost 700 euros?", []),
        ("Which desk did we order?", []),
        ("Thank you!", []),
    ],
)
def test_limits_are_statements_of_the_user_that_bind(query, limits):
    """With a value or with words of force; a question sets no limit."""
    assert turn_trace(new_context(query)).get("limits", []) == limits
