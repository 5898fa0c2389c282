"""What is deleted by rule: originals of archived turns, and the tombstones that say so. Shapes only."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from pandora_dagster.contracts.ids import TurnKey

_STRICT = ConfigDict(frozen=True, extra="forbid")


class DeletedFile(BaseModel):
    """One original that is gone."""

    model_config = _STRICT
    sha256: str
    size: Annotated[int, Field(ge=0)]
    """Bytes of the original itself."""


class Tombstone(BaseModel):
    """`<sha256>.tombstone.json` beside where a cold object lay. It stands before the object goes: from then on the originals count as
    deleted."""

    model_config = _STRICT
    format_version: Literal[1] = 1
    sha256: str
    """Of the object's tar."""
    turn: str
    day: str
    """As the turn's manifest names it; the month, `2026-01`, where no manifest named the object any more."""
    files: Mapping[str, DeletedFile]
    """Name inside the object -> what lay there; size 0 where the object was gone before its tombstone."""
    deleted_at: str
    """ISO 8601 UTC."""
    why: str
    """The rule, as a sentence."""
    by: str
    """Who asked for it: a command, or a Dagster run."""

    @property
    def description(self) -> str:
        """When and why, for a sentence about the originals."""
        return f"deleted on {self.deleted_at} by {self.by} ({self.why})"


class RetentionReason(StrEnum):
    """Why originals stay though their time is over."""

    HELD = "held"
    INTERVENTION = "intervention"
    CITED = "cited"
    ACTIVE = "active"
    """It was restored meanwhile."""
    BUSY = "busy"
    FAULT = "fault"
    """Its object, tombstone or hold is damaged: a fault, and nothing is deleted on the word of one."""


@dataclass(frozen=True, slots=True)
class PrunedTurn:
    """One turn whose originals' time is over."""

    key: TurnKey
    day: str
    """The turn's, as it was archived; of an object that no turn names any more its month, `2026-01`."""
    cold: str
    size: int
    """Bytes of the object on the disk."""
    kept: RetentionReason | None = None
    """None: deleted, or to be deleted where nothing was changed."""
    reason: str = ""
    """Of what is kept, and of an object that no turn names any more."""


@dataclass(frozen=True, slots=True)
class PruneReport:
    """What one run over the cold storage did."""

    older_than_days: int
    dry_run: bool
    pruned: tuple[PrunedTurn, ...] = ()
    kept: tuple[PrunedTurn, ...] = ()
    young: int = 0
    """Archived turns whose time is not over."""
    gone: int = 0
    """Those whose originals were deleted by an earlier run."""
    unread: tuple[str, ...] = ()
    """Objects that no turn names and that do not tell whose they are, a sentence each."""

    @property
    def bytes_freed(self) -> int:
        return sum(turn.size for turn in self.pruned)

    @property
    def faults(self) -> tuple[str, ...]:
        """What is damaged or missing without a tombstone, a sentence each."""
        return (*(f"{turn.key}: {turn.reason}" for turn in self.kept if turn.kept is RetentionReason.FAULT), *self.unread)
