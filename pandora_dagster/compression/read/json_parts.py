"""JSON values inside prose: where they stand and what they hold. Numbers stay as they were written."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeGuard

_OPENING = re.compile(r"[\[{]")
_DECODER = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)
_JSON_BEGINS = re.compile(r"\s*(?:\{\s*[\"}]|\[\s*[{\[\"])")
_WINDOW, _LONGEST_WORD = 4_000, 20
"""Characters that are decoded at once, and those at their end in which a word or a number may be cut in two."""
_SCANS = 6
"""Broken JSON is tried again at every bracket: at most this many times the text's length is read altogether."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a text: `value` is None for prose, else the decoded object or list; `text` is the piece as it stands."""

    start: int
    text: str
    value: Any = None


def json_parts(text: str) -> Iterator[Part]:
    """Prose and JSON values of `text`, in order. Lists of plain values count as prose; what does not parse does too."""
    at = last = 0
    left = _SCANS * len(text) + 10_000
    while left > 0 and (found := _OPENING.search(text, at)):
        start = found.start()
        try:
            value, read = _decoded(text, start)
        except json.JSONDecodeError as error:
            left -= max(error.pos, 1)
            at = start + 1
            continue
        except (ValueError, RecursionError):
            left -= len(text) - start
            at = start + 1
            continue
        left -= read
        at = end = start + read
        if not holds_objects(value):
            continue
        yield from _prose(text, last, start)
        yield Part(start, text[start:end], value)
        last = end
    yield from _prose(text, last, len(text))


def _decoded(text: str, start: int) -> tuple[Any, int]:
    """The JSON value that begins at a character, and how many it takes. Read in windows: an error costs as much as what it is found
    in, since the decoder counts its lines. Raises JSONDecodeError with the position counted from `start`."""
    size = _WINDOW
    while True:
        try:
            return _DECODER.raw_decode(text[start : start + size])
        except json.JSONDecodeError as error:
            is_cut = error.pos > size - _LONGEST_WORD or error.msg.startswith("Unterminated")
            if start + size >= len(text) or not is_cut:
                raise
        size *= 4


def broken_json_line(text: str) -> int | None:
    """The line, counted from 1, from which on a text that begins as JSON is none; None for JSON, JSON lines and other texts."""
    at = 0
    while begun := _JSON_BEGINS.match(text, at):
        try:
            _, at = _DECODER.raw_decode(text, begun.end() - len(begun.group().lstrip()))
        except json.JSONDecodeError as error:
            return text.count("\n", 0, error.pos) + 1
        except (ValueError, RecursionError):
            return None
    return None


def _prose(text: str, start: int, end: int) -> Iterator[Part]:
    if piece := text[start:end].strip():
        yield Part(text.index(piece[0], start), piece)


def holds_objects(value: object) -> bool:
    """Whether a value is an object with members, or a list with objects or lists in it."""
    if isinstance(value, dict):
        return bool(value)  # pyright: ignore[reportUnknownArgumentType]
    return is_list(value) and any(isinstance(item, dict | list) for item in value)


def is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def shown(value: object) -> str:
    """A plain value as JSON spells it, without quotes and on one line."""
    if value is True:
        return "true"
    if value is False:
        return "false"
    return "null" if value is None else " ".join(str(value).split())


def leaves(value: object) -> Iterator[str]:
    """Plain values under `value`, in order, as shown."""
    if is_object(value):
        for item in value.values():
            yield from leaves(item)
    elif is_list(value):
        for item in value:
            yield from leaves(item)
    else:
        yield shown(value)
