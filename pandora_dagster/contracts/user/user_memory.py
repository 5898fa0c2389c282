"""Memory of a session and, with consent, of a user (specification 002, section 4): facts, their changes, their audit."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from pandora_dagster.contracts.strict_model import StrictModel
from pandora_dagster.errors import DocumentError

MAX_SESSION_FACTS = 20
MAX_PROFILE_FACTS = 50
MAX_FACT_CHARACTERS = 400
"""Characters: a fact is a sentence."""
FactCategory = Literal["Emotional", "People", "Logistics", "Conflict", "History"]
FactText = Annotated[str, Field(min_length=1, max_length=MAX_FACT_CHARACTERS)]
ChangeKind = Literal["add", "reword", "supersede", "delete", "leave_out", "refuse"]


class FactUpsert(StrictModel):
    """One line of a diff: a new fact; with `id` another wording of that fact, which supersedes it where its values differ."""

    id: str | None = None
    category: FactCategory
    fact: FactText
    replaces: str | None = None
    """Id of an earlier fact that this one contradicts: both are kept, and the earlier one is no longer current."""


class FactsDiff(StrictModel):
    """Changes of a ledger in a call's answer (specification 002, section 4, "Diff-based updates")."""

    upsert: Annotated[tuple[FactUpsert, ...], Field(max_length=MAX_PROFILE_FACTS)] = ()
    delete: tuple[str, ...] = ()


class NotableFact(StrictModel):
    """One fact with its origin. Ids are never reused."""

    id: str
    category: FactCategory
    fact: FactText
    turn: Annotated[int, Field(ge=1)]
    """The turn in which the user stated it."""
    stated_at: str
    """ISO 8601 UTC, when that turn began."""
    superseded_by: str | None = None
    superseded_at: str | None = None
    origin: str = ""
    """In a profile: `<session>/<fact id>` of the session's fact from which it was made."""

    @property
    def is_current(self) -> bool:
        """Whether nothing newer contradicts it."""
        return self.superseded_by is None


class FactLedger(StrictModel):
    """Facts in the order in which they were stated."""

    format_version: Literal[1] = 1
    user_id: str
    next_id: Annotated[int, Field(ge=1)] = 1
    changes: Annotated[int, Field(ge=0)] = 0
    """Number of the last applied change; later lines of the audit do not count."""
    facts: tuple[NotableFact, ...] = ()


class SessionFacts(FactLedger):
    """The ledger of one session."""

    session_id: str
    facts: Annotated[tuple[NotableFact, ...], Field(max_length=MAX_SESSION_FACTS)] = ()
    linked_sessions: tuple[str, ...] = ()
    """Sessions whose turns an answer of this session cited."""


class Profile(FactLedger):
    """Facts about a user across sessions. It exists only while the user consents."""

    consented_at: str
    after_turn: Annotated[int, Field(ge=0)]
    """Facts stated up to this turn are never added: consent is not retroactive, and erased facts stay erased."""
    facts: Annotated[tuple[NotableFact, ...], Field(max_length=MAX_PROFILE_FACTS)] = ()


class FactChange(StrictModel):
    """One line of the append-only audit beside a ledger."""

    change: int
    at: str
    turn: str
    """The turn that caused the change."""
    call: str
    """The call that made the change; "" for a rule."""
    kind: ChangeKind
    id: str
    before: NotableFact | None = None
    after: NotableFact | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """One stored preference or fact of the user (specification 004, section 3.4)."""

    key: str
    value: Any
    confidence: float
    source_turn: int | None
    last_updated: str
    kind: str = "preference"
    """`preference` or `fact`."""
    earlier: tuple["EarlierValue", ...] = ()
    """Earlier values of the key, newest first: a contradiction keeps both, and the entry itself is the current one."""
    until: str = ""
    """ISO date of the last day on which the value holds; "" where it has no end."""

    def is_over(self, today: str) -> bool:
        """Whether the value no longer holds on `today`, an ISO date."""
        return bool(self.until) and self.until < today


@dataclass(frozen=True, slots=True)
class MemoryListing:
    """The entries of the readable pages, preferences first; name of each unreadable page -> its fault, with the remedy as hint."""

    entries: tuple[MemoryEntry, ...] = ()
    faults: Mapping[str, DocumentError] = field(default_factory=dict[str, DocumentError])


@dataclass(frozen=True, slots=True)
class EarlierValue:
    """A value that a newer one of the same key contradicts."""

    value: Any
    confidence: float
    source_turn: int | None
    last_updated: str
    key: str = ""
    """The key under which it was stored, where that was another one."""
