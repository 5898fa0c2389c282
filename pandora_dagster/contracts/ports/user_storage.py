"""Ports of what is stored of one user, implemented in `stores.user`, and of its erasure, implemented mostly in `stores.erasure`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from sqlite3 import Connection
from typing import Protocol, TypeVar

from pandora_dagster.contracts.ids import SessionId, UserId
from pandora_dagster.contracts.retention import ErasureIntent, SearchedObject
from pandora_dagster.contracts.user.conversations import Continuation, ConversationSummary, SessionRecord
from pandora_dagster.contracts.user.sources import Note, NoteListing, Research, ResearchRow, Visit, VisitRow
from pandora_dagster.contracts.user.summary_levels import LevelSubject, SessionNarrative, UserDigest
from pandora_dagster.contracts.user.user_memory import FactChange, FactLedger, MemoryEntry, MemoryListing, Profile, SessionFacts
from pandora_dagster.errors import DocumentError


class MemoryStore(Protocol):
    """The user's preferences.md and facts.md (decision 20, docs/decisions/20-files-of-a-user.md)."""

    def listing(self, user: UserId) -> MemoryListing:
        """The entries of the pages that can be read, and the faults of the others."""
        ...

    def entries(self, user: UserId) -> tuple[MemoryEntry, ...]:
        """All entries; raises DocumentError where a page cannot be read. For who must not miss one."""
        ...

    def put(self, user: UserId, entry: MemoryEntry, *, instead_of: str = "") -> None:
        """Add an entry; another value of its key stays among its `earlier` ones.

        `instead_of`: the key of an entry of its kind that it contradicts, whose values become earlier ones of the new key.
        """
        ...

    def forget(self, user: UserId, key: str) -> bool:
        """Delete an entry with its earlier values; False where there is none."""
        ...


class SourceStore(Protocol):
    """Cached research and visited pages of each user: files are the truth, an index lists them (specification 004, section 3)."""

    def put(self, user: UserId, record: Research | Visit) -> None:
        """Store a record, all or nothing; it replaces the one of its topic and cache key, or of its visit id."""
        ...

    def research_rows(self, user: UserId) -> tuple[ResearchRow, ...]:
        """Newest first."""
        ...

    def visit_rows(self, user: UserId) -> tuple[VisitRow, ...]:
        """Newest first."""
        ...

    def research(self, user: UserId, topic: str, *, cache_key: str = "") -> Research:
        """The topic's newest record, or that of `cache_key`; raises DocumentError (`missing` where there is none)."""
        ...

    def visit(self, user: UserId, visit_id: str) -> Visit:
        """Raises DocumentError (`missing` where there is none)."""
        ...

    def path(self, user: UserId, logical_id: str) -> str | None:
        """The file behind `research_cache/<topic>.json` or `webpage_cache/<visit>.json`, to show to users; None for another id."""
        ...


class NoteStore(Protocol):
    """Forever memory: a folder of Markdown notes, only read (specification 004, section 13)."""

    def listing(self, user: UserId, query: str = "") -> NoteListing:
        """The notes that can be offered, and those whose header or text matches `query`. A note that cannot be read is reported; the
        others are still listed."""
        ...

    def load(self, user: UserId, name: str) -> Note:
        """A note by the name it is listed under; raises DocumentError (`missing` where there is none)."""
        ...

    def path(self, user: UserId, logical_id: str) -> str | None:
        """The file behind `notes/<name>`, to show to users; None for another id."""
        ...


LedgerT = TypeVar("LedgerT", bound=FactLedger)
LedgerChange = Callable[[LedgerT], tuple[LedgerT, Sequence[FactChange]]]
"""Stored ledger -> changed ledger, and the lines of its audit."""


class FactStore(Protocol):
    """Notable facts of sessions, and with consent a profile of the user (specification 002, section 4). Reading is strict: DocumentError.

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
        """Apply `change` to the profile; None, without a call of `change`, where consent was withdrawn meanwhile."""
        ...

    def consent(self, user: UserId, *, at: str, after_turn: int) -> Profile:
        """Create an empty profile, to which facts up to `after_turn` are never added, or return the existing one."""
        ...

    def erase_profile(self, user: UserId, *, after_turn: int) -> int:
        """Empty the profile and its audit and keep the consent; facts up to `after_turn` are never added again.

        Returns the number of facts."""
        ...

    def withdraw(self, user: UserId) -> int:
        """End consent: profile and audit are deleted. Returns the number of facts."""
        ...

    def erase_sessions(self, user: UserId) -> int:
        """Delete the ledgers and audits of all sessions. Returns the number of facts."""
        ...


class ConversationSummaries(Protocol):
    """The rolling summary of each session; `save` is all-or-nothing."""

    def find(self, user: UserId, session: SessionId) -> ConversationSummary | None:
        """None where there is none yet; raises DocumentError for a damaged one."""
        ...

    def save(self, summary: ConversationSummary) -> ConversationSummary:
        """Writes it unless one that reaches further is stored; returns what is stored now."""
        ...


class Sessions(Protocol):
    """Records of imported conversations, one per user and session; `save` is all-or-nothing."""

    def find(self, user: UserId, session: SessionId) -> SessionRecord | None: ...
    def begin(self, record: SessionRecord) -> SessionRecord:
        """Writes the record unless one is stored; returns what is stored now (two imports at once share its turn numbers)."""
        ...

    def save(self, record: SessionRecord) -> None: ...
    def records(self, user: UserId | None = None, *, on_fault: Callable[[DocumentError], None] | None = None) -> Iterable[SessionRecord]:
        """By user, then by first turn. A damaged one goes to `on_fault` as a DocumentError, which is raised where there is none."""
        ...


class Continuations(Protocol):
    """The places at which clients that name no session continue, by the hash of the conversation so far."""

    def offer(self, user: UserId, conversation_hash: str, continuation: Continuation) -> None:
        """A request whose conversation so far has this hash may go on at `continuation`. Raises StoreError."""
        ...

    def claim(self, user: UserId, conversation_hash: str) -> Iterator[Continuation]:
        """The places that were offered. Each is given once, also where several processes claim; a damaged one is dropped."""
        ...

    def expire(self, user: UserId, before: datetime) -> int:
        """Delete the user's places offered before this time, which no request claimed; returns their number. Raises StoreError."""
        ...


