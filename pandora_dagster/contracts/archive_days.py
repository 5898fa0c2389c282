"""A day of the archive as people see it: its documents, sums, and five checks. Shapes only."""

from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from pandora_dagster.contracts.archive import ArchivedDocument, NotDueTurn
from pandora_dagster.contracts.ids import TurnKey


class DayCheck(StrEnum):
    """What is held to be true of every day of the archive."""

    NO_FACT_LOST = "no_fact_lost"
    ORIGINALS_RESTORABLE = "originals_restorable"
    WITHIN_TARGET = "within_target"
    INDEX_AGREES = "index_agrees"
    NOTHING_LEFT_BEHIND = "nothing_left_behind"


@dataclass(frozen=True, slots=True)
class DayVerdict:
    """One check of one day."""

    check: DayCheck
    judged: int
    """Turns or documents that were looked at."""
    faulty: int
    faults: tuple[str, ...]
    """The first of them, each a sentence that names its turn."""

    by_rule: int = 0
    """Of those judged: whose originals were deleted by rule, which is no fault."""

    @property
    def passed(self) -> bool:
        return not self.faulty


@dataclass(frozen=True, slots=True)
class ArchivedDayRow:
    """One document of an archived turn."""

    key: TurnKey
    document: ArchivedDocument
    cold: str
    """The cold object's path below the store root."""


@dataclass(frozen=True, slots=True)
class ArchivedDay:
    """What the manifests say of a day's archived turns, whichever run archived them."""

    day: date
    turns: int
    documents: int
    compressed: int
    tokens_before: int
    tokens_after: int
    facts: int
    facts_kept: int
    cold_bytes: int
    rows: tuple[ArchivedDayRow, ...]
    """The first documents, in the order of turns."""
    stays: tuple[NotDueTurn, ...]
    """Turns of the day that are not archived, each with its reason."""
    verdicts: tuple[DayVerdict, ...]
    """One of each DayCheck that was asked for, in its order."""

    @property
    def ratio(self) -> float:
        """Tokens after per token before; 1 where there was nothing."""
        return round(self.tokens_after / self.tokens_before, 4) if self.tokens_before else 1.0
