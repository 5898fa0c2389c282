"""Records of the nightly archival: the manifest's archive record, holds, reports of a run, verified days.

An archived turn has compressed documents; its originals are stored in a *cold object*, one file a turn (docs/explanation/archive.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field

from pandora_dagster.contracts.compression_results import GATE_NAME_MIGRATION
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.strict_model import StrictModel


class ArchivedDocument(StrictModel):
    """One document of an archived turn: hashes and sizes before and after, and what compressed it."""

    name: str
    """Its name in the turn's folder, e.g. `context.md`."""
    original: str
    """The original's name inside the cold object: `name`, or below `revisions/<n>/`."""
    sha_before: str
    sha_after: str
    """sha256 of the texts; equal where the document stays whole."""
    tokens_before: int
    tokens_after: int
    """Tokens of the texts (cl100k)."""
    target: int
    """Target tokens by the settings; where no sound text fits, a longer one is stored (`tokens_after`). 0 where none was tried."""
    content_type: str
    recipe: str = ""
    recipe_version: str = ""
    prompt_hash: str = ""
    runtime: str = ""
    model: str = ""
    counts: Mapping[str, int] = {}
    """`total`, and a number for each outcome of a fact."""
    checks: Annotated[Mapping[str, bool], GATE_NAME_MIGRATION] = {}
    """The three checks of its compression, `no_fact_changed` among them; empty where it stays whole."""
    whole: str = ""
    """Why it stays whole; "" where it is compressed."""
    call_ids: tuple[str, ...] = ()

    @property
    def facts(self) -> int:
        """Facts of the original that were judged."""
        return self.counts.get("total", 0)

    @property
    def facts_kept(self) -> int:
        """Facts that are preserved: unchanged, in other words, or by the reference to their original."""
        return sum(self.counts.get(outcome, 0) for outcome in ("kept", "equal", "recoverable"))


class ArchiveRecord(StrictModel):
    """`archive` of an archived turn's manifest: location and hashes of its originals, and the documents in their place."""

    archived_at: str
    """ISO 8601 UTC."""
    day: str
    """The day of the turn, `2026-01-04`: its last activity's in the time zone of the settings."""
    was: Literal["saved", "clarify"]
    """The state before archival, which a restored turn has again."""
    cold: str
    """The cold object's path below the store root."""
    sha256: str
    """sha256 of the uncompressed tar."""
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


class Hold(StrictModel):
    """`hold.json` beside a turn's first manifest: prevents archival of the turn. A pin is a hold without end."""

    until: str | None = None
    """ISO 8601 UTC; None: until it is removed."""
    why: str = ""
    at: str


class NotDueReason(StrEnum):
    """Why a turn is not due."""

    OPEN = "open"
    HALTED = "halted"
    HELD = "held"
    INTERVENTION = "intervention"
    YOUNG = "young"
    """Its waiting period is not over."""
    ARCHIVED = "archived"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class TurnActivity:
    """State and last activity of a turn, known before its documents are read. `last_activity`: ISO 8601; for `unreadable` the reason."""

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
    """A turn that is not due; `reason` explains the `cause` as a sentence. `day` is None where it is unknown."""

    key: TurnKey
    day: date | None
    cause: NotDueReason
    reason: str


@dataclass(frozen=True, slots=True)
class ColdObject:
    """A turn's originals for cold storage. `files`: name inside the object -> bytes."""

    key: TurnKey
    day: str
    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class ColdLocation:
    """Location of a cold object: path below the root, sha256 of its tar, bytes on the disk."""

    path: str
    sha256: str
    size: int


class ArchiveOutcome(StrEnum):
    """The outcome of a turn in one run."""

    ARCHIVED = "archived"
    FINISHED = "finished"
    """Another or an interrupted run archived it; this run completed its folder and rows."""
    KEPT = "kept"
    """It is no longer due."""
    FAILED = "failed"
    """It is unchanged; an intervention says why."""


