"""Deletion: originals of archived turns by rule with their tombstones, and the erasure of a user."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.strict_model import StrictModel


class DeletedFile(StrictModel):
    """One deleted original."""

    sha256: str
    size: Annotated[int, Field(ge=0)]
    """Bytes of the original itself."""


class Tombstone(StrictModel):
    """`<sha256>.tombstone.json` beside the path of a deleted cold object. It is written before the object is deleted: from then on the
    originals count as deleted."""

    format_version: Literal[1] = 1
    sha256: str
    """sha256 of the object's tar."""
    turn: str
    day: str
    """The day in the turn's manifest; the month, `2026-01`, where no manifest named the object."""
    files: Mapping[str, DeletedFile]
    """Name inside the object -> the deleted file; size 0 where the object was missing before its tombstone was written."""
    deleted_at: str
    """ISO 8601 UTC."""
    why: str
    """The rule, as a sentence."""
    by: str
    """Who asked for it: a command, or a Dagster run."""

    @property
    def description(self) -> str:
        """When, by whom and why, for a message about the originals."""
        return f"deleted on {self.deleted_at} by {self.by} ({self.why})"


class RetentionReason(StrEnum):
    """Why originals are kept although their retention is over."""

    HELD = "held"
    INTERVENTION = "intervention"
    CITED = "cited"
    ACTIVE = "active"
    """It was restored in the meantime."""
    BUSY = "busy"
    FAULT = "fault"
    """Its object, tombstone or hold is damaged, and nothing is deleted on its evidence."""


@dataclass(frozen=True, slots=True)
class PrunedTurn:
    """One turn whose originals are past their retention."""

    key: TurnKey
    day: str
    """The turn's day at archival; for an object that no turn names its month, `2026-01`."""
    cold: str
    size: int
    """Bytes of the object on the disk."""
    kept_because: RetentionReason | None = None
    """None: deleted, or to be deleted in a dry run."""
    reason: str = ""
    """Why it is kept, or why an object that no turn names is deleted."""


@dataclass(frozen=True, slots=True)
class PruneReport:
    """The report of one run over the cold storage."""

    older_than_days: int
    dry_run: bool
    pruned: tuple[PrunedTurn, ...] = ()
    kept: tuple[PrunedTurn, ...] = ()
    within_retention: int = 0
    """Number of archived turns within their retention."""
    deleted_earlier: int = 0
    """Number of turns whose originals were deleted by an earlier run."""
    unreadable_objects: tuple[str, ...] = ()
    """Unreadable objects that no turn names, a sentence each."""

    @property
    def bytes_freed(self) -> int:
        return sum(turn.size for turn in self.pruned)

    @property
    def faults(self) -> tuple[str, ...]:
        """Damaged objects, and missing ones without a tombstone, a sentence each."""
        return (
            *(f"{turn.key}: {turn.reason}" for turn in self.kept if turn.kept_because is RetentionReason.FAULT),
            *self.unreadable_objects,
        )


# The erasure of one user and its proof. The intent alone contains words of the user, until a proof has passed.


class ErasureIntent(StrictModel):
    """`<root>/erasing/<user>.json`: written first and removed last. While it exists no turn of the user begins."""

    format_version: Literal[1] = 1
    user_id: str
    begun_at: str
    """ISO 8601 UTC."""
    facts: tuple[str, ...] = ()
    """What the proof searches for, once it is known: a later run still knows it when the documents are gone."""


@dataclass(frozen=True, slots=True)
class UserDataCounts:
    """What there is of a user, by kind: `turns`, `files`, `cold_objects`, `interventions`, `runs` ...; a kind that is 0 is included."""

    user: str
    counts: Mapping[str, int]
    notices: tuple[str, ...] = ()
    """What is stored outside of the store and is not erased."""

    @property
    def has_data(self) -> bool:
        return any(self.counts.values())


@dataclass(frozen=True, slots=True)
class SearchedObject:
    """One file or object that a proof searched: its size in bytes, and where a trace was found or why it cannot be searched."""

    size: int
    hit: str = ""


@dataclass(frozen=True, slots=True)
class ErasureProof:
    """A search of every file for facts that only the user stated. `hits` are places, never what was found there."""

    files: int
    bytes_read: int
    facts: int
    facts_in_documents: int
    """Facts that the user's documents had; the others are also in another user's, and prove nothing."""
    hits: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        return not self.hits


@dataclass(frozen=True, slots=True)
class ErasureReport:
    """What one erasure did."""

    found: UserDataCounts
    proof: ErasureProof
    notices: tuple[str, ...] = ()
    """What other users have to know."""
