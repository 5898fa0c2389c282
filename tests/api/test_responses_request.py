"""What a request of the Responses API asks."""

import json
from typing import Any

import pytest

from pandora_dagster.api.api_errors import ApiError
from pandora_dagster.api.responses_format import parse_responses_request
from pandora_dagster.contracts.ids import TurnKey, user_id

ANN = user_id("ann")


def asked(given: Any = "Which desk?", *, headers: dict[str, str] | None = None, **more: Any) -> Any:
    return parse_responses_request(json.dumps({"model": "pandora", "input": given, **more}).encode(), headers or {}, user=ANN)


def test_a_text_or_messages_ask() -> None:
    """Instructions come before the messages, as a system message does; parts of text are joined."""
    assert asked().query == "Which desk?" and asked().earlier == ()
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "We ordered"}, {"type": "input_text", "text": "a desk."}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Noted.", "annotations": []}]},
        {"role": "user", "content": "Which desk?"},
    ]
    got = asked(items, instructions="Be brief.", max_output_tokens=90, metadata={"a": "b"}, user="bob", temperature=1)
    assert got.query == "Which desk?" and [(m["role"], m["content"]) for m in got.earlier] == [
        ("system", "Be brief."),
        ("user", "We ordered\na desk."),
        ("assistant", "Noted."),
    ]
    assert (got.user, got.limits.max_tokens, got.metadata, got.ignored) == ("bob", 90, {"a": "b"}, ("temperature",))


def test_a_response_is_named_by_its_turn() -> None:
    assert asked(previous_response_id="resp_ann:turn_000002").previous == TurnKey(ANN, 2)


@pytest.mark.parametrize(
    ("given", "more", "param"),
    [
        ([], {}, "input"),
        ([{"role": "assistant", "content": "so"}], {}, "input"),
        ([{"type": "function_call_output", "output": "x"}], {}, "input[0].type"),
        ([{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}], {}, "input[0].content"),
        ("hello", {"previous_response_id": "../etc"}, "previous_response_id"),
        ("hello", {"store": False}, "store"),
        ("hello", {"tools": [{"type": "web_search"}]}, "tools"),
        ("hello", {"background": True}, "background"),
        ("hello", {"conversation": "c"}, "conversation"),
        ("hello", {"text": {"format": {"type": "json_schema"}}}, "text.format"),
        ("hello", {"max_output_tokens": -1}, "max_output_tokens"),
    ],
)
def test_what_cannot_be_answered_names_its_field(given: Any, more: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as refused:
        asked(given, **more)
    assert refused.value.status == 400 and refused.value.body["error"]["param"] == param
