"""Reads a file of queries, one JSON object a line, strictly; each fault is reported with its line."""

from collections.abc import Callable, Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from pandora_dagster.contracts.batches import RejectedLine
from pandora_dagster.contracts.ids import session_id, user_id
from pandora_dagster.documents.plain_json import PlainDataError, parse_json_object
from pandora_dagster.errors import BadIdError

MAX_LINE_BYTES = 1_000_000
"""A query with pasted logs has several hundred thousand."""
_MAX_EXCERPT_CHARACTERS = 2_000
"""Characters of a line over MAX_LINE_BYTES that its rejection keeps."""
_MAX_SHOWN_CHARACTERS = 60
"""Characters of a name or id that a reason shows."""


def _require_text(text: str) -> str:
    if not text.strip():
        raise ValueError("empty: expected the words of a question or request")
    return text


def _id_validator(check: Callable[[str], str]) -> AfterValidator:
    """The validator of an id; `check` raises BadIdError."""

    def validate(text: str) -> str:
        try:
            return check(text)
        except BadIdError as error:
            raise ValueError(str(error)) from None

    return AfterValidator(validate)


class QueryLine(BaseModel):
    """The fields of one line of a batch file; `contracts.batches.BatchQuery` is the stored query that it becomes."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    query: Annotated[str, AfterValidator(_require_text)]
    user: Annotated[str, _id_validator(user_id)] | None = None
    session: Annotated[str, _id_validator(session_id)] | None = None
    mode: Literal["chat", "code"] = "chat"
    id: Annotated[str, Field(max_length=300)] = ""


def read_batch_lines(data: bytes) -> Iterator[tuple[int, QueryLine] | RejectedLine]:
    """Yield every line that is not blank, in order; a valid one with its number, from 1.

    A line with the id of an earlier one is rejected.
    """
    line_of_id: dict[str, int] = {}
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        query = _read_line(number, line)
        if isinstance(query, RejectedLine):
            yield query
        elif query.id in line_of_id:
            shown_id = query.id[:_MAX_SHOWN_CHARACTERS]
            reason = f"id: {shown_id!r} is the id of line {line_of_id[query.id]}: expected a unique one"
            yield RejectedLine(line=number, reason=reason, text=line.decode())
        else:
            if query.id:
                line_of_id[query.id] = number
            yield number, query


def _read_line(number: int, line: bytes) -> QueryLine | RejectedLine:
    text = line.decode(errors="replace").rstrip("\r")
    if len(line) > MAX_LINE_BYTES:
        reason = f"{len(line):,} bytes: expected at most {MAX_LINE_BYTES:,}"
        return RejectedLine(line=number, reason=reason, text=text[:_MAX_EXCERPT_CHARACTERS])
    try:
        line.decode()
    except UnicodeDecodeError as fault:
        return RejectedLine(line=number, reason=f"byte {fault.start}: not UTF-8: expected UTF-8 text", text=text)
    try:
        return QueryLine.model_validate(parse_json_object(text))
    except PlainDataError as fault:
        column = f"column {fault.column}: " if fault.column else ""
        return RejectedLine(line=number, reason=f"{column}{fault.reason}: expected a JSON object", text=text)
    except ValidationError as invalid:
        return RejectedLine(line=number, reason="; ".join(map(_describe_fault, invalid.errors(include_url=False))), text=text)


def _describe_fault(error: ErrorDetails) -> str:
    """Describe one fault: which field, what is wrong with it, what was expected."""
    where = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        return f"{where[:_MAX_SHOWN_CHARACTERS]}: unknown: expected {', '.join(QueryLine.model_fields)}"
    if error["type"] == "missing":
        return f"{where}: missing: expected the words of a question or request"
    message = error["msg"].removeprefix("Value error, ")
    return f"{where}: {message}" if where else f"expected a JSON object: {message}"
