"""The erasure of one user and its proof. The intent alone contains words of the user, until a proof has passed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict


class ErasureIntent(BaseModel):
    """`<root>/erasing/<user>.json`: written first and removed last. While it exists no turn of the user begins."""

    model_config = ConfigDict(frozen=True, extra="forbid")
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
    def anything(self) -> bool:
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
    def clean(self) -> bool:
        return not self.hits


@dataclass(frozen=True, slots=True)
class ErasureReport:
    """What one erasure did."""

    found: UserDataCounts
    proof: ErasureProof
    notices: tuple[str, ...] = ()
    """What other users have to know."""
