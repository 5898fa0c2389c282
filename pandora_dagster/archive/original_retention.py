"""Retention of the originals of archived turns: which are deleted, which are kept and why, and the order of a deletion.

Writing the tombstone is the commit point: before it the originals exist, after it they count as deleted, whatever a crash left of the
object. Then the turn's row is built from its compressed documents, then the object is deleted; the next run finishes an interrupted one.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256

from pandora_dagster.archive.archive_selection import EligibilityRule, current_eligibility
from pandora_dagster.archive.turn_archival import ArchiveContext
from pandora_dagster.contracts.archive_records import ArchiveRecord, ColdLocation
from pandora_dagster.contracts.ids import TurnKey, turn_number
from pandora_dagster.contracts.retention import DeletedFile, PrunedTurn, PruneReport, RetentionReason, Tombstone
from pandora_dagster.contracts.turns import Manifest, Turn
from pandora_dagster.documents.citations import source_references
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.errors import DocumentError, PandoraError, StoreError, UnknownTurnError

LOCK_WAIT_S = 1.0
"""Seconds to wait for a turn that another process holds; the next run takes it."""
SUPERSEDED_REASON = "an object of an earlier archival"


def prune_superseded(
    ctx: ArchiveContext, named: Collection[str], *, before: datetime, by: str, dry_run: bool
) -> Iterator[PrunedTurn | str]:
    """Delete objects written before `before` that no turn names: not in `named` (paths below the root), their turn archived in another.

    A turn that was restored, changed and archived again leaves such an object; the newer object contains what it held, and is verified
    first. The object of a restored or missing turn is kept: it may be the last copy. Each deletion leaves a tombstone. An unreadable
    object is kept and yields a sentence. Raises StoreError where the disk refuses.
    """
    for place in ctx.cold.objects(before=before):
        if place.path in named:
            continue
        try:
            key, files = ctx.cold.unpack(place)
        except DocumentError as error:
            yield f"{error}; no turn names it, and it is kept"
            continue
        deleted_files = {name: DeletedFile(sha256=sha256(data).hexdigest(), size=len(data)) for name, data in sorted(files.items())}
        month = "-".join(place.path.split("/")[2:4])
        stone = Tombstone(
            sha256=place.sha256, turn=str(key), day=month, files=deleted_files, deleted_at=ctx.deps.now, why=SUPERSEDED_REASON, by=by
        )
        if (turn := _prune_object(key, place, ctx, stone, dry_run=dry_run)) is not None:
            yield turn


def _prune_object(key: TurnKey, place: ColdLocation, ctx: ArchiveContext, stone: Tombstone, *, dry_run: bool) -> PrunedTurn | None:
    """Delete one object under its turn's lock; None where the turn names it by now, or is active."""

    def kept(why: RetentionReason, reason: str) -> PrunedTurn:
        return PrunedTurn(key, stone.day, place.path, place.size, why, reason)

    try:
        with ctx.deps.turns.lock(key, wait_s=LOCK_WAIT_S):
            record = ctx.deps.turns.manifest(key).archive
            if record is None or record.cold == place.path:
                return None
            if fault := ctx.cold.verify(record):
                return kept(RetentionReason.FAULT, f"the object that the turn names now is damaged: {fault}")
            if not dry_run:
                ctx.cold.write_tombstone(place, stone)
                ctx.cold.delete(place)
            return PrunedTurn(key, stone.day, place.path, place.size, reason=SUPERSEDED_REASON)
    except (UnknownTurnError, DocumentError) as error:
        return kept(RetentionReason.FAULT, f"it may be the last copy: {error}")
    except StoreError as error:
        return kept(RetentionReason.BUSY, _busy_reason(error))


OnTurn = Callable[[PrunedTurn], None]


