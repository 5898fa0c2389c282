"""The production version of a recipe with its history, the calibration of its confidence, and corrections by users (specification 000,
sections 28 and 5.5)."""

from math import sqrt
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


class FailureLesson(StrictModel):
    """What a prompt should say so that one cause of failure does not happen again."""

    reasoning: str
    cause: Annotated[int, Field(ge=1)]
    """The number of the cause that the call was given."""
    change: str


class FailureLessons(StrictModel):
    """The answer of `reflection/failure_lesson`."""

    lessons: tuple[FailureLesson, ...]


CALIBRATION_BINS = 10
"""Bins of stated confidence, each 0.1 wide."""
MIN_OUTCOMES = 20
"""Outcomes in a bin from which a threshold acts on it."""
_Z = 1.96
"""Standard deviations of a two-sided interval of 95 %."""


class ConfidenceBin(StrictModel):
    """Calls that stated a confidence within one bin and whose turn has an outcome; `good`: those with a good one."""

    calls: int = 0
    good: int = 0

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval of 95 % of the share of good outcomes (Wilson score); 0 to 1 without calls."""
        if not self.calls:
            return 0.0, 1.0
        share, square = self.good / self.calls, _Z * _Z / self.calls
        middle, half = share + square / 2, _Z * sqrt(share * (1 - share) / self.calls + square / self.calls / 4)
        return max(0.0, (middle - half) / (1 + square)), min(1.0, (middle + half) / (1 + square))


class ConfidenceCalibration(StrictModel):
    """What became of the answers of one recipe version on one model, by the confidence that they stated."""

    version: str
    model: str
    bins: Annotated[tuple[ConfidenceBin, ...], Field(min_length=CALIBRATION_BINS, max_length=CALIBRATION_BINS)]

    def bin_of(self, confidence: float) -> ConfidenceBin:
        """The bin of a stated confidence from 0 to 1."""
        return self.bins[confidence_bin(confidence)]


def confidence_bin(confidence: float) -> int:
    """The number of the bin of a confidence from 0 to 1."""
    return min(int(confidence * CALIBRATION_BINS), CALIBRATION_BINS - 1)


class RecipeCalibration(StrictModel):
    """`calibration.json`: the calibrations of a recipe, from its newest calls."""

    recipe: str
    at: str = ""
    tables: tuple[ConfidenceCalibration, ...] = ()

    def table(self, version: str, model: str) -> ConfidenceCalibration | None:
        """The calibration of a version on a model; None where none was measured."""
        return next((table for table in self.tables if (table.version, table.model) == (version, model)), None)


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
