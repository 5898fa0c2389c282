"""Conversations: read, checked, split, joined."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.documents.conversation_messages import join_turns, message_lines, parse_conversation, read_message_lines, split_turns
from pandora_dagster.errors import ConversationError

_USER = {"role": "user", "content": "hello"}
_CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}
_RESULT = {"role": "tool", "tool_call_id": "c1", "content": "done"}


def _line(**fields: Any) -> str:
    return json.dumps({"id": "s1", "user_id": "u1", "created_at": "2024-05-15T15:00:00Z", "messages": [_USER], **fields})


def test_a_line_is_kept_value_for_value() -> None:
    """Unknown keys of a message and of the line stay as they are."""
    message = {"role": "user", "content": "hi", "id": "D1:1", "name": "Ann", "n": [1, 2.5, None, {"x": True}]}
    found = parse_conversation(_line(messages=[message], topic={"a": 1}), where="f:1")
    assert (found.messages, found.extra) == ((message,), {"topic": {"a": 1}})


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "f:1:2: not JSON: Expecting property name enclosed in double quotes, expected one JSON object"),
        (b'{"id": "a"\n', "f:1:11: not JSON: Expecting ',' delimiter, expected one JSON object"),
        ('{"id": "a"\r\n', "f:1:11: not JSON: Expecting ',' delimiter, expected one JSON object"),
        ("[]", "f:1: a list instead of an object, expected one JSON object"),
        ('{"a": NaN}', "f:1: NaN is not a JSON number"),
        ('{"a": 1e400}', "f:1: 1e400 is too large a number"),
        ("[" * 80 + "]" * 80, "f:1: nested deeper than 64 levels"),
        (b"\xff", "f:1: not UTF-8 at byte 0"),
        ("[" * 100_000, "f:1: nested deeper than 64 levels"),
        ('{"user_id": "u"}', "f:1: id: missing, expected the fields id, user_id, created_at, messages"),
        (_line(id=7), "f:1: id: a number, expected a string"),
        (_line(id="a\x00b"), "f:1: id: 'a\\x00b', expected 1 to 300 printable characters"),
        (_line(id=""), "f:1: id: '', expected 1 to 300 printable characters"),
        (_line(user_id="a/b"), "f:1: user id 'a/b': expected"),
        (_line(created_at="May"), "f:1: created_at: 'May', expected ISO 8601"),
        (_line(messages={}), "f:1: messages: an object, expected a list"),
        (_line(messages=[]), "f:1: messages: empty"),
        (_line(messages=["x"]), "f:1: message 1: a string, expected an object"),
        (
            _line(messages=[_USER, {"role": "robot"}]),
            "f:1: message 2: unknown role 'robot', expected one of system, developer, user, assistant, tool",
        ),
        (_line(messages=[{"role": ["user"]}]), "f:1: message 1: unknown role"),
        (_line(messages=[{"role": "user", "content": 5}]), "f:1: message 1: content: a number"),
        (_line(messages=[{"role": "user", "content": ["x"]}]), "f:1: message 1: content: a list"),
        (_line(messages=[_USER, _RESULT]), "f:1: message 2: tool result without its call: tool_call_id 'c1'"),
        (_line(messages=[_RESULT, _USER, _CALL]), "f:1: message 1: tool result without its call"),
        (_line(messages=[_USER, {"role": "tool", "tool_call_id": ["c1"]}]), "f:1: message 2: tool result without its call"),
        (_line(messages=[{"role": "assistant", "tool_calls": [{"id": "c"}]}]), "f:1: message 1: tool_calls: expected"),
        (_line(messages=[{"role": "user", "content": "\ud800"}]), "f:1: half of a surrogate pair"),
    ],
)
def test_a_fault_names_where_and_what(line: str | bytes, said: str) -> None:
    """Every broken line is refused with one sentence."""
    with pytest.raises(ConversationError) as error:
        parse_conversation(line, where="f:1")
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


def test_a_byte_order_mark_is_passed_over() -> None:
    """A file saved with a byte order mark is read."""
    assert parse_conversation(b"\xef\xbb\xbf" + _line().encode(), where="f:1").id == "s1"


def test_a_turn_starts_at_each_user_message() -> None:
    """What stands before the first user message is the preamble; consecutive user messages each start a turn."""
    system, answer = {"role": "system", "content": "rules"}, {"role": "assistant", "content": "ok"}
    preamble, turns = split_turns([system, answer, _USER, _CALL, _RESULT, answer, _USER, _USER, answer])
    assert preamble == (system, answer)
    assert [(len(t.messages), t.first_index) for t in turns] == [(4, 2), (1, 6), (2, 7)]


def test_a_conversation_without_a_user_message_is_all_preamble() -> None:
    """No turn is made up."""
    assert split_turns([{"role": "system", "content": "x"}]) == (({"role": "system", "content": "x"},), ())


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_MESSAGES = st.builds(
    lambda role, content, extra: {**extra, "role": role, "content": content},
    st.sampled_from(["system", "user", "assistant"]),
    st.none() | st.text(max_size=40),
    st.dictionaries(st.text(max_size=6).filter(lambda k: k not in {"role", "content", "tool_calls"}), _VALUES, max_size=2),
)


@given(st.lists(_MESSAGES, min_size=1, max_size=8))
@settings(max_examples=80)
def test_join_undoes_split_through_the_files(messages: list[dict[str, Any]]) -> None:
    """Any conversation comes back equal from its preamble and the message lines of its turns."""
    parsed = parse_conversation(_line(messages=messages), where="f:1").messages
    preamble, turns = split_turns(parsed)
    stored = [read_message_lines(message_lines(t.messages), where="m") for t in turns]
    assert list(join_turns(preamble, stored)) == messages
