"""Retention of the originals of archived turns (`prune`): which are deleted, which are kept and why, and the order of a deletion.

The originals of a turn are one cold object. To delete it: write a tombstone with the hashes of its files, build the turn's row and lineage
from its compressed documents, delete the object. Writing the tombstone is the commit point: from then on the originals count as deleted,
whatever a crash left of the object, and the next run finishes an interrupted deletion.
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
from pandora_dagster.language.word_forms import counted

LOCK_WAIT_S = 1.0
"""Seconds to wait for a turn that another process has locked; the next run tries again."""
SUPERSEDED_REASON = "an object of an earlier archival"


OnTurn = Callable[[PrunedTurn], None]


@dataclass(frozen=True, slots=True)
class LiveCitations:
    """The turns that documents of live (not archived) turns cite as sources."""

    citing: Mapping[TurnKey, TurnKey]
    """Turn -> a live turn that cites it."""
    unreadable: Mapping[str, TurnKey]
    """User -> an unreadable turn of this user, which may cite anything."""

    def reason(self, key: TurnKey) -> str:
        """Why the turn's originals are needed; "" where no live turn cites it."""
        if citing := self.citing.get(key):
            return f"{citing} cites it, which is not archived"
        if unreadable := self.unreadable.get(key.user):
            return f"{unreadable} cannot be read, and may cite it"
        return ""


@dataclass(frozen=True, slots=True)
class _PruneRule:
    """The rule of one run. `before`: the time of archival from which originals stay; `by`: who asked for the run."""

    ctx: ArchiveContext
    eligibility: EligibilityRule
    before: datetime
    days: int
    citations: LiveCitations
    by: str

    @property
    def why(self) -> str:
        return f"originals of turns archived more than {counted(self.days, 'day')} ago"


def prune(ctx: ArchiveContext, *, older_than_days: int, by: str, dry_run: bool = False, on_turn: OnTurn = lambda turn: None) -> PruneReport:
    """Delete the originals of turns archived more than `older_than_days` days ago, and equally old cold objects that no turn names.

    Originals stay while a live turn cites them, a hold or an open intervention names their turn, or something about them is damaged.
    `by`: who asked for it. `on_turn` receives each turn whose retention is over. Raises StoreError where the disk or the index refuses.
    """
    now = ctx.deps.clock()
    rule = _PruneRule(ctx, current_eligibility(ctx), now - timedelta(days=older_than_days), older_than_days, cited_by_live_turns(ctx), by)
    pruned: list[PrunedTurn] = []
    kept: list[PrunedTurn] = []
    unreadable_objects: list[str] = []
    named_paths: set[str] = set()
    young_count = deleted_count = 0
    for manifest, record in archived_manifests(ctx):
        named_paths.add(record.cold)
        if datetime.fromisoformat(record.archived_at) >= rule.before:
            young_count += 1
            continue
        turn = _judge_turn(manifest, record, rule) if dry_run else _prune_turn(manifest.key, rule)
        if turn is None:
            deleted_count += 1
            continue
        (kept if turn.kept_because else pruned).append(turn)
        on_turn(turn)
    for superseded in _prune_superseded(ctx, named_paths, before=rule.before, by=by, dry_run=dry_run):
        if isinstance(superseded, str):
            unreadable_objects.append(superseded)
        else:
            (kept if superseded.kept_because else pruned).append(superseded)
            on_turn(superseded)
    if not dry_run:
        ctx.cold.remove_partial_objects()
    return PruneReport(older_than_days, dry_run, tuple(pruned), tuple(kept), young_count, deleted_count, tuple(unreadable_objects))


def archived_manifests(ctx: ArchiveContext) -> Iterator[tuple[Manifest, ArchiveRecord]]:
    """Every archived turn with a readable manifest, and its record; `day_verification` reports the others."""
    for key in ctx.deps.turns.keys(None):
        try:
            manifest = ctx.deps.turns.manifest(key)
        except (DocumentError, StoreError, UnknownTurnError):
            continue
        if manifest.archive is not None:
            yield manifest, manifest.archive


def cited_by_live_turns(ctx: ArchiveContext) -> LiveCitations:
    """Read the citations of every live turn of the store. A turn cites turns of its own user only."""
    citing: dict[TurnKey, TurnKey] = {}
    unreadable: dict[str, TurnKey] = {}
    for key in ctx.deps.turns.keys(None):
        try:
            manifest = ctx.deps.turns.manifest(key)
            context = None if manifest.archive else ContextDocument.parse(ctx.deps.turns.load(key).context)
        except UnknownTurnError:
            continue
        except (DocumentError, StoreError):
            unreadable[key.user] = key
            continue
        for section in context.sections if context else ():
            for source in source_references(section.text):
                if source.turn_id:
                    citing.setdefault(TurnKey(key.user, turn_number(source.turn_id)), key)
    return LiveCitations(citing, unreadable)


def _prune_turn(key: TurnKey, rule: _PruneRule) -> PrunedTurn | None:
    """Judge one turn under its lock, by its manifest as it is now, and delete its originals; None where they were deleted before."""
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
    """Why the originals of a locked turn stay; raises the error where not a lock but the disk refused."""
    if isinstance(error.__cause__, OSError) and not isinstance(error.__cause__, TimeoutError):
        raise error
    return str(error)


