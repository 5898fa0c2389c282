"""What a request asks, and what is informed of one that cannot be answered."""

import json
from typing import Any

import pytest

from pandora_dagster.api.api_errors import ApiError
from pandora_dagster.api.chat_format import parse_chat_request
from pandora_dagster.contracts.ids import user_id

ANN = user_id("ann")
PERSON = {"role": "user", "content": "Which desk?"}


def asked(messages: Any = (PERSON,), *, headers: dict[str, str] | None = None, **more: Any) -> Any:
    body = {"model": "pandora", "messages": list(messages) if isinstance(messages, tuple) else messages, **more}
    return parse_chat_request(json.dumps(body).encode(), headers or {}, user=ANN)


def test_the_last_message_is_the_question() -> None:
    """What stands before it is kept as it came; model and headers say the mode, the user and the session."""
    earlier = (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi", "name": "a"},
        {"role": "assistant", "content": "Yes?"},
    )
    headers = {"X-Pandora-User": "bea", "X-Pandora-Session": "s-1"}
    got = asked(
        (*earlier, PERSON), headers=headers, model="pandora-code", stream=True, stream_options={"include_usage": True}, temperature=2
    )
    assert (got.query, got.user, got.session, got.mode, got.earlier) == ("Which desk?", "bea", "s-1", "code", earlier)
    assert got.stream and got.include_usage


def test_text_may_come_in_parts() -> None:
    assert (
        asked(({"role": "user", "content": [{"type": "text", "text": "Which"}, {"type": "text", "text": "desk?"}]},)).query
        == "Which\ndesk?"
    )


def test_a_client_without_sessions_has_one_for_each_opening() -> None:
    """The same conversation going on is the same session; another beginning is another one."""
    first = asked()
    later = asked((PERSON, {"role": "assistant", "content": "Oak."}, {"role": "user", "content": "And the chair?"}))
    other = asked(({"role": "system", "content": "x"}, PERSON))
    assert first.session == later.session != other.session and first.user == ANN


@pytest.mark.parametrize(
    ("more", "status", "fields"),
    [
        ({"messages": []}, 400, "messages: List should have at least 1 item"),
        ({"messages": "hello"}, 400, "messages: Input should be a valid list"),
        ({"messages": [PERSON, {"role": "assistant", "content": "so"}]}, 400, "the last one has role 'assistant'"),
        ({"messages": [{"role": "user", "content": "  "}]}, 400, "the last one is empty"),
        ({"messages": [{"role": "user", "content": None}]}, 400, "expected a string or parts of type text"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}, 400, "expected a string or parts"),
        ({"model": "gpt-9"}, 404, "expected one of pandora, pandora-code"),
        ({"tools": [{"type": "function"}]}, 400, "tools: not supported"),
        ({"n": 3}, 400, "n: expected 1"),
        ({"response_format": {"type": "json_object"}}, 400, "response_format: expected text"),
        ({"headers": {"X-Pandora-User": "../../etc"}}, 400, "user id '../../etc': expected"),
        ({"headers": {"X-Pandora-Session": "a/b"}}, 400, "session id 'a/b': expected"),
    ],
)
def test_what_cannot_be_answered_is_reported(more: dict[str, Any], status: int, fields: str) -> None:
    """In OpenAI's form, with the field that is wrong."""
    with pytest.raises(ApiError) as refused:
        asked(**more)
    assert refused.value.status == status and fields in refused.value.body["error"]["message"]
    assert set(refused.value.body["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b"[" * 100_000, b'{"model": 1}'])
def test_a_body_that_is_no_request_is_refused(body: bytes) -> None:
    with pytest.raises(ApiError) as refused:
        parse_chat_request(body, {}, user=ANN)
    assert refused.value.status == 400
