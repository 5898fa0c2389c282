"""JSON values of a text with their positions; broken JSON gives the values in it that are whole. Takes linear time, at any depth."""

import json
import re
from dataclasses import dataclass

_MAX_DEPTH = 64
"""Levels of nesting beyond which a text is no record."""
_TOKEN = re.compile(
    r'[ \t\r\n]*(?:(?P<sign>[{}\[\],:])|(?P<string>"(?:[^"\\\n]|\\.)*")'
    r"|(?P<bare>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])|true\b|false\b|null\b))"
)


@dataclass(slots=True)
class JsonValue:
    """A value and its position; `value` is the text of a scalar."""

    start: int
    end: int
    value: "str | dict[str, JsonValue] | list[JsonValue]"
    is_string: bool = False
    call: str = ""
    """The tool whose arguments it holds, where a name precedes it."""
    name_start: int = -1
    """Where the name of a member begins."""

    @property
    def start_with_name(self) -> int:
        """Where the value begins, or the name before it if it is a member."""
        return self.start if self.name_start < 0 else self.name_start


@dataclass(slots=True)
class _Container:
    value: JsonValue
    key: str = ""
    key_start: int = -1


def scan_json(text: str, start: int, limit: int = -1) -> tuple[JsonValue | None, list[JsonValue], int]:
    """Read the record (a JSON object) or list at `start`, up to `limit`.

    Returns it, or None where it is broken or a scalar; the whole records and lists inside a broken one; and where reading ended.
    """
    whole: list[JsonValue] = []
    stack: list[_Container] = []
    expected = "value"
    at, end = start, limit if limit >= 0 else len(text)
    while token := _TOKEN.match(text, at, end):
        sign, at = token["sign"], token.end()
        if sign in ("{", "[") and expected in ("value", "value or end") and len(stack) < _MAX_DEPTH:
            stack.append(_Container(JsonValue(at - 1, at, {} if sign == "{" else [])))
            expected = "key or end" if sign == "{" else "value or end"
        elif sign in ("}", "]") and expected.endswith("end") and (sign == "}") == isinstance(stack[-1].value.value, dict):
            closed = stack.pop().value
            closed.end = at
            if not stack:
                return closed, [], at
            if not _put(stack[-1], closed):
                break
            while whole and whole[-1].start > closed.start:
                whole.pop()
            whole.append(closed)
            expected = "comma or end"
        elif sign == "," and expected == "comma or end":
            expected = "key" if isinstance(stack[-1].value.value, dict) else "value"
        elif sign == ":" and expected == "colon":
            expected = "value"
        elif token["string"] and expected in ("key", "key or end"):
            stack[-1].key, stack[-1].key_start = _decoded(token["string"]), token.start("string")
            expected = "colon"
        elif stack and (token["string"] or token["bare"]) and expected.startswith("value"):
            literal, is_string = token["string"] or token["bare"], bool(token["string"])
            content = _decoded(literal) if is_string else literal
            if not _put(stack[-1], JsonValue(at - len(literal), at, content, is_string)):
                break
            expected = "comma or end"
        else:
            break
    return None, whole, at


def _put(container: _Container, member: JsonValue) -> bool:
    """Add a member to its container; False where its record has a member of this name already."""
    held = container.value.value
    if isinstance(held, list):
        held.append(member)
        return True
    if not isinstance(held, dict) or container.key in held:
        return False
    member.name_start = container.key_start
    held[container.key] = member
    return True


def _decoded(literal: str) -> str:
    try:
        return json.loads(literal, strict=False)
    except ValueError:
        return literal[1:-1]