def _judge_turn(manifest: Manifest, record: ArchiveRecord, rule: _PruneRule) -> PrunedTurn | None:
    """Whether to delete the originals of a turn whose retention is over; None where they are deleted. An object with a tombstone is
    deleted."""
    key, ctx = manifest.key, rule.ctx
    turn = PrunedTurn(key, record.day, record.cold, record.size)
    try:
        if ctx.cold.tombstone(record):
            return turn if ctx.cold.exists(record) else None
        hold = ctx.holds.find(key)
        if hold and (reason := rule.eligibility.hold_reason(hold)):
            return replace(turn, kept_because=RetentionReason.HELD, reason=reason)
    except PandoraError as error:
        return replace(turn, kept_because=RetentionReason.FAULT, reason=error.with_hint)
    if intervention := rule.eligibility.interventions.get(key):
        return replace(turn, kept_because=RetentionReason.INTERVENTION, reason=f"intervention {intervention} is open")
    if reason := rule.citations.reason(key):
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
    """Delete the originals of a turn in the order of the module's docstring, or finish an interrupted deletion."""
    ctx = rule.ctx
    key = manifest.key
    ctx.folders.reconcile(key)  # a failed restore may have left originals beside their tombstone
    if ctx.cold.tombstone(record) is None:
        contents = sorted(ctx.cold.read(record).items())
        files = {name: DeletedFile(sha256=record.files[name], size=len(data)) for name, data in contents}
        tombstone = Tombstone(
            sha256=record.sha256, turn=str(key), day=record.day, files=files, deleted_at=ctx.deps.now, why=rule.why, by=rule.by
        )
        ctx.cold.write_tombstone(record.location, tombstone)
    turn = ctx.deps.turns.load(key)
    row = ctx.index_row(manifest, turn)
    if ctx.deps.vectors:
        ctx.deps.vectors.put([row])
    if ctx.deps.lineage:
        # The spans of citing turns referred to passages of the originals.
        ctx.deps.lineage.put([(manifest, turn), *_readable_turns(ctx.deps.lineage.citing(key), ctx)])
    ctx.cold.delete(record.location)


def _readable_turns(keys: Iterable[TurnKey], ctx: ArchiveContext) -> Iterator[tuple[Manifest, Turn]]:
    """The readable turns among `keys`, each as its manifest and its original."""
    for key in keys:
        with suppress(DocumentError, UnknownTurnError):
            yield ctx.deps.turns.manifest(key), ctx.deps.turns.original(key)


def _prune_superseded(
    ctx: ArchiveContext, named_paths: Collection[str], *, before: datetime, by: str, dry_run: bool
) -> Iterator[PrunedTurn | str]:
    """Delete objects written before `before` whose turn is archived in another object. `named_paths`: the objects that turns name.

    A turn that was restored, changed and archived again leaves such an object. The newer object contains all of it, and is verified first.
    The object of a restored or missing turn stays: it may be the last copy. Each deletion leaves a tombstone. An unreadable object stays
    and yields a sentence. Raises StoreError where the disk refuses.
    """
    for location in ctx.cold.objects(before=before):
        if location.path in named_paths:
            continue
        try:
            key, files = ctx.cold.unpack(location)
        except DocumentError as error:
            yield f"{error}; no turn names it, and it is kept"
            continue
        deleted_files = {name: DeletedFile(sha256=sha256(data).hexdigest(), size=len(data)) for name, data in sorted(files.items())}
        month = "-".join(location.path.split("/")[2:4])
        tombstone = Tombstone(
            sha256=location.sha256, turn=str(key), day=month, files=deleted_files, deleted_at=ctx.deps.now, why=SUPERSEDED_REASON, by=by
        )
        if (turn := _prune_object(key, location, ctx, tombstone, dry_run=dry_run)) is not None:
            yield turn


def _prune_object(key: TurnKey, location: ColdLocation, ctx: ArchiveContext, tombstone: Tombstone, *, dry_run: bool) -> PrunedTurn | None:
    """Delete one object under its turn's lock; None where the turn names this object by now, or is not archived."""

    def keep(why: RetentionReason, reason: str) -> PrunedTurn:
        return PrunedTurn(key, tombstone.day, location.path, location.size, why, reason)

    try:
        with ctx.deps.turns.lock(key, wait_s=LOCK_WAIT_S):
            record = ctx.deps.turns.manifest(key).archive
            if record is None or record.cold == location.path:
                return None
            if fault := ctx.cold.verify(record):
                return keep(RetentionReason.FAULT, f"the object that the turn names now is damaged: {fault}")
            if not dry_run:
                ctx.cold.write_tombstone(location, tombstone)
                ctx.cold.delete(location)
            return PrunedTurn(key, tombstone.day, location.path, location.size, reason=SUPERSEDED_REASON)
    except (UnknownTurnError, DocumentError) as error:
        return keep(RetentionReason.FAULT, f"it may be the last copy: {error}")
    except StoreError as error:
        return keep(RetentionReason.BUSY, _busy_reason(error))