class LevelStore(Protocol):
    """Narratives and digests; reading is strict (DocumentError), a write is all-or-nothing (StoreError)."""

    def narrative(self, user: UserId, session: SessionId) -> SessionNarrative | None:
        """None where there is none."""
        ...

    def narratives(self, user: UserId) -> Iterable[SessionNarrative]:
        """All of a user, by session."""
        ...

    def sessions(self, user: UserId) -> tuple[str, ...]:
        """The sessions that have a readable narrative."""
        ...

    def save_narrative(self, narrative: SessionNarrative) -> None: ...
    def remove_narrative(self, user: UserId, session: SessionId) -> None: ...
    def digest(self, user: UserId) -> UserDigest | None: ...
    def save_digest(self, digest: UserDigest) -> None: ...
    def remove_digest(self, user: UserId) -> None: ...
    def erase(self, user: UserId) -> int:
        """Delete all narratives and the digest of a user, damaged ones too; returns the number of files."""
        ...

    def lock(self, subject: LevelSubject, *, wait_s: float | None = None) -> AbstractContextManager[object]:
        """A lock to hold while a level is made; raises StoreError where another process holds it longer than `wait_s`."""
        ...


class TraceScrubber(Protocol):
    """Finds and replaces the traces of one user: the id, and facts that only this user stated."""

    @property
    def user(self) -> str: ...
    def found_in(self, data: bytes) -> bool:
        """Whether the data contains a trace, in any case."""
        ...

    def scrub(self, text: str) -> str:
        """The text with a mark in place of each trace."""
        ...

    def names_user(self, text: str) -> bool:
        """Whether the text contains the user's id; other traces do not count."""
        ...


class Eraser(Protocol):
    """Counts, erases and searches what one adapter stores of a user; the search is part of the proof."""

    @property
    def step(self) -> str:
        """The name of this adapter's step in reports of progress."""
        ...

    def count(self, user: UserId) -> Mapping[str, int]:
        """Number of the user's objects, by kind."""
        ...

    def erase(self, user: UserId, traces: TraceScrubber) -> Sequence[str]:
        """Erase what is the user's alone, and every trace in what belongs to several users.

        Returns what other users have to know, a sentence each. A second call completes an interrupted one. Raises StoreError.
        """
        ...

    def search(self, traces: TraceScrubber) -> Iterator[SearchedObject]:
        """Every object that this adapter stores, of all users, searched for traces."""
        ...


class ErasureRecords(Protocol):
    """The intents of erasures: no turn of a user begins while one exists. Raises StoreError."""

    def one_at_a_time(self) -> AbstractContextManager[None]:
        """Hold the lock of erasures; raises StoreError where another runs."""
        ...

    def has_intent(self, user: UserId) -> bool: ...
    def facts(self, user: UserId) -> tuple[str, ...]:
        """The facts that an unfinished erasure has to search for."""
        ...

    def write_intent(self, intent: ErasureIntent) -> None:
        """Write the intent in the place of an earlier one of the user."""
        ...

    def remove_intent(self, user: UserId) -> None: ...


class UserDocuments(Protocol):
    """The documents of one user in a store, and those of others. Raises StoreError."""

    def texts(self, user: UserId) -> Iterator[str]:
        """The user's documents, archived originals included; what cannot be read is skipped."""
        ...

    def of_others(self, user: UserId) -> Iterator[bytes]:
        """Files of others that may state a fact of the user."""
        ...

    def notices(self, user: UserId) -> Iterator[str]:
        """One sentence for each thing of the user that an erasure leaves."""
        ...

    def retire_turns(self, user: UserId) -> None:
        """Remove every turn of the user under its lock, so that no commit can follow, and wait until no tool of them runs."""
        ...

    def await_levels(self, user: UserId) -> None:
        """Wait until no process makes a narrative or the digest of the user."""
        ...

    def remove_folder(self, user: UserId) -> None:
        """Delete the user's folder, with anything written since the erasure began."""
        ...


class RecordFolder(Protocol):
    """A folder of SQLite files and captured output that another program writes. Raises StoreError where a program holds a file."""

    def databases(self) -> Iterator[AbstractContextManager[Connection]]:
        """A connection to each SQLite file, which overwrites what it deletes."""
        ...

    def erase_rows(self, traces: TraceScrubber) -> None:
        """Delete the user's rows from all tables; in the remaining rows every trace is replaced."""
        ...

    def erase_texts(self, traces: TraceScrubber) -> None:
        """Delete lines with a trace from captured output and any other file that is no database, and files whose name has one."""
        ...

    def search(self, traces: TraceScrubber) -> Iterator[SearchedObject]:
        """Every file, searched for traces."""
        ...
