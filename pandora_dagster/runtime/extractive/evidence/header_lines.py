"""The line formats of a pack's documents: heads, JSON lines, preference lines. A broken line is passed over."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pandora_dagster.documents.plain_json import PlainDataError, parse_json_object

_PREFERENCE = re.compile(r"^- ([^:\n]+): (.+?)(?: \(confidence [\d.]+(?:, turn (\d+))?\))?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TurnHeader:
    """One line of `turn_summaries`."""

    turn: int
    text: str
    topics: tuple[str, ...]
    session: str
    day: str = ""
    """The day of the turn, as an ISO date."""
    match: float | None = None
    """How well the index found that it matches, the best as 1; None where the index was not asked."""

    @property
    def words(self) -> str:
        return " ".join((self.text, *self.topics))


def split_at_heads(heads: Iterable[re.Match[str]], text: str) -> list[tuple[re.Match[str], str]]:
    """Each head of `text` with what follows it up to the next one."""
    found = list(heads)
    return [(head, text[head.end() : end]) for head, end in zip(found, [*(h.start() for h in found[1:]), len(text)], strict=False)]


def as_mapping(value: object) -> Mapping[str, Any]:
    """`value` where it is a JSON object, else {}."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def as_list(value: object) -> list[Any]:
    """`value` where it is a JSON list, else []."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_number(value: object) -> float | None:
    """`value` as a number, None where it is none."""
    try:
        return float(str(value))
    except ValueError:
        return None


def json_lines(text: str) -> list[Mapping[str, Any]]:
    """The JSON objects of `text`, one a line; other lines are not read. Only a line feed ends one: other breaks are part of a value."""
    read = (json_object(line) for line in text.split("\n") if line.lstrip().startswith("{"))
    return [value for value in read if value]


def json_object(text: str) -> Mapping[str, Any]:
    """The one JSON object that `text` is, {} where it is none."""
    try:
        return parse_json_object(text)
    except PlainDataError:
        return {}


def json_value(text: str) -> object:
    """The JSON object or list that `text` is, None where it is none; numbers as strings as they are written."""
    try:
        value = json.loads(text, parse_float=str, parse_int=str)
    except (ValueError, RecursionError):
        return None
    return cast("object", value) if isinstance(value, dict | list) else None


def read_reference(analysis: str) -> tuple[str, int | None]:
    """Title and source turn of the content reference in a `query_analysis.json`; "" and None where there is none."""
    reference = as_mapping(json_object(analysis).get("content_reference"))
    turn = reference.get("source_turn")
    return str(reference.get("title") or ""), turn if isinstance(turn, int) else None


def read_summaries(text: str) -> list[TurnHeader]:
    """`turn_summaries`, oldest first whatever order they came in."""
    lines = [line for line in json_lines(text) if isinstance(line.get("turn_id"), int)]
    read = (
        TurnHeader(
            line["turn_id"],
            str(line.get("summary") or ""),
            tuple(map(str, as_list(line.get("topics")))),
            str(line.get("session") or ""),
            str(line.get("timestamp") or "")[:10],
            as_number(line.get("match")),
        )
        for line in lines
    )
    return sorted(read, key=lambda s: s.turn)


def read_preferences(text: str) -> list[tuple[int, str, str]]:
    """Turn, key and value of lines `- key: value (confidence 0.90, turn 808)`, the oldest first."""
    return sorted((int(turn or 0), key.strip(), value) for key, value, turn in _PREFERENCE.findall(text))
