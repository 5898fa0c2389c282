"""The TurnStore port: turns as folders of documents, which are the source of truth (docs/reference/formats.md).

A commit writes files, then context.md, then `turn.json`; a new folder is renamed into place when it is complete. A process that is killed
between any two writes leaves each turn as of its last commit.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId, session_id
from pandora_dagster.contracts.ports.measurement import Clock, TokenMeasure
from pandora_dagster.contracts.ports.object_storage import Locks
from pandora_dagster.contracts.turns import Manifest, PhaseEffects, PhaseRecord, ToolLease, Turn
from pandora_dagster.documents.sections import new_context
from pandora_dagster.errors import DocumentError, InputError, OriginalsDeletedError, StoreError, UnknownTurnError
from pandora_dagster.stores.disk import turn_directory
from pandora_dagster.stores.disk.erasure_intents import ErasureIntents
from pandora_dagster.stores.disk.file_locks import FileLocks
from pandora_dagster.stores.disk.files import disk_errors, document_path_inside, encode_text, path_inside, remove_strays, write_all
from pandora_dagster.stores.disk.layout import LOCK, MANIFEST, REVISIONS, Layout
from pandora_dagster.stores.disk.turn_directory import allocate_numbers
from pandora_dagster.stores.turns import folder_placement
from pandora_dagster.stores.turns.cold_files import ColdFiles, original_turn
from pandora_dagster.stores.turns.commits import (
    CommitRequest,
    check_active,
    context_fields,
    iso,
    keep_replaced,
    prepare_commit,
    release_replaced,
)
from pandora_dagster.stores.turns.folder_placement import TurnPlacement
from pandora_dagster.stores.turns.manifests import render_manifest, updated_manifest
from pandora_dagster.stores.turns.revisions import UNFINISHED, DroppedPhases, drop_phases
from pandora_dagster.stores.turns.tool_leases import ToolLeases
from pandora_dagster.stores.turns.turn_folder import DocumentCache, Stamp, TurnFolder, stamp_of

_MAX_CACHED_MANIFESTS = 64


class TurnFiles:
    """The TurnStore port below a store root. `lock_seconds`: how long to wait for a lock; `locks`: lock files unless given."""

    def __init__(
        self,
        root: Path,
        *,
        counter: TokenMeasure,
        clock: Clock,
        phases: PhaseEffects,
        lock_seconds: float = 10.0,
        locks: Locks | None = None,
    ) -> None:
        self._layout = Layout(root)
        self._locks = locks or FileLocks(root)
        self._counter = counter
        self._clock = clock
        self._phases = phases
        self._lock_seconds = lock_seconds
        self._cold = ColdFiles(root)
        self._erasures = ErasureIntents(root, wait_s=lock_seconds)
        self._tools = ToolLeases(self._layout, self._locks, clock)
        self._texts = DocumentCache[str]()
        self._manifests = DocumentCache[Manifest]()
        self._written_manifests: OrderedDict[Path, tuple[Stamp | None, Manifest]] = OrderedDict()
        """Folder -> the manifest that this process wrote, with the stamp of its file: while that is the same, a commit need not read it."""

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
        """A new open turn with section 0, complete on the disk when this returns; `number`: one that was allocated for it.

        Raises InputError before a number is allocated, StoreError where a turn of that number exists.
        """
        if mode not in ("chat", "code"):
            raise InputError(f"mode {mode[:40]!r}: expected chat or code")
        session, context = session_id(session), _query_document(query)
        with self._erasures.keeping_erasure_out(user):
            remove_strays(path_inside(self._layout.root, self._layout.incoming(user)), now=now.timestamp())
            key = TurnKey(user, number or self.allocate(user, 1)[0])
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
            manifest = updated_manifest(manifest, context_fields(context, where=f"query of {key}", counter=self._counter))
            return self._place(Turn(key, manifest, context))

    def allocate(self, user: UserId, count: int) -> range:
        """`count` new turn numbers, which no other caller gets."""
        path_inside(self._layout.root, self._layout.turns(user))
        with self._erasures.keeping_erasure_out(user):
            return allocate_numbers(self._layout, user, count, seconds=self._lock_seconds)

    def place_many(self, turns: Iterable[TurnPlacement]) -> tuple[Turn, ...]:
        """Store recorded turns, all of whose bytes are on the disk before the first of them appears; some hundred at a time is fastest.

        Hashes and tokens are filled in, and documents that no phase names get the phase `recorded`.
        """
        recorded = tuple(folder_placement.recorded_turn(item, counter=self._counter) for item in turns)
        with ExitStack() as locks:
            for user in sorted({turn.key.user for turn in recorded}):
                locks.enter_context(self._erasures.keeping_erasure_out(user))
            folder_placement.place_folders(self._layout, [folder_placement.new_turn_folder(self._layout, turn) for turn in recorded])
        return recorded

    def load(self, key: TurnKey, *, revision: int | None = None, only: Collection[str] | None = None) -> Turn:
        """The newest revision by default, verified against its manifest; raises UnknownTurnError or DocumentError.

        `only`: the documents that are read and verified beside context.md; such a turn cannot be committed.
        """
        return self._folder(key, revision).turn(only)

    def original(self, key: TurnKey, *, revision: int | None = None, only: Collection[str] | None = None) -> Turn:
        """The turn as it was before it was archived, out of cold storage; any other as `load` gives it. Raises DocumentError.

        Where the originals were deleted by rule, the archived turn is returned.
        """
        manifest = self.manifest(key)
        if manifest.archive is None:
            return self.load(key, revision=revision, only=only)
        number = manifest.revision if revision is None else revision
        try:
            return original_turn(key, number, self._cold.read(manifest.archive))
        except OriginalsDeletedError:
            return self.load(key)

    def manifest(self, key: TurnKey) -> Manifest:
        """The newest revision's manifest; the documents are not read."""
        return self._newest_manifest(self._folder(key, None))

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
        """Files first, context.md next, `turn.json` last; returns the turn in its new state.

        `manifest_fields` are intervention, runtime, summary, replies_to, recorded. Raises DocumentError (section 0 altered,
        a name or text that cannot be stored) and StoreError (the disk, a state that does not follow, a commit in between).
        """
        folder = self._folder(turn.key, turn.manifest.revision)
        request = CommitRequest(phase, context, files or {}, state, manifest_fields)
        prepared = prepare_commit(turn, request, where=str(folder.path), now=self._clock(), counter=self._counter)
        self._check_newest(folder, turn.manifest)
        keep_replaced(folder.path, prepared.replaced)
        write_all(path_inside(self._layout.root, folder.path), prepared.documents)  # before `turn.json` names them
        # The folder is synced with the next phase's documents: a power failure undoes one phase, which then runs again.
        stays_open = prepared.turn.manifest.state is TurnState.OPEN and not prepared.replaced
        self._write_manifest(folder, prepared.turn.manifest, durable_name=not stays_open)
        return prepared.turn

    def reopen(self, turn: Turn, *, phase: str, order: Sequence[str]) -> Turn:
        """Prepare a turn to run `phase` again: that phase and all after it in `order` are dropped.

        Open and halted turns are changed in place. A finished turn is not changed: a numbered revision beside it takes the re-run, and is
        `saved` where only phases after saving are dropped. Where no finished phase is dropped, only a halted state changes.
        """
        is_newest = turn.manifest.state in UNFINISHED or self._newest_manifest(self._folder(turn.key, None)) == turn.manifest
        newest = turn if is_newest else self.load(turn.key)
        check_active(newest.manifest, str(newest.key))
        dropped = DroppedPhases.from_phase(phase, order)
        is_finished = newest.manifest.state not in UNFINISHED
        if not dropped.affects_finished(newest.manifest, self._phases):
            if newest.manifest.state != TurnState.HALTED:
                return newest
            return self._rewrite_manifest(newest, updated_manifest(newest.manifest, {"state": TurnState.OPEN, "intervention": None}))
        after = drop_phases(newest, dropped, self._phases, counter=self._counter)
        return self._add_revision(after) if is_finished else self._rewrite_manifest(newest, after.manifest, after)

    def lock(self, key: TurnKey, *, wait_s: float | None = None) -> AbstractContextManager[object]:
        """Hold the turn's lock; raises StoreError where another process holds it longer than `wait_s`."""
        self._folder(key, 0)
        name = (self._layout.turn(key) / LOCK).relative_to(self._layout.root).as_posix()
        return self._locks.lease(name, what=f"turn {key}", wait_s=self._lock_seconds if wait_s is None else wait_s)

    def phase_lock(self, key: TurnKey) -> AbstractContextManager[object]:
        """The lock of a turn of which no tool runs; raises StoreError where one runs for longer than a lock is waited for."""
        return self._tools.wait_for_end(lambda: self.lock(key), lambda: self.manifest(key), wait_s=self._lock_seconds)

    def tool_lease(self, key: TurnKey) -> AbstractContextManager[ToolLease]:
        """A lease for the time in which a tool runs without the turn's lock. The caller holds the lock when it begins."""
        return self._tools.hold(key)

    def keys(self, user: UserId | None = None) -> Iterable[TurnKey]:
        """All turns, by user and number; from folder names alone."""
        return turn_directory.turn_keys(self._layout, user)

    def users(self) -> tuple[UserId, ...]:
        """Users that have a folder, by name."""
        return turn_directory.user_ids(self._layout)

    def resolve(self, text: str) -> TurnKey:
        """`<user>:turn_000811`, or `turn_000811` / `811` where one user has it; raises UnknownTurnError or BadIdError."""
        return turn_directory.resolve_turn(self._layout, text)

    def path(self, key: TurnKey, *, revision: int | None = None) -> str:
        """The folder of a turn's revision (the newest by default), to show to users."""
        return str(self._folder(key, revision).path)

    def _folder(self, key: TurnKey, revision: int | None) -> TurnFolder:
        base = document_path_inside(self._layout.root, self._layout.turn(key))
        if not base.is_dir():
            raise UnknownTurnError(f"turn {key}: there is no {base}: expected a turn that exists")
        number = turn_directory.newest_revision(base) if revision is None else revision
        folder = self._layout.turn(key, number)
        if not folder.is_dir():
            raise UnknownTurnError(f"turn {key}: it has no revision {number}: expected 0 to {turn_directory.newest_revision(base)}")
        return TurnFolder(self._layout.root, folder, key, number, self._texts, self._manifests)

    def _rewrite_manifest(self, before: Turn, manifest: Manifest, after: Turn | None = None) -> Turn:
        """Write a changed manifest; returns the turn with the documents of `after`, or of `before`."""
        folder = self._folder(before.key, before.manifest.revision)
        self._check_newest(folder, before.manifest)
        changed = updated_manifest(manifest, {"last_activity": iso(self._clock())})
        self._write_manifest(folder, changed)
        documents = after or before
        return Turn(before.key, changed, documents.context, documents.files)

    def _add_revision(self, after: Turn) -> Turn:
        """Store a turn as the next revision."""
        base = self._layout.turn(after.key)
        fields = {"revision": turn_directory.newest_revision(base) + 1, "last_activity": iso(self._clock())}
        turn = Turn(after.key, updated_manifest(after.manifest, fields), after.context, after.files)
        with disk_errors(base):
            (base / REVISIONS).mkdir(exist_ok=True)
        return self._place(turn)

    def _place(self, turn: Turn) -> Turn:
        folder_placement.place_folders(self._layout, [folder_placement.new_turn_folder(self._layout, turn)])
        self._remember_manifest(self._layout.turn(turn.key, turn.manifest.revision), turn.manifest)
        return turn

    def _remember_manifest(self, folder: Path, manifest: Manifest) -> None:
        self._written_manifests[folder] = (stamp_of(folder / MANIFEST), manifest)
        if len(self._written_manifests) > _MAX_CACHED_MANIFESTS:
            self._written_manifests.popitem(last=False)

    def _newest_manifest(self, folder: TurnFolder) -> Manifest:
        written, stamp = self._written_manifests.get(folder.path), stamp_of(folder.path / MANIFEST)
        return written[1] if written and written[0] == stamp is not None else folder.manifest()

    def _check_newest(self, folder: TurnFolder, expected: Manifest) -> None:
        """Raises StoreError where another process changed the turn since it was loaded."""
        if self._newest_manifest(folder) != expected:
            message = f"{folder.path / MANIFEST}: another process committed since this turn was loaded: expected it unchanged"
            raise StoreError(message, hint="load the turn again")

    def _write_manifest(self, folder: TurnFolder, manifest: Manifest, *, durable_name: bool = True) -> None:
        """Write `turn.json`: the commit point. `durable_name`: wait until a power failure cannot restore the earlier one."""
        path = path_inside(self._layout.root, folder.path)
        write_all(path, {MANIFEST: render_manifest(manifest).encode()}, durable_names=durable_name)
        self._remember_manifest(folder.path, manifest)
        release_replaced(folder.path)
        remove_strays(folder.path, now=self._clock().timestamp())


def _query_document(query: str) -> str:
    context = new_context(query).render()
    try:
        encode_text("query", context)
    except DocumentError as error:
        raise InputError(str(error)) from error
    return context
