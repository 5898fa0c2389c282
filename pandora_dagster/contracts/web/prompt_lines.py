"""Models as JSON lines for a prompt: one object a line, so that quoted text can neither end its line nor open a tag."""

import json
import re
from collections.abc import Iterable
from typing import TypeVar

from pydantic import BaseModel, ValidationError

Line = TypeVar("Line", bound=BaseModel)
_ESCAPED = re.compile("[<\x85\u2028\u2029]")
"""What opens a tag, and the line separators that JSON does not escape."""


def write_line(model: BaseModel) -> str:
    """One line, without the fields that have their default."""
    text = json.dumps(model.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def write_lines(models: Iterable[BaseModel]) -> str:
    return "\n".join(map(write_line, models))


def read_lines(text: str, model: type[Line]) -> list[Line]:
    """The lines that hold a `model`; others, such as a header, are passed over."""
    found: list[Line] = []
    for line in text.split("\n"):
        try:
            found.append(model.model_validate_json(line))
        except ValidationError:
            continue
    return found