@dataclass(frozen=True, slots=True)
class LiveCitations:
    """Turns that the documents of live turns cite as sources."""

    by: Mapping[TurnKey, TurnKey]
    """Turn -> a live turn that cites it."""
    unread: Mapping[str, TurnKey]
    """User -> an unreadable turn of this user, which may cite anything."""

    def reason(self, key: TurnKey) -> str:
        """Why the turn's originals are needed; "" where no live turn cites it."""
        if citing := self.by.get(key):
            return f"{citing} cites it, which is not archived"
        if unread := self.unread.get(key.user):
            return f"{unread} cannot be read, and may cite it"
        return ""


@dataclass(frozen=True, slots=True)
class _PruneRule:
    """The rule of one run."""

    ctx: ArchiveContext
    keeps: EligibilityRule
    before: datetime
    days: int
    cited: "LiveCitations"
    by: str

    @property
    def why(self) -> str:
        return f"originals of turns archived more than {self.days} days ago"


def prune(ctx: ArchiveContext, *, older_than_days: int, by: str, dry_run: bool = False, on_turn: OnTurn = lambda turn: None) -> PruneReport:
    """Delete the originals of turns archived more than `older_than_days` ago, unless a live turn cites them, and equally old objects that
    no turn names.

    `by`: who asked for it. `on_turn` receives each turn whose retention is over. Raises StoreError where the disk or the index refuses.
    """
    now = ctx.deps.clock()
    rule = _PruneRule(ctx, current_eligibility(ctx), now - timedelta(days=older_than_days), older_than_days, cited_by_live_turns(ctx), by)
    pruned: list[PrunedTurn] = []
    kept: list[PrunedTurn] = []
    unread: list[str] = []
    named: set[str] = set()
    young = gone = 0
    for manifest, record in archived_manifests(ctx):
        named.add(record.cold)
        if datetime.fromisoformat(record.archived_at) >= rule.before:
            young += 1
            continue
        turn = _judge_turn(manifest, record, rule) if dry_run else _prune_turn(manifest.key, rule)
        if turn is None:
            gone += 1
            continue
        (kept if turn.kept_because else pruned).append(turn)
        on_turn(turn)
    for left in prune_superseded(ctx, named, before=rule.before, by=by, dry_run=dry_run):
        if isinstance(left, str):
            unread.append(left)
        else:
            (kept if left.kept_because else pruned).append(left)
            on_turn(left)
    if not dry_run:
        ctx.cold.remove_partial_objects()
    return PruneReport(older_than_days, dry_run, tuple(pruned), tuple(kept), young, gone, tuple(unread))


def archived_manifests(ctx: ArchiveContext) -> Iterator[tuple[Manifest, ArchiveRecord]]:
    """Every readable archived turn with its record; the checks of the days report the others."""
    for key in ctx.deps.turns.keys(None):
        try:
            manifest = ctx.deps.turns.manifest(key)
        except (DocumentError, StoreError, UnknownTurnError):
            continue
        if manifest.archive is not None:
            yield manifest, manifest.archive


def cited_by_live_turns(ctx: ArchiveContext) -> LiveCitations:
    """Citations of the live turns of the store. A turn cites turns of its own user only."""
    found: dict[TurnKey, TurnKey] = {}
    unread: dict[str, TurnKey] = {}
    for key in ctx.deps.turns.keys(None):
        try:
            manifest = ctx.deps.turns.manifest(key)
            context = None if manifest.archive else ContextDocument.parse(ctx.deps.turns.load(key).context)
        except UnknownTurnError:
            continue
        except (DocumentError, StoreError):
            unread[key.user] = key
            continue
        for section in context.sections if context else ():
            for source in source_references(section.text):
                if source.turn_id:
                    found.setdefault(TurnKey(key.user, turn_number(source.turn_id)), key)
    return LiveCitations(found, unread)


