"""What a request asks, and what is informed of one that cannot be answered."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pandora_dagster.api import chat_format, responses_format
from pandora_dagster.api.api_errors import ApiError
from pandora_dagster.api.chat_format import parse_chat_request
from pandora_dagster.api.turn_request import AnswerLimits
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


def test_a_request_may_name_no_session() -> None:
    """Then the server chooses it."""
    assert asked().session is None and asked().user == ANN


def test_the_user_is_named_by_the_header_or_by_the_field() -> None:
    """OpenAI's own field, which every client can send, is as good as the header; both must say the same."""
    assert asked(user="bob").user == "bob" == asked(headers={"X-Pandora-User": "bob"}).user
    assert asked(user="bob", headers={"X-Pandora-User": "bob"}).user == "bob" and asked(user="").user == ANN == asked(user=None).user
    for given in ({"user": "bob", "headers": {"X-Pandora-User": "ann"}}, {"user": "a/b"}, {"user": 7}, {"user": "\u00e9va"}):
        with pytest.raises(ApiError) as refused:
            asked(**given)
        assert refused.value.status == 400 and refused.value.body["error"]["param"] == "user"


def test_the_limits_of_an_answer() -> None:
    """One stop sequence or several; the smaller of both names of the limit."""
    assert asked(stop="END").limits == AnswerLimits(("END",)) and asked(stop=["a", "b"]).limits.stop == ("a", "b")
    assert asked(max_tokens=50).limits.max_tokens == 50 == asked(max_tokens=90, max_completion_tokens=50).limits.max_tokens
    assert asked(stop=None, max_tokens=None).limits == AnswerLimits()


def test_metadata_is_kept() -> None:
    assert asked(metadata={"ticket": "4711"}).metadata == {"ticket": "4711"} and asked(metadata=None).metadata == {}


def test_a_field_without_effect_is_named() -> None:
    """Also one that nobody knows; none is dropped without a word."""
    assert asked(temperature=0, seed=None, chat_id="x", tools=[]).ignored == ("chat_id", "temperature")


def test_the_page_lists_the_refused_fields() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/http-api.md").read_text()
    (row,) = [line for line in page.splitlines() if line.startswith("| refused fields |")]
    assert set(re.findall(r"`(\w+)`", row)) == {
        *chat_format.REFUSED,
        *responses_format.REFUSED,
        "n",
        "response_format",
        "modalities",
        "store",
    }


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
        ({"tools": [{"type": "function"}]}, 400, "tools: the tools of a client are not called"),
        ({"logprobs": True}, 400, "logprobs: an answer has no probabilities of tokens"),
        ({"n": 3}, 400, "n: 3: a turn has one answer: expected 1"),
        ({"response_format": {"type": "json_object"}}, 400, "response_format: an answer is text"),
        ({"stop": ["a"] * 5}, 400, "stop: expected a text that is not empty, or up to 4 of them"),
        ({"stop": ""}, 400, "stop: expected a text"),
        ({"max_tokens": 0}, 400, "max_tokens: Input should be greater than or equal to 1"),
        ({"max_tokens": "50"}, 400, "max_tokens: Input should be a valid integer"),
        ({"metadata": {"a": 1}}, 400, "metadata: expected an object of strings"),
        ({"metadata": {str(n): "" for n in range(17)}}, 400, "metadata: expected at most 16 pairs"),
        ({"metadata": {"a" * 65: ""}}, 400, "metadata: expected at most 16 pairs of a key of 64"),
        ({"metadata": {"a": "b" * 513}}, 400, "a value of 512 characters"),
        ({"stop": 5}, 400, "stop: expected a text"),
        ({"messages": ["hello"]}, 400, "messages[0]: Input should be a valid dictionary"),
        ({"messages": [{"role": "user", "content": "\ud800"}]}, 400, "half of a surrogate pair"),
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
