"""context.md of a recorded turn: the person's words, tool calls with their results, the assistant's words.

Knows which message goes into which section; knows nothing of files. What a message says stands there verbatim.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pandora_dagster.contracts.user.conversations import Message
from pandora_dagster.documents.conversation_messages import message_text
from pandora_dagster.documents.markdown import code_fence
from pandora_dagster.documents.sections import new_context

GREETING_TITLE = "Before This Turn"
_PARAGRAPH = re.compile(r"\n{2,}")
_NAME = re.compile(r"[^\W\d_][\w .'-]{0,30}")
_NO_PROSE = re.compile(r"[|`~#{\[*+>-]|\d{1,3}[.)] ")
"""How a table, code, a heading, a list or JSON begins: a name before it would change what it is."""


def render_recorded_context(messages: Sequence[Message], *, preamble: Sequence[Message] = ()) -> str:
    """context.md with sections 0, 4 and 5, and 2 where something was said before the first user message.

    `preamble` is given for the first turn only, with the names of who spoke: nothing else in the turn's documents tells them.
    Its system messages stay with the session: they are rules, not talk.
    """
    document = new_context(message_text(messages[0]))
    if said := "\n\n".join(text for m in preamble if m["role"] != "system" and (text := attributed_text(m))):
        document = document.with_section(2, f"### {GREETING_TITLE}\n\n{said}")
    if results := tool_results(messages):
        document = document.with_section(4, "\n\n".join(results))
    if answer := recorded_answer(messages):
        document = document.with_section(5, answer)
    return document.render()


def recorded_answer(messages: Sequence[Message]) -> str:
    """All that the assistant said in the turn, in order."""
    return _joined_text(m for m in messages if m["role"] == "assistant")


def message_speaker(message: Message) -> str:
    """The name that a person's or an assistant's message carries, "" where it has none; a tool is no speaker."""
    name = message.get("name")
    return name if message["role"] in ("user", "assistant") and isinstance(name, str) and _NAME.fullmatch(name) else ""


def attributed_text(message: Message) -> str:
    """What a message says, with `Name: ` before each paragraph of prose where it carries a name."""
    name, text = message_speaker(message), message_text(message)
    if not name:
        return text
    return "\n\n".join(p if _NO_PROSE.match(p.lstrip()) or not p.strip() else f"{name}: {p.lstrip()}" for p in _PARAGRAPH.split(text))


def tool_results(messages: Sequence[Message]) -> tuple[str, ...]:
    """One `### Result N: tool` per call with its arguments and result; then results whose call stands in an earlier turn."""
    waiting = [m for m in messages if m["role"] == "tool"]
    calls: list[tuple[Mapping[str, Any], Message | None]] = []
    for message in messages:
        calls += [(call, _pop_result(waiting, call["id"])) for call in message.get("tool_calls") or ()]
    blocks = [
        _result_block(n, _tool_name(call, result), call["function"].get("arguments"), result) for n, (call, result) in enumerate(calls, 1)
    ]
    late = [_result_block(n, str(result.get("name", "tool")), None, result) for n, result in enumerate(waiting, len(blocks) + 1)]
    return (*blocks, *late)


def _joined_text(messages: Iterable[Message]) -> str:
    return "\n\n".join(text for m in messages if (text := message_text(m)))


def _pop_result(waiting: list[Message], call_id: str) -> Message | None:
    for place, message in enumerate(waiting):
        if message.get("tool_call_id") == call_id:
            return waiting.pop(place)
    return None


def _tool_name(call: Mapping[str, Any], result: Message | None) -> str:
    return " ".join(str(call["function"]["name"] or (result or {}).get("name", "tool")).split())


def _result_block(number: int, name: str, arguments: object, result: Message | None) -> str:
    parts = [f"### Result {number}: {name}"]
    if arguments is not None:
        parts.append(_arguments(arguments))
    parts.append("No result was recorded." if result is None else "Result:\n" + code_fence(message_text(result)))
    return "\n\n".join(parts)


def _arguments(given: object) -> str:
    """On one line as JSON; what is no JSON stands verbatim in a fence."""
    try:
        value: object = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        return "Arguments:\n" + code_fence(str(given))
    line = given if isinstance(given, str) and "\n" not in given else json.dumps(value, ensure_ascii=False)
    return f"Arguments: {line}"
