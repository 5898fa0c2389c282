"""Who said what in a recorded turn whose messages carry names. Knows messages and sections; invents no name."""

from collections.abc import Mapping, Sequence

from pandora_dagster.contracts.conversations import Message
from pandora_dagster.contracts.turns import Turn
from pandora_dagster.text.conversations import read_message_lines
from pandora_dagster.text.recorded_context import message_speaker, attributed_text

MESSAGES = "messages.jsonl"


def speakers(turn: Turn) -> tuple[str, ...]:
    """The names under which messages of a recorded turn stand, in order, each once."""
    return tuple(dict.fromkeys(name for m in _messages(turn) if (name := message_speaker(m))))


def with_speaker_names(turn: Turn, bodies: Mapping[int, str]) -> dict[int, str]:
    """`bodies` of a turn's sections, with `Name: ` before each paragraph of prose in 0 and 5 whose message has a name."""
    messages = _messages(turn)
    if not any(message_speaker(m) for m in messages):
        return dict(bodies)
    said = {0: _attributed_messages(messages[:1]), 5: _attributed_messages([m for m in messages if m["role"] == "assistant"])}
    return {n: said.get(n) or body for n, body in bodies.items()}


def _messages(turn: Turn) -> tuple[Message, ...]:
    lines = turn.files.get(MESSAGES, "") if turn.manifest.recorded else ""
    return read_message_lines(lines, where=f"{turn.key}: {MESSAGES}") if '"name"' in lines else ()


def _attributed_messages(messages: Sequence[Message]) -> str:
    return "\n\n".join(text for m in messages if (text := attributed_text(m)))
