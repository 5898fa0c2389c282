"""Strict reader of a file of queries, one JSON object a line; each fault is reported with its line."""

import json
from collections.abc import Callable, Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from pandora_dagster.contracts.batches import RejectedLine
from pandora_dagster.contracts.ids import session_id, user_id
from pandora_dagster.errors import BadIdError

LONGEST_LINE = 1_000_000
"""Bytes; a query with pasted logs has several hundred thousand."""
_LONGEST_EXCERPT = 2_000
"""Characters of a longer line that its rejection keeps."""


def _non_empty(text: str) -> str:
    if not text.strip():
        raise ValueError("empty: expected the words of a question or request")
    return text


def _is_id(check: Callable[[str], str]) -> AfterValidator:
    """The validator of an id; `check` raises BadIdError."""

    def checked(text: str) -> str:
        try:
            return check(text)
        except BadIdError as fault:
            raise ValueError(str(fault)) from None

    return AfterValidator(checked)


class QueryLine(BaseModel):
    """The fields of one line of a batch file; `contracts.batches.BatchQuery` is the stored query that it becomes."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    query: Annotated[str, AfterValidator(_non_empty)]
    user: Annotated[str, _is_id(user_id)] | None = None
    session: Annotated[str, _is_id(session_id)] | None = None
    mode: Literal["chat", "code"] = "chat"
    id: Annotated[str, Field(max_length=300)] = ""


def read_batch_lines(data: bytes) -> Iterator[tuple[int, QueryLine] | RejectedLine]:
    """Yield every line that is not blank, in order; a valid one with its number, from 1. A line with the id of an earlier one is
    rejected."""
    ids: dict[str, int] = {}
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        found = _read_line(number, line)
        if not isinstance(found, RejectedLine) and (name := found[1].id):
            if name in ids:
                text = line.decode()
                yield RejectedLine(line=number, reason=f"id: {name[:60]!r} is the id of line {ids[name]}: expected a unique one", text=text)
                continue
            ids[name] = number
        yield found


def _read_line(number: int, line: bytes) -> tuple[int, QueryLine] | RejectedLine:
    text = line.decode(errors="replace").rstrip("\r")
    if len(line) > LONGEST_LINE:
        return RejectedLine(line=number, reason=f"{len(line):,} bytes: expected at most {LONGEST_LINE:,}", text=text[:_LONGEST_EXCERPT])
    try:
        line.decode()
    except UnicodeDecodeError as fault:
        return RejectedLine(line=number, reason=f"byte {fault.start}: not UTF-8: expected UTF-8 text", text=text)
    try:
        json.loads(text, object_pairs_hook=_reject_duplicates)
        return number, QueryLine.model_validate_json(text)
    except json.JSONDecodeError as fault:
        return RejectedLine(line=number, reason=f"column {fault.colno}: {fault.msg}: expected a JSON object", text=text)
    except ValidationError as invalid:
        return RejectedLine(line=number, reason="; ".join(map(_describe_fault, invalid.errors(include_url=False))), text=text)
    except (ValueError, RecursionError) as fault:
        return RejectedLine(line=number, reason=f"{fault}: expected a JSON object", text=text)


def _reject_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    names = [name for name, _ in pairs]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"{twice[:60]!r} occurs twice")
    return dict(pairs)


def _describe_fault(error: ErrorDetails) -> str:
    """One fault: which field, what is wrong with it."""
    where = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        return f"{where[:60]}: unknown: expected {', '.join(QueryLine.model_fields)}"
    if error["type"] == "missing":
        return f"{where}: missing: expected the words of a question or request"
    message = error["msg"].removeprefix("Value error, ")
    return f"{where}: {message}" if where else f"expected a JSON object: {message}"
