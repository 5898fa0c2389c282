"""tau-bench airline: does what a write call needs survive the compression of what stands before it?"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compression_tasks.literal import literal, plain_values, share, stands

WRITES = ("book_reservation", "cancel_reservation", "update_reservation_", "send_certificate")
_MESSAGE = re.compile(r"\n(?=(?:user|assistant|tool)[ :])")
Compressor = Callable[[str, int], str]


@dataclass(frozen=True, slots=True)
class WriteCall:
    """A write call, with the transcript before it and the values of it that occur there."""

    before: str
    values: tuple[object, ...]
    arguments: Any


def conversations(data: Path) -> list[list[dict[str, Any]]]:
    lines = (data / "tau_bench" / "airline_conversations.jsonl").read_text(encoding="utf-8").splitlines()
    return [[m for m in json.loads(line)["messages"] if m["role"] != "system"] for line in lines]


def as_line(message: dict[str, Any]) -> str:
    content = str(message.get("content") or "")
    if message["role"] == "tool":
        return f"tool {message.get('name', '')}: {content}"
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    return f"{message['role']}: {content}" + (" " + json.dumps(calls) if calls else "")


def transcript(messages: list[dict[str, Any]]) -> str:
    return "\n".join(as_line(m) for m in messages)


def writes(message: dict[str, Any]) -> Iterator[Any]:
    """Arguments of the write calls in a message."""
    for call in message.get("tool_calls") or ():
        if call["function"]["name"].startswith(WRITES):
            try:
                yield json.loads(call["function"]["arguments"])
            except ValueError:
                continue


def write_calls(data: Path) -> list[WriteCall]:
    found: list[WriteCall] = []
    for messages in conversations(data):
        for index, message in enumerate(messages):
            for arguments in writes(message):
                before = transcript(messages[:index])
                values = tuple(dict.fromkeys(str(v) for v in plain_values(arguments) if stands(v, before)))
                if values:
                    found.append(WriteCall(before, values, arguments))
    return found


def all_there(calls: list[WriteCall], compress: Compressor, target: int) -> float:
    """Share of calls all of whose values still stand."""
    kept = 0
    for call in calls:
        padded = f" {literal(compress(call.before, target))} "
        kept += all(f" {literal(v)} " in padded for v in call.values)
    return share(kept, len(calls))


def groups(call: WriteCall) -> list[list[str]]:
    """Flat objects inside list arguments, whose values stood in one message or in neighbours."""
    lists = [v for v in call.arguments.values() if isinstance(v, list)] if isinstance(call.arguments, dict) else []
    messages = [literal(m) for m in _MESSAGE.split(call.before)]
    windows = [f" {m} {messages[i - 1] if i else ''} " for i, m in enumerate(messages)]
    flat = [list(dict.fromkeys(literal(v) for v in plain_values(o))) for o in _flat_objects(lists)]
    return [g for g in flat if len(g) >= 2 and any(all(f" {v} " in w for v in g) for w in windows)]


def _flat_objects(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if not any(isinstance(v, dict | list) for v in value.values()):
            yield value
        for item in value.values():
            yield from _flat_objects(item)
    elif isinstance(value, list):
        for item in value:
            yield from _flat_objects(item)


def bound(calls: list[WriteCall], compress: Compressor, target: int, *, by_message: bool = False) -> float:
    """Share of calls for which every group stands on one line; a table row counts with its header."""
    asked = [(call, g) for call in calls if (g := groups(call))]
    kept = 0
    for call, wanted in asked:
        text = compress(call.before, target)
        lines = [f" {literal(m)} " for m in _MESSAGE.split(text)] if by_message else _lines_with_headers(text)
        kept += all(any(all(f" {v} " in line for v in group) for line in lines) for group in wanted)
    return share(kept, len(asked))


def _lines_with_headers(text: str) -> list[str]:
    header = ""
    found: list[str] = []
    for line in text.split("\n"):
        if line.startswith("#"):
            header = line
        else:
            found.append(f" {literal(line + ' ' + (header if '|' in line else ''))} ")
    return found


def rolling(data: Path, compress: Compressor, count: Callable[[str], int], *, high: int = 1_500, target: int = 1_000) -> float:
    """As `all_there`, where the memory is compressed to `target` each time it passes `high`."""
    kept = asked = 0
    for messages in conversations(data):
        memory = ""
        for index, message in enumerate(messages):
            for arguments in writes(message):
                before = transcript(messages[:index])
                values = [v for v in plain_values(arguments) if stands(v, before)]
                if values:
                    context = f" {literal(compress(memory, target))} "
                    asked += 1
                    kept += all(f" {literal(v)} " in context for v in values)
            memory += ("\n" if memory else "") + as_line(message)
            if count(memory) > high:
                memory = compress(memory, target)
    return share(kept, asked)
