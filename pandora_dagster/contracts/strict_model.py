"""The base of values that come from a file, a request or a model: immutable, and without fields that are not declared."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator


class StrictModel(BaseModel):
    """A frozen model that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


def removed_fields(**removed: Any) -> Any:
    """A validator that drops fields which an earlier program stored with no effect: `removed` gives each with its only value."""

    def drop(value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        fields: Mapping[Any, Any] = value  # pyright: ignore[reportUnknownVariableType] - what a file holds
        return {name: stored for name, stored in fields.items() if name not in removed or stored != removed[name]}

    return model_validator(mode="before")(drop)