@dataclass(frozen=True, slots=True)
class ArchivedTurn:
    """The row of one turn in a report."""

    key: TurnKey
    day: str
    outcome: ArchiveOutcome
    documents: tuple[ArchivedDocument, ...] = ()
    cold: str = ""
    size: int = 0
    reason: str = ""
    intervention: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ArchiveSums:
    """Sums over archived documents and the sizes of their cold objects."""

    documents: int = 0
    compressed: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    facts: int = 0
    facts_kept: int = 0
    cold_bytes: int = 0

    @property
    def ratio(self) -> float:
        """Tokens after per token before; 1 where there is nothing."""
        return round(self.tokens_after / self.tokens_before, 4) if self.tokens_before else 1.0

    def plus(self, documents: Sequence[ArchivedDocument], cold_bytes: int) -> Self:
        """These sums with the documents of one more turn."""
        return replace(
            self,
            documents=self.documents + len(documents),
            compressed=self.compressed + sum(not d.whole for d in documents),
            tokens_before=self.tokens_before + sum(d.tokens_before for d in documents),
            tokens_after=self.tokens_after + sum(d.tokens_after for d in documents),
            facts=self.facts + sum(d.facts for d in documents),
            facts_kept=self.facts_kept + sum(d.facts_kept for d in documents),
            cold_bytes=self.cold_bytes + cold_bytes,
        )


@dataclass(frozen=True, slots=True)
class ArchiveReport(ArchiveSums):
    """The report of one run: sums, the turns that failed or were not due, and why it ended early if it did."""

    due: int = 0
    counts: Mapping[ArchiveOutcome, int] = field(default_factory=dict[ArchiveOutcome, int])
    failed: tuple[ArchivedTurn, ...] = ()
    not_due: tuple[NotDueTurn, ...] = ()
    stopped: str = ""
    """Why the run ended before its last turn: a refusing disk, or an unreachable model; "" where it did not."""
    hint: str = ""


MAX_NAMED_FAULTS = 20
"""Faults of one check that its verdict names."""


class DayCheck(StrEnum):
    """The five checks of every archived day."""

    NO_FACT_CHANGED = "no_fact_changed"
    ORIGINALS_RESTORABLE = "originals_restorable"
    WITHIN_TARGET = "within_target"
    INDEX_AGREES = "index_agrees"
    NOTHING_LEFT_BEHIND = "nothing_left_behind"
    """Every due turn of the day is archived."""


@dataclass(frozen=True, slots=True)
class DayVerdict:
    """One check of one day."""

    check: DayCheck
    judged: int = 0
    """Number of turns or documents that were checked."""
    faulty: int = 0
    faults: tuple[str, ...] = ()
    """The first faults, each a sentence that names its turn."""
    by_rule: int = 0
    """Of those judged: originals that were deleted by rule, which is not a fault."""

    @property
    def passed(self) -> bool:
        return not self.faulty

    def plus(self, fault: str, *, by_rule: bool = False) -> "DayVerdict":
        """This verdict with one more judged item; `fault`: "" for one without."""
        faults = (*self.faults, fault) if fault and len(self.faults) < MAX_NAMED_FAULTS else self.faults
        return replace(self, judged=self.judged + 1, faulty=self.faulty + bool(fault), faults=faults, by_rule=self.by_rule + by_rule)


@dataclass(frozen=True, slots=True)
class ArchivedDayRow:
    """One document of an archived turn."""

    key: TurnKey
    document: ArchivedDocument
    cold: str
    """The cold object's path below the store root."""
    run_id: str = ""
    """The Dagster run that archived it, "" without one."""


@dataclass(frozen=True, slots=True)
class ArchivedDay(ArchiveSums):
    """A day's archived turns by their manifests, whichever run archived them."""

    day: date = field(kw_only=True)
    turns: int = 0
    rows: tuple[ArchivedDayRow, ...] = ()
    """The first documents, in the order of turns; the sums count all."""
    unarchived_turns: tuple[NotDueTurn, ...] = ()
    """Turns of the day that are not archived, each with its reason."""
    verdicts: tuple[DayVerdict, ...] = ()
    """One for each DayCheck that was made, in its order."""
