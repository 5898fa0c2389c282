"""A transcript as messages and what they say: prose, calls, results. Knows the rendering of BENCHMARKS and its own output.

`user: ...`, `assistant: ...` (calls behind it as a JSON list of `{name, arguments}`), `tool NAME: ...`; JSON lines of
messages in OpenAI form are read too.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pandora_dagster.compression.read.json_parts import is_list, is_object, json_parts

ROLE_LINE = re.compile(r"^(user|assistant|tool|system)(?: ([\w.\-]+))?: ?", re.MULTILINE)
_TALK_LINE = re.compile(r"^(User|USER|Human|HUMAN|Assistant|ASSISTANT|AI|System|SYSTEM|Tool|TOOL)(?: ([\w.\-]+))?: ?", re.MULTILINE)
_ROLE_OF = {"human": "user", "ai": "assistant"}
_ALTERNATIONS = 2
_CALL_LINE = re.compile(r"^call ([\w.\-]+) ?(.*)$")
_FENCE_MARK = re.compile(r"\s*(?:`{3,}|~{3,})\w*\s*")
"""What stands around a JSON value in Markdown, and around nothing once the value is taken out."""
ANSWERS = " -> "
"""Stands between a call and what it gave back, where an earlier compression wrote them on one line."""


@dataclass(frozen=True, slots=True)
class Head:
    """A role line: the message begins at character `end`."""

    role: str
    tool: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Message:
    """One message; `role` is "" for text before the first one."""

    role: str
    tool: str
    body: str


@dataclass(frozen=True, slots=True)
class ProseMessage:
    """Prose of a message. `position` counts messages."""

    position: int
    role: str
    text: str
    tool: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call with its arguments; `text` where it was read back from an earlier compression."""

    position: int
    name: str
    arguments: Any
    text: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """A JSON value that stood in a message, and the call it answers."""

    position: int
    value: Any
    call: Call | None


def heads(text: str) -> tuple[Head, ...]:
    """Role lines in order: `user:`, or `User:`, `Human:`, `AI:` where a person and an assistant take turns in the text."""
    found = tuple(ROLE_LINE.finditer(text))
    if not any(h.group(1) in ("user", "assistant") for h in found):
        talk = tuple(_TALK_LINE.finditer(text))
        speakers = [role for h in talk if (role := _role(h)) in ("user", "assistant")]
        if sum(one != other for one, other in pairwise(speakers)) >= _ALTERNATIONS:
            found = talk
    return tuple(Head(_role(h), h.group(2) or "", h.start(), h.end()) for h in found)


def _role(head: re.Match[str]) -> str:
    role = head.group(1).lower()
    return _ROLE_OF.get(role, role)


def split_messages(text: str) -> tuple[Message, ...]:
    """Messages in order; the whole text is one message without role where no role line stands in it."""
    found = heads(text)
    if not found:
        return (Message("", "", text),)
    ends = [h.start for h in found[1:]] + [len(text)]
    before = text[: found[0].start].strip("\n")
    opening = (Message("", "", before),) if before.strip() else ()
    return opening + tuple(Message(h.role, h.tool, text[h.end : end].strip("\n")) for h, end in zip(found, ends, strict=True))


def is_transcript(text: str) -> bool:
    """Whether `text` begins with a person's message, or two role lines stand in it, one of a person or an assistant."""
    roles = [h.role for h in heads(text)[:3]]
    return text.startswith("user: ") or (len(roles) >= 2 and bool({"user", "assistant"} & set(roles)))


def contents(messages: tuple[Message, ...]) -> Iterator[ProseMessage | Call | Result]:
    """What the messages hold, in order. A result names the latest call of an earlier message."""
    call: Call | None = None
    pending: Call | None = None
    for position, message in enumerate(messages):
        call = pending or call
        for part in json_parts(message.body):
            if part.value is None:
                yield from _spoken(position, message, part.text)
            elif calls := _calls(position, part.value):
                pending = calls[-1]
                yield from calls
            else:
                yield Result(position, part.value, call)


def _spoken(position: int, message: Message, text: str) -> Iterator[ProseMessage | Call]:
    """Prose, with the `call ...` lines of an earlier compression taken out of it."""
    prose: list[str] = []
    for line in text.split("\n"):
        if found := _CALL_LINE.match(line):
            if prose:
                yield ProseMessage(position, message.role, "\n".join(prose), message.tool)
                prose = []
            call, _, answer = line.partition(ANSWERS)
            yield Call(position, found.group(1), None, call)
            if answer:
                yield ProseMessage(position, "tool", answer)
        elif line.strip() and not _FENCE_MARK.fullmatch(line):
            prose.append(line)
    if prose:
        yield ProseMessage(position, message.role, "\n".join(prose), message.tool)


def _calls(position: int, value: object) -> tuple[Call, ...]:
    """The calls in `value`, none where it is anything but `{name, arguments}` or a list of them."""
    items = value if is_list(value) else [value]
    calls = [item for item in items if is_object(item) and "name" in item and "arguments" in item]
    if len(calls) < len(items):
        return ()
    return tuple(Call(position, str(call["name"]), _arguments(call["arguments"])) for call in calls)


def _arguments(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value, parse_float=str, parse_int=str)
    except (ValueError, RecursionError):
        return {"arguments": value}


def rendered(text: str) -> str:
    """JSON lines of messages as a transcript; any other text as it is."""
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines or not all(line.startswith("{") and '"role"' in line for line in lines):
        return text
    try:
        found = [json.loads(line) for line in lines]
    except (ValueError, RecursionError):
        return text
    return "\n".join(_as_line(message) for message in found)


def _as_line(message: dict[str, Any]) -> str:
    content = str(message.get("content") or "")
    if message.get("role") == "tool":
        return f"tool {message.get('name') or ''}".strip() + f": {content}"
    calls = [call.get("function", call) for call in message.get("tool_calls") or ()]
    behind = " " + json.dumps(calls, ensure_ascii=False) if calls else ""
    return f"{message.get('role', 'user')}: {content}{behind}"
