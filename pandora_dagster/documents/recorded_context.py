"""context.md of a recorded (imported) turn: the user's words, tool calls with their results, the assistant's words, all verbatim."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pandora_dagster.contracts.user.conversations import Message
from pandora_dagster.documents.conversation_messages import INSTRUCTION_ROLES, message_text
from pandora_dagster.documents.markdown import code_fence
from pandora_dagster.documents.plain_json import PlainDataError, parse_json
from pandora_dagster.documents.sections import new_context

PREAMBLE_TITLE = "Before This Turn"
_PARAGRAPH = re.compile(r"\n{2,}")
_SPEAKER_NAME = re.compile(r"[^\W\d_][\w .'-]{0,30}")
_NOT_PROSE = re.compile(r"[|`~#{\[*+>-]|\d{1,3}[.)] ")
"""First characters of a table, code, a heading, a list or JSON: a name before them would change the meaning."""


def render_recorded_context(messages: Sequence[Message], *, preamble: Sequence[Message] = ()) -> str:
    """Render context.md with sections 0, 4 and 5, and section 2 where messages precede the first user message.

    `preamble` is given for the first turn only and is rendered with the speakers' names, which no other document of the turn contains.
    Its instructions are stored with the session: they are rules, not conversation.
    """
    document = new_context(message_text(messages[0]))
    if preamble_text := "\n\n".join(text for m in preamble if m["role"] not in INSTRUCTION_ROLES and (text := attributed_text(m))):
        document = document.with_section(2, f"### {PREAMBLE_TITLE}\n\n{preamble_text}")
    if results := tool_results(messages):
        document = document.with_section(4, "\n\n".join(results))
    if answer := recorded_answer(messages):
        document = document.with_section(5, answer)
    return document.render()


def recorded_answer(messages: Sequence[Message]) -> str:
    """The text of the assistant's messages of the turn, in order."""
    return _joined_text(m for m in messages if m["role"] == "assistant")


def message_speaker(message: Message) -> str:
    """The name in a user's or an assistant's message, "" without one; a tool is not a speaker."""
    name = message.get("name")
    return name if message["role"] in ("user", "assistant") and isinstance(name, str) and _SPEAKER_NAME.fullmatch(name) else ""


def attributed_text(message: Message) -> str:
    """The text of a message, with `Name: ` before each paragraph of prose where the message has a name."""
    name, text = message_speaker(message), message_text(message)
    if not name:
        return text
    return "\n\n".join(p if _NOT_PROSE.match(p.lstrip()) or not p.strip() else f"{name}: {p.lstrip()}" for p in _PARAGRAPH.split(text))


def tool_results(messages: Sequence[Message]) -> tuple[str, ...]:
    """One `### Result N: tool` per call with its arguments and result; then results whose call is in an earlier turn."""
    results = [m for m in messages if m["role"] == "tool"]
    calls: list[tuple[Mapping[str, Any], Message | None]] = []
    for message in messages:
        calls += [(call, _pop_result(results, call["id"])) for call in message.get("tool_calls") or ()]
    blocks = [
        _result_block(n, _tool_name(call, result), call["function"].get("arguments"), result) for n, (call, result) in enumerate(calls, 1)
    ]
    late_blocks = [_result_block(n, str(result.get("name", "tool")), None, result) for n, result in enumerate(results, len(blocks) + 1)]
    return (*blocks, *late_blocks)


def _joined_text(messages: Iterable[Message]) -> str:
    return "\n\n".join(text for m in messages if (text := message_text(m)))


def _pop_result(results: list[Message], call_id: str) -> Message | None:
    """Remove the result of a call from `results` and return it; None where it is not among them."""
    for index, message in enumerate(results):
        if message.get("tool_call_id") == call_id:
            return results.pop(index)
    return None


def _tool_name(call: Mapping[str, Any], result: Message | None) -> str:
    return " ".join(str(call["function"]["name"] or (result or {}).get("name", "tool")).split())


def _result_block(number: int, name: str, arguments: object, result: Message | None) -> str:
    parts = [f"### Result {number}: {name}"]
    if arguments is not None:
        parts.append(_arguments(arguments))
    parts.append("No result was recorded." if result is None else "Result:\n" + code_fence(message_text(result)))
    return "\n\n".join(parts)


def _arguments(arguments: object) -> str:
    """The arguments on one line as JSON; text that is not JSON verbatim in a fence."""
    try:
        value = parse_json(arguments) if isinstance(arguments, str) else arguments
    except PlainDataError:
        return "Arguments:\n" + code_fence(str(arguments))
    line = arguments if isinstance(arguments, str) and "\n" not in arguments else json.dumps(value, ensure_ascii=False)
    return f"Arguments: {line}"
