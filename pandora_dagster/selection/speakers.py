"""Who said what in a recorded turn whose messages carry names. Knows messages and sections; invents no name."""

import re
from collections.abc import Mapping, Sequence

from pandora_dagster.contracts.conversations import Message
from pandora_dagster.contracts.turns import Turn
from pandora_dagster.text.conversations import read_message_lines, words_of

MESSAGES = "messages.jsonl"
_PARAGRAPH = re.compile(r"\n{2,}")
_NAME = re.compile(r"[^\W\d_][\w .'-]{0,30}")
_NO_PROSE = re.compile(r"[|`~#{\[*+>-]|\d{1,3}[.)] ")
"""How a table, code, a heading, a list or JSON begins: a name before it would change what it is."""


def named(turn: Turn, bodies: Mapping[int, str]) -> dict[int, str]:
    """`bodies` of a turn's sections with `Name: ` before each paragraph of prose in 0 and 5, where its message has a name."""
    messages = _messages(turn)
    if not any(_name(m) for m in messages):
        return dict(bodies)
    spoken = {0: _said(messages[:1]), 5: _said([m for m in messages if m["role"] == "assistant"])}
    return {n: spoken.get(n) or body for n, body in bodies.items()}


def speakers(turn: Turn) -> tuple[str, ...]:
    """The names under which messages of a recorded turn stand, in order, each once."""
    return tuple(dict.fromkeys(name for m in _messages(turn) if (name := _name(m))))


def _messages(turn: Turn) -> tuple[Message, ...]:
    lines = turn.files.get(MESSAGES, "") if turn.manifest.recorded else ""
    return read_message_lines(lines, where=f"{turn.key}: {MESSAGES}") if '"name"' in lines else ()


def _name(message: Message) -> str:
    """The name of a person's or assistant's message; a tool's is no speaker."""
    name = message.get("name")
    spoken = message["role"] in ("user", "assistant") and isinstance(name, str) and _NAME.fullmatch(name)
    return str(name) if spoken else ""


def _said(messages: Sequence[Message]) -> str:
    return "\n\n".join(_with_name(_name(m), text) for m in messages if (text := words_of(m)))


def _with_name(name: str, text: str) -> str:
    if not name:
        return text
    return "\n\n".join(p if _NO_PROSE.match(p.lstrip()) or not p.strip() else f"{name}: {p.lstrip()}" for p in _PARAGRAPH.split(text))
