"""The strict reader of JSON that another person or program can write: plain data, or one error with its place.

Refused are duplicate keys, NaN and infinities, numbers that no float can represent, deep nesting and halves of surrogate pairs: values that
one reader accepts and the next one cannot write, compare or show.
"""

import json
from collections.abc import Iterable
from math import isinf
from typing import Any, NoReturn, cast

MAX_DEPTH = 64
"""Levels of nesting: a deeper value could be read but not written again."""
MAX_NUMBER_CHARACTERS = 100
_MAX_QUOTED_CHARACTERS = 60


class PlainDataError(ValueError):
    """Text that is not plain data. `line` and `column` count from 1 and are 0 where the place is not known; `reason` is without them."""

    def __init__(self, reason: str, *, line: int = 0, column: int = 0) -> None:
        super().__init__(f"{reason} (line {line}, column {column})" if line else reason)
        self.reason, self.line, self.column = reason, line, column


def parse_json(text: str | bytes) -> object:
    """The value of one JSON text; raises PlainDataError and nothing else. Bytes are UTF-8, with or without its mark."""
    try:
        text = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        value: object = json.loads(
            text, parse_constant=_refuse_constant, parse_float=_parse_float, parse_int=_parse_integer, object_pairs_hook=_fields_once
        )
        if text.count("[") + text.count("{") > MAX_DEPTH:
            _check_depth(value)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise PlainDataError(f"not JSON: {error.msg}", line=error.lineno, column=error.colno) from error
    except UnicodeDecodeError as error:
        raise PlainDataError(f"not UTF-8 at byte {error.start}") from error
    except UnicodeEncodeError as error:
        raise PlainDataError("half of a surrogate pair") from error
    except RecursionError as error:
        raise PlainDataError(f"nested deeper than {MAX_DEPTH} levels") from error
    return value


def parse_json_object(text: str | bytes) -> dict[str, Any]:
    """The JSON object in a text; raises PlainDataError, also for any other value."""
    value = parse_json(text)
    if not isinstance(value, dict):
        raise PlainDataError(f"{json_type(value)} instead of an object")
    return cast("dict[str, Any]", value)


def json_type(value: object) -> str:
    """What JSON calls the type of a value, with its article."""
    names: dict[type, str] = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _check_depth(value: object) -> None:
    """Raise PlainDataError for a value nested deeper than MAX_DEPTH."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [child for item in level for child in _children(item) if isinstance(child, (dict, list))]
        if not level:
            return
    raise PlainDataError(f"nested deeper than {MAX_DEPTH} levels")


def _children(value: object) -> Iterable[object]:
    return (
        cast("dict[str, object]", value).values()
        if isinstance(value, dict)
        else cast("list[object]", value)
        if isinstance(value, list)
        else ()
    )


def _fields_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        seen: set[str] = set()
        duplicate = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise PlainDataError(f"duplicate key {duplicate[:_MAX_QUOTED_CHARACTERS]!r}")
    return fields


def _parse_float(digits: str) -> float:
    if len(digits) > MAX_NUMBER_CHARACTERS or isinf(number := float(digits)):
        raise PlainDataError(f"{digits[:_MAX_QUOTED_CHARACTERS]} is too large a number")
    return number


def _parse_integer(digits: str) -> int:
    if len(digits) > MAX_NUMBER_CHARACTERS:
        raise PlainDataError(f"a number of {len(digits):,} digits")
    return int(digits)


def _refuse_constant(name: str) -> NoReturn:
    raise PlainDataError(f"{name} is not a JSON number")
