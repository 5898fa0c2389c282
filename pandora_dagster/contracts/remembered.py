"""What is remembered of a person: the stored values, and the ports of the stores that hold memory, sources, facts and summaries."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pandora_dagster.contracts.conversations import ConversationSummary
from pandora_dagster.contracts.facts import FactChange, FactLedger, Profile, SessionFacts
from pandora_dagster.contracts.ids import SessionId, UserId
from pandora_dagster.contracts.sources import Note, NoteListing, Research, ResearchRow, Visit, VisitRow


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """004 section 3.4."""

    key: str
    value: Any
    confidence: float
    source_turn: int | None
    last_updated: str
    kind: str = "preference"
    """`preference` or `fact`."""
    earlier: tuple["EarlierValue", ...] = ()
    """What the key said before, newest first: a contradiction keeps both, and the entry itself is the current one."""


@dataclass(frozen=True, slots=True)
class EarlierValue:
    """A value that a newer one of the same key contradicts."""

    value: Any
    confidence: float
    source_turn: int | None
    last_updated: str


class MemoryStore(Protocol):
    """preferences.md and facts.md (DECISIONS 20)."""

    def entries(self, user: UserId) -> tuple[MemoryEntry, ...]: ...
    def put(self, user: UserId, entry: MemoryEntry) -> None:
        """Add an entry; another value of its key stays among its `earlier` ones."""
        ...

    def forget(self, user: UserId, key: str) -> bool:
        """Take an entry away with its earlier values; False where there is none."""
        ...


class SourceStore(Protocol):
    """Cached research and visited pages of each user: files are the truth, an index says which there are (004 section 3)."""

    def put_research(self, user: UserId, research: Research) -> None:
        """Store a record in the place of the one of its topic and cache key; all or nothing."""
        ...

    def put_visit(self, user: UserId, visit: Visit) -> None: ...
    def research_rows(self, user: UserId) -> tuple[ResearchRow, ...]:
        """Newest first."""
        ...

    def visit_rows(self, user: UserId) -> tuple[VisitRow, ...]:
        """Newest first."""
        ...

    def research(self, user: UserId, topic: str) -> Research:
        """The topic's newest record; raises DocumentError (`missing` where there is none)."""
        ...

    def visit(self, user: UserId, visit_id: str) -> Visit:
        """Raises DocumentError (`missing` where there is none)."""
        ...

    def path(self, user: UserId, logical_id: str) -> str | None:
        """The file behind `research_cache/<topic>.json` or `webpage_cache/<visit>.json`, for people; None for another id."""
        ...


class NoteStore(Protocol):
    """Forever memory: a folder of Markdown notes, only read (004 section 13)."""

    def listing(self, user: UserId, query: str = "") -> NoteListing:
        """The notes that can be offered, and those whose header or text `query` leads to; one that can not be read is told, and
        costs nothing else."""
        ...

    def load(self, user: UserId, name: str) -> Note:
        """A note by the name it is listed under; raises DocumentError (`missing` where there is none)."""
        ...

    def path(self, user: UserId, logical_id: str) -> str | None:
        """The file behind `notes/<name>`, for people; None for another id."""
        ...


L = TypeVar("L", bound=FactLedger)
LedgerChange = Callable[[L], tuple[L, Sequence[FactChange]]]
"""What a ledger becomes, and what its audit says of it."""


class FactStore(Protocol):
    """Notable facts of sessions, and with consent a profile of the person (002 section 4). Reading is strict: DocumentError.

    A change is all-or-nothing and happens while no other process changes the same ledger; its audit is written before it.
    """

    def session(self, user: UserId, session: SessionId) -> SessionFacts:
        """The session's ledger, an empty one where nothing was stated yet."""
        ...

    def change_session(self, user: UserId, session: SessionId, change: LedgerChange[SessionFacts]) -> SessionFacts: ...
    def profile(self, user: UserId) -> Profile | None:
        """None without consent."""
        ...

    def change_profile(self, user: UserId, change: LedgerChange[Profile]) -> Profile | None:
        """Not called, and None, where consent was withdrawn meanwhile."""
        ...

    def consent(self, user: UserId, *, at: str, after_turn: int) -> Profile:
        """Begin an empty profile, or leave the one that is there."""
        ...

    def erase_profile(self, user: UserId, *, after_turn: int) -> int:
        """Empty the profile and its audit, consent stays; facts up to `after_turn` never come back. Returns how many facts went."""
        ...

    def withdraw(self, user: UserId) -> int:
        """End consent: profile and audit are deleted. Returns how many facts went."""
        ...

    def erase_sessions(self, user: UserId) -> int:
        """Delete the ledgers and audits of all sessions. Returns how many facts went."""
        ...


class ConversationSummaries(Protocol):
    """The rolling summary of each session; `save` is all-or-nothing."""

    def find(self, user: UserId, session: SessionId) -> ConversationSummary | None:
        """None where there is none yet; raises DocumentError for a damaged one."""
        ...

    def save(self, summary: ConversationSummary) -> ConversationSummary:
        """Writes it unless one that reaches further stands there; returns what stands there now."""
        ...
