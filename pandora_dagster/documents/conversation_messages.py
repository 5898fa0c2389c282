"""Conversations in OpenAI message format: a line of an import file read and checked, messages split into turns and written as JSON lines.

A line is one JSON object: `{"id": "c1", "user_id": "ann", "created_at": "2026-01-04T14:30:00Z", "messages": [{"role": "user", ...}]}`. The
values of messages are never changed.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.user.conversations import Conversation, Message, RecordedTurn
from pandora_dagster.documents.plain_json import PlainDataError, json_type, parse_json_object
from pandora_dagster.errors import BadIdError, ConversationError
from pandora_dagster.language.timestamps import format_timestamp, parse_timestamp

INSTRUCTION_ROLES = ("system", "developer")
"""Roles of instructions to the assistant: the same under both names."""
ROLES = (*INSTRUCTION_ROLES, "user", "assistant", "tool")
_TIME_FIELDS = ("created_at", "timestamp")
_REQUIRED_FIELDS = ("id", "user_id", "created_at", "messages")
_MAX_ID_CHARACTERS = 300
"""Characters of a conversation's id, which is never used as a path."""
_MAX_QUOTED_CHARACTERS = 60
"""Characters of a faulty value that an error quotes."""


def parse_conversation(line: str | bytes, *, where: str) -> Conversation:
    """One line of an import file; raises ConversationError that begins with `where`, e.g. `chats.jsonl:7`."""
    value = _json_object(line, where)
    for name in _REQUIRED_FIELDS:
        if name not in value:
            raise ConversationError(f"{where}: {name}: missing, expected the fields {', '.join(_REQUIRED_FIELDS)}")
    for name in _REQUIRED_FIELDS[:3]:
        if not isinstance(value[name], str):
            raise ConversationError(f"{where}: {name}: {json_type(value[name])}, expected a string")
    if not 0 < len(value["id"]) <= _MAX_ID_CHARACTERS or not value["id"].isprintable():
        raise ConversationError(
            f"{where}: id: {value['id'][:_MAX_QUOTED_CHARACTERS]!r}, expected 1 to {_MAX_ID_CHARACTERS} printable characters"
        )
    try:
        user_id(value["user_id"])
    except BadIdError as error:
        raise ConversationError(f"{where}: {error}") from error
    try:
        parse_timestamp(value["created_at"])
    except ValueError as error:
        raise ConversationError(
            f"{where}: created_at: {value['created_at'][:_MAX_QUOTED_CHARACTERS]!r}, expected ISO 8601, e.g. 2026-01-04T14:30:00Z"
        ) from error
    messages = _check_messages(value["messages"], where)
    extra = {name: item for name, item in value.items() if name not in _REQUIRED_FIELDS}
    return Conversation(value["id"], value["user_id"], value["created_at"], messages, extra)


def split_turns(messages: Sequence[Message]) -> tuple[tuple[Message, ...], tuple[RecordedTurn, ...]]:
    """The preamble, and one turn from each user message up to the next one."""
    starts = [i for i, message in enumerate(messages) if message["role"] == "user"]
    ends = [*starts[1:], len(messages)] if starts else []
    preamble = tuple(messages[: starts[0]] if starts else messages)
    return preamble, tuple(RecordedTurn(tuple(messages[s:e]), s) for s, e in zip(starts, ends, strict=True))


def join_turns(preamble: Sequence[Message], turns: Sequence[Sequence[Message]]) -> tuple[Message, ...]:
    """Undo `split_turns`, given the messages of each turn."""
    return (*preamble, *(message for turn in turns for message in turn))


