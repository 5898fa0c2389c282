"""Research and visit records as JSON text: read strictly, all faults at once; written so that they read back. Knows no disk."""

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from pandora_dagster.contracts.sources import Claim, Research, Visit
from pandora_dagster.errors import DocumentError

Record = TypeVar("Record", bound=Research | Visit)
_MOST_FAULTS = 12
_KEPT_BY_THE_STORE = "provenance"


def read_record(text: str, shape: type[Record], *, where: str) -> Record:
    """The record that `text` is; raises DocumentError, one line a fault: `FILE: claims.0.confidence: what: expected`."""
    expected = f"expected one object with {_required(shape)}"
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
        faults = [f"{where}: {_place(f['loc'])}{_fault_sentence(f, shape)}" for f in error.errors(include_url=False)]
        raise DocumentError("\n".join(faults[:_MOST_FAULTS])) from error


def render_record(record: Research | Visit) -> str:
    """The record as JSON for a file; raises DocumentError where it could not be read back as it is."""
    where = record.logical_id
    try:
        text = json.dumps(record.model_dump(mode="json", exclude_none=True), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise DocumentError(f"{where}: {error}: expected values that JSON can hold") from error
    read_record(text, type(record), where=where)
    return text


def _fault_sentence(fault: ErrorDetails, shape: type[Record]) -> str:
    """What is wrong with a field, and what was expected there."""
    told, path = fault["msg"].removeprefix("Value error, "), fault["loc"]
    if "expected" in told:
        return told
    owner: type[BaseModel] = Claim if path[:1] == ("claims",) and len(path) > 2 else shape
    name = str(path[0 if owner is shape else 2]) if path else ""
    if fault["type"] == "extra_forbidden":
        return f"no field of a record: expected {', '.join(n for n in owner.model_fields if n != _KEPT_BY_THE_STORE)}"
    field = owner.model_fields.get(name)
    expected = (field.description if field else None) or f"one object with {_required(shape)}"
    return f"{'missing' if fault['type'] == 'missing' else told}: expected {expected}"


def _required(shape: type[Record]) -> str:
    return ", ".join(name for name, field in shape.model_fields.items() if field.is_required())


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
