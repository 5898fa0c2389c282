"""The nightly archival: what a manifest keeps of it, what keeps a turn from it, what one run tells. Shapes only.

A turn that is archived shows compressed documents; its originals lie in a *cold object*, one file a turn (docs/architecture.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from pandora_dagster.contracts.ids import TurnKey

_STRICT = ConfigDict(frozen=True, extra="forbid")


class ArchivedDocument(BaseModel):
    """One document of an archived turn: what it was, what it became, and who made it so."""

    model_config = _STRICT
    name: str
    """Its name in the turn's folder, e.g. `context.md`."""
    original: str
    """The original's name inside the cold object: `name`, or below `revisions/<n>/`."""
    sha_before: str
    sha_after: str
    """sha256 of the texts; equal where the document stands whole."""
    tokens_before: int
    tokens_after: int
    """cl100k."""
    target: int
    """Tokens it was to fit by the settings; where no sound text does, a longer one stands (`tokens_after`). 0 where nothing was tried."""
    content_type: str
    recipe: str = ""
    recipe_version: str = ""
    prompt_hash: str = ""
    runtime: str = ""
    model: str = ""
    counts: Mapping[str, int] = {}
    """`total`, and a number for each outcome of a fact."""
    checks: Mapping[str, bool] = {}
    """The three checks of its compression, `facts_preserved` among them; empty where it stands whole."""
    whole: str = ""
    """Why it stands as it was; "" where it is compressed."""
    call_ids: tuple[str, ...] = ()

    @property
    def facts(self) -> int:
        """Facts of the original that were judged."""
        return self.counts.get("total", 0)

    @property
    def facts_kept(self) -> int:
        """Those that are still told: as they were, in other words, or by the reference to their original."""
        return sum(self.counts.get(outcome, 0) for outcome in ("kept", "equal", "recoverable"))


class ArchiveRecord(BaseModel):
    """`archive` of an archived turn's manifest: where its originals lie, by hash, and what stands in their place."""

    model_config = _STRICT
    archived_at: str
    """ISO 8601 UTC."""
    day: str
    """The day of the turn, `2026-01-04`: its last activity's in the time zone of the settings."""
    was: Literal["saved", "clarify"]
    """The state that a restored turn has again."""
    cold: str
    """The cold object's path below the store root."""
    sha256: str
    """Of the uncompressed tar."""
    size: Annotated[int, Field(ge=0)]
    """Bytes of the object on the disk."""
    files: Mapping[str, str]
    """Name inside the object -> sha256 of every original."""
    documents: tuple[ArchivedDocument, ...] = ()
    run_id: str = ""
    """The Dagster run, "" without one."""

    @property
    def location(self) -> "ColdLocation":
        return ColdLocation(self.cold, self.sha256, self.size)


class Hold(BaseModel):
    """`hold.json` beside a turn's first manifest: keeps the turn from archival. A pin is a hold without end."""

    model_config = _STRICT
    until: str | None = None
    """ISO 8601 UTC; None: until it is taken away."""
    why: str = ""
    at: str


class NotDueReason(StrEnum):
    """Why a turn is not due."""

    OPEN = "open"
    HALTED = "halted"
    HELD = "held"
    INTERVENTION = "intervention"
    YOUNG = "young"
    ARCHIVED = "archived"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class TurnActivity:
    """What a selection knows of a turn before its documents are read. `last_activity` is ISO 8601; of an `unreadable` turn, why."""

    key: TurnKey
    state: str
    last_activity: str


@dataclass(frozen=True, slots=True)
class DueTurn:
    """A turn to archive."""

    key: TurnKey
    day: date


@dataclass(frozen=True, slots=True)
class NotDueTurn:
    """A turn whose day came and which stays, with the reason as a sentence. `day` is None where it can not be told."""

    key: TurnKey
    day: date | None
    kept: NotDueReason
    reason: str


@dataclass(frozen=True, slots=True)
class ColdObject:
    """A turn's originals on their way to cold storage: name inside the object -> bytes."""

    key: TurnKey
    day: str
    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class ColdLocation:
    """Where a cold object lies: path below the root, sha256 of its tar, bytes on the disk."""

    path: str
    sha256: str
    size: int


class ArchiveOutcome(StrEnum):
    """What became of a turn in one run."""

    ARCHIVED = "archived"
    FINISHED = "finished"
    """It was archived by a run that was cut off, or just now by another; what that one left to do is done."""
    KEPT = "kept"
    """It is no longer due."""
    FAILED = "failed"
    """It stays as it was; an intervention says why."""


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """One document for a table."""

    name: str
    tokens_before: int
    tokens_after: int
    facts: int
    facts_kept: int
    whole: str = ""


@dataclass(frozen=True, slots=True)
class ArchivedTurn:
    """The row of one turn: all that a run keeps of it."""

    key: TurnKey
    day: str
    outcome: ArchiveOutcome
    documents: tuple[DocumentRow, ...] = ()
    cold: str = ""
    size: int = 0
    reason: str = ""
    intervention: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    """What one run did: sums, the turns that failed or stayed, and why it ended early if it did."""

    due: int = 0
    counts: Mapping[ArchiveOutcome, int] = field(default_factory=dict[ArchiveOutcome, int])
    documents: int = 0
    compressed: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    facts: int = 0
    facts_kept: int = 0
    cold_bytes: int = 0
    failed: tuple[ArchivedTurn, ...] = ()
    not_due: tuple[NotDueTurn, ...] = ()
    stopped: str = ""
    """Why the run ended before its last turn: the disk, or a model that can not be reached; "" where it did not."""
    hint: str = ""

    @property
    def ratio(self) -> float:
        """Tokens after per token before."""
        return round(self.tokens_after / self.tokens_before, 4) if self.tokens_before else 1.0


# A day of the archive as people see it: its documents, sums, and five checks. Shapes only.


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