def message_text(message: Message) -> str:
    """The text of a message: its content, or its text parts; a part of another kind is rendered as JSON."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(_part_text(part) for part in content)


def tool_call_lines(message: Message) -> tuple[str, ...]:
    """The tool calls of a message, each as `name arguments`; line breaks of the arguments are kept."""
    functions = (call["function"] for call in message.get("tool_calls") or ())
    return tuple(
        f"{f['name']} {a if isinstance(a := f.get('arguments', ''), str) else json.dumps(a, ensure_ascii=False)}" for f in functions
    )


def message_lines(messages: Sequence[Message]) -> str:
    """Render messages.jsonl: one message per line, values unchanged."""
    return "".join(json.dumps(m, ensure_ascii=False, allow_nan=False) + "\n" for m in messages)


def read_message_lines(text: str, *, where: str) -> tuple[Message, ...]:
    """Undo `message_lines`; raises ConversationError for a line that is not a message."""
    lines = text.split("\n")
    return tuple(_json_object(line, f"{where}:{number}") for number, line in enumerate(lines, 1) if line)


def _json_object(line: str | bytes, where: str) -> dict[str, Any]:
    """One JSON object with values that can be written again; raises ConversationError, whose place is `where:column`."""
    try:
        # without its line end: a fault after it would be in column 1 of a second line
        return parse_json_object(line.rstrip("\r\n") if isinstance(line, str) else line.rstrip(b"\r\n"))
    except PlainDataError as error:
        at = f":{error.column}" if error.column else ""
        raise ConversationError(f"{where}{at}: {error.reason}, expected one JSON object") from error


def _check_messages(value: object, where: str) -> tuple[Message, ...]:
    """The value as messages; raises ConversationError for the first faulty one."""
    if not isinstance(value, list):
        raise ConversationError(f"{where}: messages: {json_type(value)}, expected a list")
    if not value:
        raise ConversationError(f"{where}: messages: empty, expected at least one message")
    messages = cast("list[object]", value)
    call_ids: set[str] = set()
    for number, message in enumerate(messages, 1):
        _check_message(message, call_ids, f"{where}: message {number}")
    return tuple(cast("list[Message]", messages))


def _check_message(value: object, call_ids: set[str], where: str) -> None:
    """Check one message; `call_ids`: the tool calls of all messages so far, to which its own are added."""
    if not isinstance(value, dict):
        raise ConversationError(f"{where}: {json_type(value)}, expected an object")
    message = cast("dict[str, Any]", value)
    role = message.get("role")
    if role not in ROLES:
        raise ConversationError(f"{where}: unknown role {str(role)[:_MAX_QUOTED_CHARACTERS]!r}, expected one of {', '.join(ROLES)}")
    content: object = message.get("content")
    if not (content is None or isinstance(content, str) or (isinstance(content, list) and _is_part_list(cast("list[object]", content)))):
        raise ConversationError(
            f"{where}: content: {json_type(cast('object', content))}, expected a string, null or a list of parts with a type"
        )
    call_ids.update(call["id"] for call in _check_calls(message.get("tool_calls"), where))
    call_id = message.get("tool_call_id")
    if role == "tool" and (not isinstance(call_id, str) or call_id not in call_ids):
        raise ConversationError(
            f"{where}: tool result without its call: tool_call_id {str(call_id)[:_MAX_QUOTED_CHARACTERS]!r} names no earlier tool call"
        )


def _is_part_list(parts: list[object]) -> bool:
    return all(isinstance(p, dict) and isinstance(cast("dict[str, Any]", p).get("type"), str) for p in parts)


def _check_calls(value: object, where: str) -> list[dict[str, Any]]:
    if value is None:
        return []
    calls = cast("list[object]", value) if isinstance(value, list) else [value]
    for call in calls:
        function = cast("Mapping[str, Any]", call).get("function") if isinstance(call, dict) else None
        has_name = isinstance(function, dict) and isinstance(cast("dict[str, Any]", function).get("name"), str)
        if not has_name or not isinstance(cast("dict[str, Any]", call).get("id"), str):
            raise ConversationError(f"{where}: tool_calls: expected a list of objects with an id and a function that has a name")
    return cast("list[dict[str, Any]]", calls)


def _part_text(part: Mapping[str, Any]) -> str:
    text = part.get("text")
    return text if isinstance(text, str) else json.dumps(part, ensure_ascii=False)


def message_time(message: Message, default: str) -> str:
    """A message's own time if it has a readable one, else `default`, as an RFC 3339 timestamp."""
    for name in _TIME_FIELDS:
        if isinstance(value := message.get(name), str):
            try:
                return format_timestamp(parse_timestamp(value))
            except ValueError:
                continue
    return format_timestamp(parse_timestamp(default))
