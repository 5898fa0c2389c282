"""Research and visit records as JSON text: read strictly, all faults at once; written so that they read back. Knows no disk."""

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from pandora_dagster.contracts.sources import Research, Visit
from pandora_dagster.errors import DocumentError

Record = TypeVar("Record", bound=Research | Visit)
_SECTION: dict[type, str] = {Research: "004 section 3.5", Visit: "004 section 3.6"}
_MOST_FAULTS = 12


def read_record(text: str, shape: type[Record], *, where: str) -> Record:
    """The record that `text` is; raises DocumentError, one line a fault: `FILE: claims.0.confidence: what: expected`."""
    expected = f"expected a record as in {_SECTION[shape]}"
    try:
        value: object = json.loads(text, parse_constant=_no_number, object_pairs_hook=_each_key_once)
    except json.JSONDecodeError as error:
        raise DocumentError(f"{where}:{error.lineno}: not JSON: {error.msg}: {expected}") from error
    except RecursionError as error:
        raise DocumentError(f"{where}: nested too deeply: {expected}") from error
    except ValueError as error:
        raise DocumentError(f"{where}: {error}: {expected}") from error
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        faults = [f"{where}: {_place(f['loc'])}{f['msg'].removeprefix('Value error, ')}" for f in error.errors(include_url=False)]
        raise DocumentError("\n".join(f"{fault}: {expected}" for fault in faults[:_MOST_FAULTS])) from error


def written_record(record: Research | Visit) -> str:
    """The record as JSON for a file; raises DocumentError where it could not be read back as it is."""
    where = record.logical_id
    try:
        text = json.dumps(record.model_dump(mode="json", exclude_none=True), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise DocumentError(f"{where}: {error}: expected values that JSON can hold") from error
    read_record(text, type(record), where=where)
    return text


def _place(path: Sequence[int | str]) -> str:
    return ".".join(map(str, path)) + ": " if path else ""


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        twice = next(key for n, (key, _) in enumerate(pairs) if key in dict(pairs[:n]))
        raise ValueError(f"key {twice[:60]!r} stands twice")
    return made
