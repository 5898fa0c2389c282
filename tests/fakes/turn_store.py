"""A turn store in memory. The rules of a commit and of a re-run are the product's own; nothing is written to a disk."""

from collections import defaultdict
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from threading import Lock
from types import MappingProxyType
from typing import Any

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId, session_id, turn_number, user_id
from pandora_dagster.contracts.ports.measurement import Clock, TokenMeasure
from pandora_dagster.contracts.turns import Manifest, PhaseEffects, PhaseRecord, ToolLease, Turn
from pandora_dagster.documents.sections import new_context
from pandora_dagster.errors import DocumentError, InputError, StoreError, UnknownTurnError
from pandora_dagster.stores.disk.files import encode_text
from pandora_dagster.stores.turns.commits import CommitRequest, check_active, context_fields, iso, prepare_commit
from pandora_dagster.stores.turns.folder_placement import recorded_turn
from pandora_dagster.stores.turns.manifests import updated_manifest
from pandora_dagster.stores.turns.revisions import UNFINISHED, DroppedPhases, drop_phases


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass
class MemoryTurnStore:
    """`TurnStore` and `ImportedTurnStore` over a dictionary: each turn is the list of its revisions."""

    counter: TokenMeasure
    phases: PhaseEffects
    clock: Clock = utc_now
    lock_seconds: float = 10.0
    revisions: dict[TurnKey, list[Turn]] = field(default_factory=dict[TurnKey, list[Turn]])
    _numbers: defaultdict[UserId, int] = field(default_factory=lambda: defaultdict(int))
    _leases: set[tuple[TurnKey, int]] = field(default_factory=set[tuple[TurnKey, int]])
    _locks: defaultdict[TurnKey, Lock] = field(default_factory=lambda: defaultdict(Lock))

    def allocate(self, user: UserId, count: int) -> range:
        first = self._numbers[user] + 1
        self._numbers[user] += count
        return range(first, first + count)

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
        metadata: Mapping[str, str] = MappingProxyType({}),
    ) -> Turn:
        if mode not in ("chat", "code"):
            raise InputError(f"mode {mode[:40]!r}: expected chat or code")
        session, context = session_id(session), new_context(query).render()
        try:
            encode_text("query", context)
        except DocumentError as error:
            raise InputError(str(error)) from error
        key = TurnKey(user, number or self.allocate(user, 1)[0])
        if key in self.revisions:
            raise StoreError(f"turn {key}: it exists already: expected a number that no turn has")
        manifest = Manifest(
            user_id=user,
            turn_id=key.turn_id,
            session_id=session,
            mode=mode,
            created_at=iso(now),
            last_activity=iso(now),
            replies_to=replies_to,
            metadata=metadata,
        )
        fields = context_fields(context, where=f"query of {key}", counter=self.counter)
        turn = Turn(key, updated_manifest(manifest, fields), context)
        self.revisions[key] = [turn]
        return turn

    def place_many(self, turns: Iterable[tuple[TurnKey, Mapping[str, str], Manifest]]) -> tuple[Turn, ...]:
        made = tuple(recorded_turn(item, counter=self.counter) for item in turns)
        for turn in made:
            if turn.key in self.revisions:
                raise StoreError(f"turn {turn.key}: it exists already: expected a number that no turn has")
        self.revisions |= {turn.key: [turn] for turn in made}
        return made

    def load(self, key: TurnKey, *, revision: int | None = None, only: Collection[str] | None = None) -> Turn:
        found = self.revisions.get(key)
        if found is None:
            raise UnknownTurnError(f"turn {key}: not stored: expected a turn that exists")
        numbers = [one.manifest.revision for one in found]  # an archived turn has its newest one alone
        if revision is not None and revision not in numbers:
            raise UnknownTurnError(f"turn {key}: it has no revision {revision}: expected one of {numbers}")
        turn = found[-1 if revision is None else numbers.index(revision)]
        return turn if only is None else replace(turn, files={name: text for name, text in turn.files.items() if name in only})

    def original(self, key: TurnKey, *, revision: int | None = None, only: Collection[str] | None = None) -> Turn:
        return self.load(key, revision=revision, only=only)

    def manifest(self, key: TurnKey) -> Manifest:
        return self.load(key).manifest

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
        wanted = CommitRequest(phase, context, files or {}, state, manifest_fields)
        prepared = prepare_commit(turn, wanted, where=str(turn.key), now=self.clock(), counter=self.counter)
        self._replace(turn.manifest, prepared.turn)
        return prepared.turn

    def reopen(self, turn: Turn, *, phase: str, order: Sequence[str]) -> Turn:
        newest = turn if turn.manifest.state in UNFINISHED else self.load(turn.key)
        check_active(newest.manifest, str(newest.key))
        dropped = DroppedPhases.from_phase(phase, order)
        if not dropped.affects_finished(newest.manifest, self.phases):
            if newest.manifest.state != TurnState.HALTED:
                return newest
            opened = self._updated(newest, state=TurnState.OPEN, intervention=None, last_activity=iso(self.clock()))
            self._replace(newest.manifest, opened)
            return opened
        after = drop_phases(newest, dropped, self.phases, counter=self.counter)
        if newest.manifest.state in UNFINISHED:
            rewritten = self._updated(after, last_activity=iso(self.clock()))
            self._replace(newest.manifest, rewritten)
            return rewritten
        revision = self._updated(after, revision=len(self.revisions[turn.key]), last_activity=iso(self.clock()))
        self.revisions[turn.key].append(revision)
        return revision

    @contextmanager
    def lock(self, key: TurnKey, *, wait_s: float | None = None) -> Generator[None]:
        self.load(key)
        if not self._locks[key].acquire(timeout=self.lock_seconds if wait_s is None else wait_s):
            raise StoreError(f"turn {key}: in use by another process: expected it to be free")
        try:
            yield
        finally:
            self._locks[key].release()

    @contextmanager
    def phase_lock(self, key: TurnKey) -> Generator[None]:
        with self.lock(key):
            if (run := self.manifest(key).tool_run) and (key, run.lease) in self._leases:
                raise StoreError(f"turn {key}: its tool {run.tool} runs: expected it to have ended")
            yield

    @contextmanager
    def tool_lease(self, key: TurnKey) -> Generator[ToolLease]:
        lease = ToolLease(next(number for number in range(len(self._leases) + 1) if (key, number) not in self._leases), "a test")
        self._leases.add((key, lease.number))
        try:
            yield lease
        finally:
            self._leases.discard((key, lease.number))

    def keys(self, user: UserId | None = None) -> Iterable[TurnKey]:
        return sorted((key for key in self.revisions if user in (None, key.user)), key=lambda key: (key.user, key.number))

    def users(self) -> tuple[UserId, ...]:
        return tuple(sorted({key.user for key in self.revisions}))

    def resolve(self, text: str) -> TurnKey:
        owner, colon, short = text.strip().rpartition(":")
        number = int(short) if short.isdecimal() else turn_number(short)
        users = (user_id(owner),) if colon else self.users()
        found = [key for user in users if (key := TurnKey(user, number)) in self.revisions]
        if len(found) != 1:
            raise UnknownTurnError(f"turn {text[:80]!r}: {len(found)} turns fit: expected one that exists")
        return found[0]

    def path(self, key: TurnKey, *, revision: int | None = None) -> str:
        return f"memory/{key}/{self.load(key, revision=revision).manifest.revision}"

    def _replace(self, known: Manifest, after: Turn) -> None:
        """Store `after` where the newest revision is still the one that the caller loaded."""
        if self.load(after.key).manifest != known:
            raise StoreError(f"turn {after.key}: another process committed since this turn was loaded: expected it unchanged")
        self.revisions[after.key][-1] = after

    def _updated(self, turn: Turn, **fields: object) -> Turn:
        return Turn(turn.key, updated_manifest(turn.manifest, fields), turn.context, turn.files)
