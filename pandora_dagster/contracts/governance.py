"""Which version of a recipe is in production, and how it came to be (000 section 28). Shapes only."""

from collections.abc import Sequence
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict

from pandora_dagster.contracts.recipes import LoadedRecipe
from pandora_dagster.contracts.words import ModelLayer

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


class RecipeVersionStore(Protocol):
    """Every version of a recipe that ever ran, whole and unchanged, and which one is in production."""

    def keep(self, loaded: LoadedRecipe) -> None:
        """A version that is about to run. Raises StoreError."""
        ...

    def production(self, recipe: str) -> RecipeProduction:
        """Of `{category}/{name}`; raises ConfigurationError where its file is damaged."""
        ...

    def version(self, recipe: str, version: str) -> LoadedRecipe:
        """A kept version by the first digits of its hash; raises InputError (unknown, ambiguous), DocumentError (damaged)."""
        ...

    def versions(self, recipe: str) -> tuple[str, ...]:
        """The kept versions, by hash."""
        ...

    def change(self, recipe: str, change: ProductionChange, *, since: RecipeProduction, pinned: str) -> RecipeProduction:
        """Put another version or layer into production, decided on what stood there: `since`.

        Raises InputError where something else stands there by now, StoreError where another process holds the lock too long.
        """
        ...

    def faults(self) -> Sequence[str]:
        """One sentence for each kept version or record of production that is damaged."""
        ...
