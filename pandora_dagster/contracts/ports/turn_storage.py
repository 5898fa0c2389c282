"""The ports: what the inner rooms ask of the outer ones. Adapters in `runtime`, `stores` and `tools` fill them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Protocol

from pandora_dagster.contracts.archive_records import TurnActivity
from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.contracts.turns import Candidate, Manifest, PhaseRecord, Turn, TurnRow


class VectorIndex(Protocol):
    """Vectors of what turns say, kept for the search. Never raises: without them the search goes by words alone."""

    def put(self, rows: Sequence[TurnRow]) -> None:
        """The vectors of these turns' messages, in the place of older ones."""
        ...


class TurnStore(Protocol):
    """The documents: the truth. Every write is all-or-nothing; `turn.json` is the commit point."""

    def allocate(self, user: UserId, count: int) -> range:
        """`count` numbers in a row, given atomically and never reused."""
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
    ) -> Turn:
        """A new open turn with section 0. `number`: one that was allocated for it; raises StoreError where a turn of it stands there."""
        ...

    def load(self, key: TurnKey, *, revision: int | None = None, only: Collection[str] | None = None) -> Turn:
        """The newest revision unless told; verifies hashes; raises UnknownTurnError or DocumentError.

        `only`: the documents that are read beside context.md; a turn loaded so is for reading, not for a commit.
        """
        ...

    def original(self, key: TurnKey, *, revision: int | None = None, only: Collection[str] | None = None) -> Turn:
        """The turn as it was before it was archived, out of cold storage; any other, and one whose originals were deleted by rule, as it
        stands. Raises DocumentError."""
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
        """Files first, context.md next, `turn.json` last; returns the turn as it now stands."""
        ...

    def reopen(self, turn: Turn, *, phase: str, order: Sequence[str]) -> Turn:
        """The turn made ready to run `phase`: that phase and all after it in `order` are dropped. A turn that was
        saved (or clarified) is not touched: a numbered revision beside it takes the re-run."""
        ...

    def lock(self, key: TurnKey, *, wait_s: float | None = None) -> AbstractContextManager[None]:
        """Held while a phase runs; raises StoreError where another process holds it too long (`wait_s` where given)."""
        ...

    def keys(self, user: UserId | None = None) -> Iterable[TurnKey]: ...
    def users(self) -> tuple[UserId, ...]: ...
    def resolve(self, text: str) -> TurnKey:
        """`<user>:turn_000811`, or `turn_000811` / `811` where that is unique; raises UnknownTurnError."""
        ...

    def path(self, key: TurnKey, *, revision: int | None = None) -> str:
        """The folder of a turn's revision, for people."""
        ...


class ImportedTurnStore(Protocol):
    """Where finished turns of imported conversations go."""

    def allocate(self, user: UserId, count: int) -> range:
        """`count` numbers in a row, given atomically and never reused."""
        ...

    def place_many(self, turns: Iterable[tuple[TurnKey, Mapping[str, str], Manifest]]) -> tuple[Turn, ...]:
        """Each turn appears at once, with all its documents (`context.md` among the files). Hashes and tokens are filled in.
        Raises StoreError where a turn stands there already."""
        ...

    def load(self, key: TurnKey, *, revision: int | None = None) -> Turn:
        """Raises UnknownTurnError for a turn that is not there."""
        ...


class TurnIndex(Protocol):
    """DuckDB: an index over the documents, rebuilt from them at any time."""

    def put(self, rows: Sequence[TurnRow]) -> None: ...
    def rows(
        self, user: str | None = None, *, session: str | None = None, before: int | None = None, limit: int | None = None
    ) -> tuple[TurnRow, ...]:
        """Newest last; turns numbered `before` or later stay out; `limit` keeps the newest."""
        ...

    def update_states(self, manifests: Sequence[Manifest]) -> None:
        """State, tokens and context hash of rows whose texts stay as they are; turns that have no row are passed over."""
        ...

    def activities(self, *, archived: bool | None = None, between: tuple[str, str] = ...) -> Iterator[TurnActivity]:
        """Of every turn its state and last activity, nothing else, user by user and by number, in bounded memory.

        `archived`: only those that are, or are not; `between`: only where the text of the last activity lies from one to before the other.
        """
        ...

    def missing(self, keys: Sequence[TurnKey]) -> tuple[TurnKey, ...]:
        """Those that have no row."""
        ...

    def sessions(self, user: str) -> Mapping[str, tuple[TurnActivity, ...]]:
        """The user's sessions by id: of each turn its state and last activity, nothing else, by number."""
        ...

    def outdated(self, manifests: Sequence[Manifest]) -> tuple[Manifest, ...]:
        """Those whose row is missing, or has another state, last activity, number of tokens or context hash."""
        ...

    def candidates(self, user: str, query: str, *, limit: int, before: int | None = None) -> tuple[Candidate, ...]:
        """The user's own turns that may matter for `query`, best first; turns numbered `before` or later stay out."""
        ...
