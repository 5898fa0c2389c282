"""Ports of turn storage: allocating, reading, committing and listing turns. `stores.turns` implements them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from pandora_dagster.contracts.archive_records import TurnActivity
from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.contracts.turns import (
    Candidate,
    FoundMessage,
    IndexedMessage,
    Manifest,
    PhaseRecord,
    SearchFilters,
    ToolLease,
    Turn,
    TurnRow,
)


class VectorIndex(Protocol):
    """Vectors of messages. `put` and `similarities` never raise: without vectors search uses words only."""

    @property
    def name(self) -> str:
        """The name of the embedding model."""
        ...

    def put(self, rows: Sequence[TurnRow]) -> None:
        """Store the vectors of these turns' messages; they replace older ones."""
        ...

    def similarities(self, user: str, *wordings: str) -> Mapping[int, float]:
        """Number of each document of the user -> the highest cosine, -1 to 1, between its vectors and those of `wordings`."""
        ...

    def check(self) -> int:
        """The length of the model's vectors, from a trial call; raises ModelError."""
        ...

    def check_stored_model(self) -> None:
        """Raises DamagedIndexError where the stored vectors are of another model."""
        ...


class TurnStore(Protocol):
    """The documents, which are the source of truth. Every write is all-or-nothing; `turn.json` is the commit point."""

    def allocate(self, user: UserId, count: int) -> range:
        """`count` consecutive numbers, allocated atomically and never reused."""
        ...

    def start(
        self,
        user: UserId,
        query: str,
        *,
        session: SessionId,
        mode: str,
        now: datetime,
        replies_to: str | None = None,
        number: int | None = None,
        metadata: Mapping[str, str] = ...,
    ) -> Turn:
        """A new open turn with section 0. `number`: one that was allocated for it; raises StoreError where a turn of it exists.
        `metadata`: of the client, stored in the manifest; none where not given."""
        ...

    def place_many(self, turns: Iterable[tuple[TurnKey, Mapping[str, str], Manifest]]) -> tuple[Turn, ...]:
        """Each turn appears at once, with all its documents (`context.md` among the files). Hashes and tokens are filled in.
        Raises StoreError where a turn already exists."""
        ...

    def load(self, key: TurnKey, *, revision: int | None = None, only: Collection[str] | None = None) -> Turn:
        """The newest revision by default; verifies hashes; raises UnknownTurnError or DocumentError.

        `only`: the documents to read beside context.md; such a turn must not be committed.
        """
        ...

    def original(self, key: TurnKey, *, revision: int | None = None, only: Collection[str] | None = None) -> Turn:
        """The turn as it was before archival, from cold storage; as it is where it is not archived, or its originals were deleted by rule.

        Raises DocumentError."""
        ...

    def manifest(self, key: TurnKey) -> Manifest: ...
    def commit(
        self,
        turn: Turn,
        *,
        phase: PhaseRecord | None,
        context: str | None = None,
        files: Mapping[str, str] | None = None,
        state: TurnState | None = None,
        **manifest_fields: Any,
    ) -> Turn:
        """Files first, context.md next, `turn.json` last; returns the turn in its new state."""
        ...

    def reopen(self, turn: Turn, *, phase: str, order: Sequence[str]) -> Turn:
        """The turn made ready to run `phase`: that phase and all after it in `order` are dropped. A turn that was
        saved (or clarified) does not change: a numbered revision beside it takes the re-run."""
        ...

    def lock(self, key: TurnKey, *, wait_s: float | None = None) -> AbstractContextManager[object]:
        """A lock to hold while the turn is changed; raises StoreError where another process holds it too long (`wait_s` where given)."""
        ...

    def phase_lock(self, key: TurnKey) -> AbstractContextManager[object]:
        """The lock of a turn of which no tool runs; raises StoreError where one runs too long, with its name and who runs it."""
        ...

    def tool_lease(self, key: TurnKey) -> AbstractContextManager[ToolLease]:
        """A lease for the time in which a tool runs without the turn's lock; taken under it, and lost where its holder dies."""
        ...

    def keys(self, user: UserId | None = None) -> Iterable[TurnKey]: ...
    def users(self) -> tuple[UserId, ...]: ...
    def resolve(self, text: str) -> TurnKey:
        """`<user>:turn_000811`, or `turn_000811` / `811` where that is unique; raises UnknownTurnError."""
        ...

    def path(self, key: TurnKey, *, revision: int | None = None) -> str:
        """The folder of a turn's revision, to show to users."""
        ...


class TurnIndex(Protocol):
    """An index over the documents, which rebuild it at any time."""

    def put(self, rows: Sequence[TurnRow]) -> None: ...
    def rows(
        self, user: str | None = None, *, session: str | None = None, before: int | None = None, limit: int | None = None
    ) -> tuple[TurnRow, ...]:
        """Newest last, without turns numbered `before` or later; `limit` keeps the newest."""
        ...

    def update_states(self, manifests: Sequence[Manifest]) -> None:
        """Set state, tokens and context hash of rows whose texts do not change; turns without a row are ignored."""
        ...

    def activities(self, *, archived: bool | None = None, between: tuple[str, str] = ...) -> Iterator[TurnActivity]:
        """State and last activity of every turn, by user and number, in bounded memory.

        `archived`: only archived turns, or only others; `between`: only turns whose last activity is from the first time to before the
        second, compared as text.
        """
        ...

    def missing(self, keys: Sequence[TurnKey]) -> tuple[TurnKey, ...]:
        """The turns that have no row."""
        ...

    def sessions(self, user: str) -> Mapping[str, tuple[TurnActivity, ...]]:
        """The user's sessions by id, with state and last activity of each turn, by number."""
        ...

    def outdated(self, manifests: Sequence[Manifest]) -> tuple[Manifest, ...]:
        """The manifests whose row is missing or has another state, last activity, number of tokens or context hash."""
        ...

    def candidates(self, user: str, query: str, *, limit: int, before: int | None = None) -> tuple[Candidate, ...]:
        """The user's own turns that match `query`, best first, without turns numbered `before` or later."""
        ...


class SearchIndex(TurnIndex, Protocol):
    """A turn index that also finds single messages. It answers from its rows alone; the documents rebuild it at any time."""

    def messages(
        self, user: str, query: str, *, limit: int, filters: SearchFilters = ..., before: int | None = None
    ) -> tuple[FoundMessage, ...]:
        """The user's own messages that match `query` or are near a match, best first; turns numbered `before` or later are excluded."""
        ...

    def relevant(self, query: str, messages: Sequence[FoundMessage]) -> Sequence[FoundMessage]:
        """The found messages that are relevant to `query`, in their order."""
        ...

    def neighbours(self, messages: Sequence[FoundMessage], relevant: Sequence[FoundMessage]) -> Sequence[FoundMessage]:
        """Found messages near the best relevant ones, for what a budget leaves."""
        ...

    def unmatched_filters(self, user: str, filters: SearchFilters) -> Mapping[str, str]:
        """Filter -> its value, of session, intent, topic and state, where no turn of the user has that value."""
        ...

    def messages_by_turn(self, user: str) -> Mapping[int, tuple[IndexedMessage, ...]]:
        """The messages of a user's turns by the turn's number, as they were put."""
        ...

    def remove(self, user: str, numbers: Sequence[int]) -> None:
        """Remove turns from the index; numbers without a row are ignored."""
        ...

    def rebuild(self, batches: Iterable[Sequence[TurnRow]]) -> Path | None:
        """Replace all rows by `batches`; the old rows answer until the new ones are complete.

        Returns the new path of a damaged index file, which is kept. Raises StoreError."""
        ...
