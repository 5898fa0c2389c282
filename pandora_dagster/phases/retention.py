"""Originals of archived turns deleted once their time is over. Knows what keeps them, and the order of one deletion.

The tombstone is the switch: before it stands on the disk the originals are there, after it they count as deleted, whatever a crash left of
the object. Then the turn's row is made of its compressed documents, then the object goes; a run that was cut off is finished by the next.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from pandora_dagster.contracts.archive import ArchiveRecord
from pandora_dagster.contracts.ids import TurnKey, turn_number
from pandora_dagster.contracts.retention import DeletedFile, PrunedTurn, PruneReport, Referred, Tombstone
from pandora_dagster.contracts.turns import Manifest, Turn
from pandora_dagster.errors import DocumentError, PandoraError, StoreError, UnknownTurnError
from pandora_dagster.phases.archive_selection import selection
from pandora_dagster.phases.archiving import ArchiveDesk
from pandora_dagster.phases.superseded import WAIT_S, superseded
from pandora_dagster.selection.due import Selection
from pandora_dagster.selection.turn_row import row_of
from pandora_dagster.text.citations import references
from pandora_dagster.text.dates import stamp
from pandora_dagster.text.sections import ContextDocument

OnTurn = Callable[[PrunedTurn], None]


@dataclass(frozen=True, slots=True)
class Citations:
    """What turns that are not archived list among their sources, by their own documents."""

    by: Mapping[TurnKey, TurnKey]
    """Turn -> a live turn that cites it."""
    unread: Mapping[str, TurnKey]
    """User -> a turn of theirs that can not be read, and may cite anything."""

    def reason(self, key: TurnKey) -> str:
        """Why the turn's originals are wanted; "" where nothing live cites it."""
        if citing := self.by.get(key):
            return f"{citing} cites it, which is not archived"
        if unread := self.unread.get(key.user):
            return f"{unread} can not be read, and may cite it"
        return ""


@dataclass(frozen=True, slots=True)
class _Rule:
    """What one run goes by."""

    desk: ArchiveDesk
    keeps: Selection
    before: datetime
    days: int
    cited: "Citations"
    by: str

    @property
    def why(self) -> str:
        return f"originals of turns archived more than {self.days} days ago"


def prune(desk: ArchiveDesk, *, older_than_days: int, by: str, dry_run: bool = False, on_turn: OnTurn = lambda turn: None) -> PruneReport:
    """Delete the originals of turns archived more than `older_than_days` ago, unless something live refers to them, and objects as old
    that no turn names any more.

    `by` says who asked. `on_turn` is told of each turn whose time is over. Raises StoreError where the disk or the index refuses.
    """
    now = desk.kit.clock()
    rule = _Rule(desk, selection(desk), now - timedelta(days=older_than_days), older_than_days, cited_by_live_turns(desk), by)
    pruned: list[PrunedTurn] = []
    kept: list[PrunedTurn] = []
    unread: list[str] = []
    named: set[str] = set()
    young = gone = 0
    for manifest, record in archived(desk):
        named.add(record.cold)
        if datetime.fromisoformat(record.archived_at) >= rule.before:
            young += 1
            continue
        turn = _judged(manifest, record, rule) if dry_run else _pruned(manifest.key, rule)
        if turn is None:
            gone += 1
            continue
        (kept if turn.kept else pruned).append(turn)
        on_turn(turn)
    for left in superseded(desk, named, before=rule.before, by=by, dry_run=dry_run):
        if isinstance(left, str):
            unread.append(left)
        else:
            (kept if left.kept else pruned).append(left)
            on_turn(left)
    if not dry_run:
        desk.cold.sweep()
    return PruneReport(older_than_days, dry_run, tuple(pruned), tuple(kept), young, gone, tuple(unread))


def archived(desk: ArchiveDesk) -> Iterator[tuple[Manifest, ArchiveRecord]]:
    """Every archived turn that can be read, by its own manifest; the checks of the days tell of the others."""
    for key in desk.kit.turns.keys(None):
        try:
            manifest = desk.kit.turns.manifest(key)
        except (DocumentError, StoreError, UnknownTurnError):
            continue
        if manifest.archive is not None:
            yield manifest, manifest.archive


