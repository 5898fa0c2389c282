"""Files that hold one JSON object of a known shape, read strictly. The one place where such a file is read."""

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from pandora_dagster.errors import DocumentError
from pandora_dagster.stores.disk.files import read_text

M = TypeVar("M", bound=BaseModel)


def read_json_record(path: Path, shape: type[M], *, expected: str, hint: str = "") -> M:
    """The object in a file; raises DocumentError (`missing` where there is none) that names the file, the field and what was expected."""
    try:
        return shape.model_validate_json(read_text(path))
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"]))
        raise DocumentError(f"{path}: {where}: {fault['msg']}: expected {expected}", hint=hint) from error


def find_json_record(path: Path, shape: type[M], *, expected: str, hint: str = "") -> M | None:
    """The object in a file, None where there is no file; raises DocumentError for a damaged one."""
    try:
        return read_json_record(path, shape, expected=expected, hint=hint)
    except DocumentError as error:
        if error.missing:
            return None
        raise