def _prune_turn(key: TurnKey, rule: _PruneRule) -> PrunedTurn | None:
    """Judge one turn by its manifest under its lock and delete its originals; None where they were deleted before."""
    ctx = rule.ctx
    try:
        with ctx.deps.turns.lock(key, wait_s=LOCK_WAIT_S):
            manifest = ctx.deps.turns.manifest(key)
            if manifest.archive is None:
                return PrunedTurn(key, "", "", 0, RetentionReason.ACTIVE, "it is no longer archived")
            turn = _judge_turn(manifest, manifest.archive, rule)
            if turn is not None and turn.kept_because is None:
                _delete_originals(manifest, manifest.archive, rule)
            return turn
    except DocumentError as error:
        return PrunedTurn(key, "", "", 0, RetentionReason.FAULT, error.with_hint)
    except UnknownTurnError as error:
        return PrunedTurn(key, "", "", 0, RetentionReason.ACTIVE, str(error))
    except StoreError as error:
        return PrunedTurn(key, "", "", 0, RetentionReason.BUSY, _busy_reason(error))


def _busy_reason(error: StoreError) -> str:
    """Why a turn that another process holds stays as it is; raises the error of a disk that refuses."""
    if isinstance(error.__cause__, OSError) and not isinstance(error.__cause__, TimeoutError):
        raise error
    return str(error)


def _judge_turn(manifest: Manifest, record: ArchiveRecord, rule: _PruneRule) -> PrunedTurn | None:
    """Whether to delete the originals of a turn whose retention is over; None where they are gone. A tombstoned object is deleted."""
    key, ctx = manifest.key, rule.ctx
    turn = PrunedTurn(key, record.day, record.cold, record.size)
    try:
        if ctx.cold.tombstone(record):
            return turn if ctx.cold.exists(record) else None
        hold = ctx.holds.find(key)
        if hold and (reason := rule.keeps.hold_reason(hold)):
            return replace(turn, kept_because=RetentionReason.HELD, reason=reason)
    except PandoraError as error:
        return replace(turn, kept_because=RetentionReason.FAULT, reason=error.with_hint)
    if intervention := rule.keeps.interventions.get(key):
        return replace(turn, kept_because=RetentionReason.INTERVENTION, reason=f"intervention {intervention} is open")
    if reason := rule.cited.reason(key):
        return replace(turn, kept_because=RetentionReason.CITED, reason=reason)
    if fault := ctx.cold.verify(record) or _read_fault(key, ctx):
        return replace(turn, kept_because=RetentionReason.FAULT, reason=fault)
    return turn


def _read_fault(key: TurnKey, ctx: ArchiveContext) -> str:
    """Why the documents that would remain cannot be read; "" where they can."""
    try:
        ctx.deps.turns.load(key)
    except DocumentError as error:
        return f"the documents that would remain are damaged: {error}: expected them whole; run: pandora restore {key}"
    return ""


def _delete_originals(manifest: Manifest, record: ArchiveRecord, rule: _PruneRule) -> None:
    ctx = rule.ctx
    key = manifest.key
    ctx.folders.reconcile(key)  # a failed restore may have left originals beside their tombstone
    if ctx.cold.tombstone(record) is None:
        files = {n: DeletedFile(sha256=record.files[n], size=len(data)) for n, data in sorted(ctx.cold.read(record).items())}
        stone = Tombstone(
            sha256=record.sha256, turn=str(key), day=record.day, files=files, deleted_at=ctx.deps.now, why=rule.why, by=rule.by
        )
        ctx.cold.write_tombstone(record.location, stone)
    turn = ctx.deps.turns.load(key)
    row = ctx.index_row(manifest, turn)
    if ctx.deps.vectors:
        ctx.deps.vectors.put([row])
    if ctx.deps.lineage:
        # The spans of citing turns referred to passages of the originals.
        ctx.deps.lineage.put([(manifest, turn), *_readable_turns(ctx.deps.lineage.citing(key), ctx)])
    ctx.cold.delete(record.location)


def _readable_turns(keys: Iterable[TurnKey], ctx: ArchiveContext) -> Iterator[tuple[Manifest, Turn]]:
    """The readable turns among `keys`: manifest and original."""
    for key in keys:
        with suppress(DocumentError, UnknownTurnError):
            yield ctx.deps.turns.manifest(key), ctx.deps.turns.original(key)