def cited_by_live_turns(desk: ArchiveDesk) -> Citations:
    """What the live turns of the store cite. Of another user's turns nobody cites anything."""
    found: dict[TurnKey, TurnKey] = {}
    unread: dict[str, TurnKey] = {}
    for key in desk.kit.turns.keys(None):
        try:
            manifest = desk.kit.turns.manifest(key)
            context = None if manifest.archive else ContextDocument.parse(desk.kit.turns.load(key).context)
        except UnknownTurnError:
            continue
        except (DocumentError, StoreError):
            unread[key.user] = key
            continue
        for section in context.sections if context else ():
            for source in references(section.text):
                if source.turn_id:
                    found.setdefault(TurnKey(key.user, turn_number(source.turn_id)), key)
    return Citations(found, unread)


def _pruned(key: TurnKey, rule: _Rule) -> PrunedTurn | None:
    """One turn under its lock, judged by its manifest as it is now; None where its originals were gone before."""
    desk = rule.desk
    try:
        with desk.kit.turns.lock(key, wait_s=WAIT_S):
            manifest = desk.kit.turns.manifest(key)
            if manifest.archive is None:
                return PrunedTurn(key, "", "", 0, Referred.ACTIVE, "it is not archived any more")
            turn = _judged(manifest, manifest.archive, rule)
            if turn is not None and turn.kept is None:
                _delete(manifest, manifest.archive, rule)
            return turn
    except DocumentError as error:
        return PrunedTurn(key, "", "", 0, Referred.FAULT, error.with_hint)
    except UnknownTurnError as error:
        return PrunedTurn(key, "", "", 0, Referred.ACTIVE, str(error))
    except StoreError as error:
        if isinstance(error.__cause__, OSError) and not isinstance(error.__cause__, TimeoutError):
            raise
        return PrunedTurn(key, "", "", 0, Referred.BUSY, str(error))


def _judged(manifest: Manifest, record: ArchiveRecord, rule: _Rule) -> PrunedTurn | None:
    """What becomes of a turn whose time is over; None where its originals are gone already. What a tombstone stands for goes."""
    key, desk = manifest.key, rule.desk
    turn = PrunedTurn(key, record.day, record.cold, record.size)
    try:
        if desk.cold.tombstone(record):
            return turn if desk.cold.is_there(record) else None
        hold = desk.holds.find(key)
        if hold and (reason := rule.keeps.held(hold)):
            return _kept(turn, Referred.HELD, reason)
    except PandoraError as error:
        return _kept(turn, Referred.FAULT, error.with_hint)
    if intervention := rule.keeps.interventions.get(key):
        return _kept(turn, Referred.INTERVENTION, f"intervention {intervention} is open")
    if reason := rule.cited.reason(key):
        return _kept(turn, Referred.CITED, reason)
    if fault := desk.cold.verify(record) or _unreadable(key, desk):
        return _kept(turn, Referred.FAULT, fault)
    return turn


def _unreadable(key: TurnKey, desk: ArchiveDesk) -> str:
    """Why the documents that would be all that is left can not be read; "" where they can."""
    try:
        desk.kit.turns.load(key)
    except DocumentError as error:
        return f"what would be left of it is damaged: {error}: expected it whole; run: pandora restore {key}"
    return ""


def _delete(manifest: Manifest, record: ArchiveRecord, rule: _Rule) -> None:
    desk = rule.desk
    key = manifest.key
    desk.folders.settle(key)  # a restoring that failed may have left originals beside what says that they are deleted
    if desk.cold.tombstone(record) is None:
        files = {n: DeletedFile(sha256=record.files[n], size=len(data)) for n, data in sorted(desk.cold.read(record).items())}
        now = stamp(desk.kit.clock().replace(microsecond=0))
        stone = Tombstone(sha256=record.sha256, turn=str(key), day=record.day, files=files, deleted_at=now, why=rule.why, by=rule.by)
        desk.cold.bury(record.place, stone)
    turn = desk.kit.turns.load(key)
    row = row_of(manifest, turn.context, turn.files, preamble=desk.preamble(manifest))
    desk.kit.index.put([row])
    if desk.kit.vectors:
        desk.kit.vectors.put([row])
    if desk.kit.lineage:
        desk.kit.lineage.put([(manifest, turn), *_turns(desk.kit.lineage.citing(key), desk)])  # whose passages were told by the originals
    desk.cold.discard(record.place)


def _turns(keys: Iterable[TurnKey], desk: ArchiveDesk) -> Iterator[tuple[Manifest, Turn]]:
    """Those that can be read, as they stand and as they were."""
    for key in keys:
        with suppress(DocumentError, UnknownTurnError):
            yield desk.kit.turns.manifest(key), desk.kit.turns.original(key)


def _kept(turn: PrunedTurn, kept: Referred, reason: str) -> PrunedTurn:
    return PrunedTurn(turn.key, turn.day, turn.cold, turn.size, kept, reason)
