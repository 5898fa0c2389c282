"""Which version of a recipe is in production, and how it came to be (000 section 28). Shapes only."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from pandora_dagster.contracts.enums import ModelLayer

_STRICT = ConfigDict(frozen=True, extra="forbid")


class ProductionChange(BaseModel):
    """One line of a recipe's history: from `at` on `version` answered its calls."""

    model_config = _STRICT
    at: str
    kind: Literal["file", "rollback", "release", "layer"]
    """`file`: the recipe's file was edited; `rollback`: an older version was put over it; `release`: the file counts again;
    `layer`: another layer answers, the version stays."""
    version: str
    before: str = ""
    """The version before it; "" for the first."""
    layer: ModelLayer | None = None
    """The assigned layer from then on, None for the version's own."""
    who: str = ""
    why: str = ""

    @property
    def label(self) -> str:
        """What answers from then on, by name: the version, and its layer where one is assigned."""
        return f"{self.version} on {self.layer}" if self.layer else self.version


class RecipeProduction(BaseModel):
    """What answers a recipe's calls: the file of the recipe folder, unless a version is pinned over it. `production.json`."""

    model_config = _STRICT
    recipe: str
    pinned: str = ""
    layer: ModelLayer | None = None
    """Takes the place of the version's own layer (000 section 28: assigned apart from the text)."""
    history: tuple[ProductionChange, ...] = ()

    @property
    def version(self) -> str:
        """The version that ran last; "" where none ever did."""
        return self.history[-1].version if self.history else ""

    @property
    def predecessor(self) -> str:
        """The version that was in production before the present one; "" where there was none."""
        return next((c.version for c in reversed(self.history) if c.version != self.version), "")

    @property
    def current_and_previous(self) -> tuple[ProductionChange, ...]:
        """What stands in production, and what stood there before with another version or layer; fewer where there were fewer."""
        return tuple({change.label: change for change in reversed(self.history)}.values())[:2]


# What a person said was wrong about a turn (000 section 5.5). Shapes only.


class Correction(BaseModel):
    """`users/<user>/corrections/<id>.json`: it stands when its turn is archived, and goes with its user."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    id: str
    user_id: str
    turn_id: str
    revision: int = 0
    phase: str
    """The phase that the person found wrong."""
    recipe: str
    recipe_version: str
    call_id: str = ""
    """The recipe's newest call of the turn; "" where its record is gone."""
    said: Annotated[str, Field(min_length=1)]
    """What it should have been, or what was wrong."""
    at: str
