"""The base of values that come from a file, a request or a model: immutable, and without fields that are not declared."""

from pydantic import BaseModel, ConfigDict


class StrictModel(BaseModel):
    """A frozen model that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")
