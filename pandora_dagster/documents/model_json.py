"""JSON in the answer of a model: strict, in a fence or in prose, repaired where a slip allows it."""

import json
import re
from collections.abc import Iterator
from typing import NoReturn

import json_repair

from pandora_dagster.errors import BadAnswerError

FENCED = re.compile(r"^[ \t]*```([A-Za-z]*)[ \t]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL)
"""A code fence: its language and what is in it."""


def read_json(text: str) -> object:
    """Read one JSON value: strictly, then from a code fence or the prose around it, then repaired; raises BadAnswerError.

    An object that stops in the middle is never repaired: the missing part cannot be guessed.
    """
    try:
        return strict_json(text)
    except ValueError as error:
        first_fault = str(error)[:120]
    body = next(_bracketed(text), "")
    if not body:
        raise BadAnswerError("answer: no JSON in it: expected one JSON object and nothing else")
    if _unclosed(body):
        raise BadAnswerError(f"answer: JSON that stops in the middle ({first_fault}): expected one complete JSON object")
    return _repaired(body, first_fault)


def strict_json(text: str) -> object:
    """Read one JSON value without repair: the whole text, a code fence, or between the outer brackets; raises ValueError."""
    faults: list[str] = []
    for candidate in _json_candidates(text):
        try:
            return _strict(candidate)
        except (ValueError, RecursionError) as error:
            faults.append(str(error))
    raise ValueError(faults[0])


def _json_candidates(text: str) -> Iterator[str]:
    """The whole text, the contents of code fences, and the text between brackets."""
    yield text
    yield from (body.strip() for language, body in FENCED.findall(text) if language.lower() in ("", "json"))
    yield from _bracketed(text)


def _bracketed(text: str) -> Iterator[str]:
    """From the first opening brace (then: bracket) to the last closing one, or to the end where there is none."""
    for opening, closing in ("{}", "[]"):
        start, end = text.find(opening), text.rfind(closing)
        if start >= 0:
            yield text[start : end + 1] if end > start else text[start:]


def _strict(text: str) -> object:
    return json.loads(text, parse_constant=_no_constant)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _unclosed(text: str) -> bool:
    """Whether a bracket or a double-quoted string is still open at the end."""
    depth, quoted, escaped = 0, False, False
    for sign in text:
        if quoted:
            quoted, escaped = (escaped or sign != '"'), (sign == "\\" and not escaped)
        elif sign == '"':
            quoted = True
        elif sign in "{[":
            depth += 1
        elif sign in "}]":
            depth -= 1
    return quoted or depth > 0


def _repaired(text: str, fault: str) -> object:
    try:
        value = _strict(json_repair.repair_json(text))
    except (ValueError, RecursionError) as error:
        raise BadAnswerError(f"answer: not JSON ({fault}): expected one JSON object") from error
    if value in ("", [], {}):
        raise BadAnswerError(f"answer: not JSON ({fault}): expected one JSON object")
    return value
