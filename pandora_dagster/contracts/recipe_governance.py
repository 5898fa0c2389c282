"""The production version of a recipe with its history, and corrections by users (specification 000, sections 28 and 5.5)."""

from typing import Annotated, Literal

from pydantic import Field

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.strict_model import StrictModel


class ProductionChange(StrictModel):
    """One line of a recipe's history: `version` answered its calls from `at` on."""

    at: str
    kind: Literal["file", "rollback", "release", "layer"]
    """`file`: the recipe's file was edited; `rollback`: an older version was pinned; `release`: the file is used again; `layer`:
    another layer answers, with the same version."""
    version: str
    before: str = ""
    """The version before it; "" for the first."""
    layer: ModelLayer | None = None
    """The layer assigned from then on, None for the version's own."""
    who: str = ""
    why: str = ""

    @property
    def label(self) -> str:
        """The version, and its layer where one is assigned."""
        return f"{self.version} on {self.layer}" if self.layer else self.version


class RecipeProduction(StrictModel):
    """`production.json`: what answers a recipe's calls, which is the recipe's file unless a version is pinned."""

    recipe: str
    pinned: str = ""
    layer: ModelLayer | None = None
    """Replaces the version's own layer (specification 000, section 28: assigned apart from the text)."""
    history: tuple[ProductionChange, ...] = ()

    @property
    def version(self) -> str:
        """The version that ran last; "" where none ran."""
        return self.history[-1].version if self.history else ""

    @property
    def predecessor(self) -> str:
        """The version that was in production before the current one; "" without one."""
        return next((c.version for c in reversed(self.history) if c.version != self.version), "")

    @property
    def current_and_previous(self) -> tuple[ProductionChange, ...]:
        """The current change, and the newest one before it with another version or layer; at most two."""
        return tuple({change.label: change for change in reversed(self.history)}.values())[:2]


class Correction(StrictModel):
    """`users/<user>/corrections/<id>.json`: kept when its turn is archived, erased with its user."""

    id: str
    user_id: str
    turn_id: str
    revision: int = 0
    phase: str
    """The phase whose result the user found wrong."""
    recipe: str
    recipe_version: str
    call_id: str = ""
    """The recipe's newest call of the turn; "" where its record is missing."""
    said: Annotated[str, Field(min_length=1)]
    """What the answer should have been, or what was wrong."""
    at: str


class RecordedAnswer(StrictModel):
    """The raw answer of a model to one request of a recipe test."""

    test: str = ""
    request: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """Digest of the prompt pack that was answered."""
    recipe: str
    """Name of the recipe that was called: that of the test, or one that it calls in turn."""
    layer: ModelLayer
    runtime: str
    model: str
    recorded_at: str
    finish_reason: str
    answer: str


class RecordedAnswers(StrictModel):
    """The recorded answers to the tests of one recipe: one file."""

    format: Literal[1] = 1
    recipe: str
    version: str
    answers: tuple[RecordedAnswer, ...]
