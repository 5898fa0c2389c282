"""Reads JSON from the answer of a model: the whole answer, a code fence or the text between brackets; repaired where it is complete."""

from collections.abc import Iterator

import json_repair

from pandora_dagster.documents.delimited_blocks import code_fences
from pandora_dagster.documents.plain_json import parse_json
from pandora_dagster.errors import BadAnswerError

_MAX_FAULT_CHARACTERS = 120


def read_json(text: str) -> object:
    """Read one JSON value: strictly, then from a code fence or the prose around it, then repaired; raises BadAnswerError.

    An object that stops in the middle is never repaired: the missing part cannot be guessed.
    """
    try:
        return read_strict_json(text)
    except ValueError as error:
        first_fault = str(error)[:_MAX_FAULT_CHARACTERS]
    body = next(_bracketed_texts(text), "")
    if not body:
        raise BadAnswerError("answer: no JSON in it: expected one JSON object and nothing else")
    if _is_unclosed(body):
        raise BadAnswerError(f"answer: JSON that stops in the middle ({first_fault}): expected one complete JSON object")
    return _repair(body, first_fault)


def read_strict_json(text: str) -> object:
    """Read one JSON value without repair: the whole text, a code fence, or between the outer brackets; raises ValueError."""
    faults: list[str] = []
    for candidate in _json_candidates(text):
        try:
            return parse_json(candidate)
        except ValueError as error:
            faults.append(str(error))
    raise ValueError(faults[0])


def _json_candidates(text: str) -> Iterator[str]:
    """The whole text, the contents of code fences, and the text between brackets."""
    yield text
    yield from (body.strip() for language, body in code_fences(text) if language.lower() in ("", "json"))
    yield from _bracketed_texts(text)


def _bracketed_texts(text: str) -> Iterator[str]:
    """The text from the first `{` to the last `}`, then from the first `[` to the last `]`; to the end where nothing closes it."""
    for opening, closing in ("{}", "[]"):
        start, end = text.find(opening), text.rfind(closing)
        if start >= 0:
            yield text[start : end + 1] if end > start else text[start:]


def _is_unclosed(text: str) -> bool:
    """Whether a bracket or a double-quoted string is still open at the end."""
    depth, quoted, escaped = 0, False, False
    for character in text:
        if quoted:
            quoted, escaped = (escaped or character != '"'), (character == "\\" and not escaped)
        elif character == '"':
            quoted = True
        elif character in "{[":
            depth += 1
        elif character in "}]":
            depth -= 1
    return quoted or depth > 0


def _repair(text: str, fault: str) -> object:
    """Read JSON after a repair; `fault` is that of the text without one. Raises BadAnswerError."""
    try:
        value = parse_json(json_repair.repair_json(text))
    except (ValueError, RecursionError) as error:  # the repair itself recurses
        raise BadAnswerError(f"answer: not JSON ({fault}): expected one JSON object") from error
    if value in ("", [], {}):
        raise BadAnswerError(f"answer: not JSON ({fault}): expected one JSON object")
    return value
