"""Days of the archive read back: what their manifests say, and whether folders, cold objects and index bear it out.

Knows the five checks of a day. Reads one turn after the other, so that a day of any size takes the memory of its shown rows.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from zoneinfo import ZoneInfo

from pandora_dagster.contracts.archive import ArchivedDocument, ArchiveRecord, Due, Kept, NotDue
from pandora_dagster.contracts.archive_days import ArchivedDay, DayCheck, DayRow, DayVerdict
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.ports import TurnIndex
from pandora_dagster.contracts.turns import Manifest
from pandora_dagster.errors import PandoraError
from pandora_dagster.phases.archive_selection import interventions_by_turn, is_archived, select
from pandora_dagster.phases.archiving import PHASE, ArchiveDesk
from pandora_dagster.selection.due import day_of, texts_between

SHOWN = 500
"""Documents of a day that its table shows; `pandora archive --json` and the manifests have all."""
_FAULTS = 20
_BATCH = 200
_UNSOUND = ("mutated", "invented")


def archived_days(days: Collection[date], desk: ArchiveDesk, *, originals: bool = True) -> Iterator[ArchivedDay]:
    """Each day as it stands now, in order; without `originals` no cold object is opened, and that check has no verdict.

    Raises StoreError where the index can not be read.
    """
    wanted = set(days)
    turns: dict[date, list[TurnKey]] = {day: [] for day in sorted(wanted)}
    for day, key in archived_on(wanted, desk.kit.index, desk.rules.zone):
        turns[day].append(key)
    selected = select(desk, days=wanted)
    failed = interventions_by_turn(desk, phase=PHASE)
    for day, keys in turns.items():
        due = [one for one in selected.due if one.day == day]
        stays = [one for one in selected.not_due if one.day == day]
        yield _read(_Day(originals), day, sorted(keys), due, stays, failed, desk)


def archived_on(days: Collection[date], index: TurnIndex, zone: ZoneInfo) -> Iterator[tuple[date, TurnKey]]:
    """The archived turns of these days by the index, user by user. Raises StoreError."""
    wanted = set(days)
    if not wanted:
        return
    for stands in index.standing(archived=True, between=texts_between(min(wanted), max(wanted))):
        try:
            day = day_of(stands.last_activity, zone)
        except ValueError:
            continue
        if day in wanted:
            yield day, stands.key


@dataclass(slots=True)
class _Judged:
    """One check on its way through a day."""

    check: DayCheck
    judged: int = 0
    faulty: int = 0
    by_rule: int = 0
    faults: list[str] = field(default_factory=list[str])

    def hold(self, fault: str) -> None:
        """One more that was looked at; "" for one that is well."""
        self.judged += 1
        if fault:
            self.faulty += 1
            if len(self.faults) < _FAULTS:
                self.faults.append(fault)

    @property
    def verdict(self) -> DayVerdict:
        return DayVerdict(self.check, self.judged, self.faulty, tuple(self.faults), self.by_rule)


@dataclass(slots=True)
class _Day:
    """A day on its way: sums, shown rows, checks."""

    originals: bool
    turns: int = 0
    documents: int = 0
    compressed: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    facts: int = 0
    facts_kept: int = 0
    cold_bytes: int = 0
    rows: list[DayRow] = field(default_factory=list[DayRow])
    checks: dict[DayCheck, _Judged] = field(init=False)

    def __post_init__(self) -> None:
        judged = (check for check in DayCheck if self.originals or check is not DayCheck.ORIGINALS_RESTORABLE)
        self.checks = {check: _Judged(check) for check in judged}

    def take(self, key: TurnKey, record: ArchiveRecord) -> None:
        self.turns += 1
        self.cold_bytes += record.size
        for document in record.documents:
            self.documents += 1
            self.compressed += not document.whole
            self.tokens_before += document.tokens_before
            self.tokens_after += document.tokens_after
            self.facts += document.facts
            self.facts_kept += document.facts_kept
            if len(self.rows) < SHOWN:
                self.rows.append(DayRow(key, document, record.cold))
            self.checks[DayCheck.WITHIN_TARGET].hold(_over(key, document))
            self.checks[DayCheck.NO_FACT_LOST].hold(_unsound(key, document))


def _read(
    read: "_Day",
    day: date,
    keys: Sequence[TurnKey],
    due: Sequence[Due],
    stays: Sequence[NotDue],
    failed: Mapping[TurnKey, str],
    desk: ArchiveDesk,
) -> ArchivedDay:
    left = read.checks[DayCheck.NOTHING_LEFT_BEHIND]
    for start in range(0, len(keys), _BATCH):
        known: list[Manifest] = []
        for key in keys[start : start + _BATCH]:
            if manifest := _turn(key, read, desk):
                known.append(manifest)
                left.hold("")
        behind = {m.key for m in desk.kit.index.behind(known)}
        for m in known:
            fault = f"{m.key}: its row is behind: expected what turn.json says; run: pandora index rebuild"
            read.checks[DayCheck.INDEX_AGREES].hold(fault if m.key in behind else "")
    for one in due:
        left.hold(f"{one.key}: due, and not archived")
    for one in (*due, *stays):
        if is_archived(one.key, desk):
            read.checks[DayCheck.INDEX_AGREES].hold(f"{one.key}: turn.json says archived, its row does not: pandora index rebuild")
    for one in stays:
        if one.key in failed:
            left.hold(f"{one.key}: it could not be archived: intervention {failed[one.key]} says why")
        else:
            left.hold(f"{one.key}: {one.reason}" if one.kept is Kept.UNREADABLE else "")
    sums = {name: getattr(read, name) for name in _SUMS}
    return ArchivedDay(day, **sums, rows=tuple(read.rows), stays=tuple(stays), verdicts=tuple(c.verdict for c in read.checks.values()))


_SUMS = ("turns", "documents", "compressed", "tokens_before", "tokens_after", "facts", "facts_kept", "cold_bytes")


def _turn(key: TurnKey, read: _Day, desk: ArchiveDesk) -> Manifest | None:
    """A turn that the index says is archived, held against its folder and its cold object; None where it says otherwise by now."""
    try:
        manifest = desk.kit.turns.load(key).manifest
    except PandoraError as error:
        read.checks[DayCheck.NO_FACT_LOST].hold(f"{key}: {error}")
        return None
    if manifest.archive is None:
        read.checks[DayCheck.INDEX_AGREES].hold(f"{key}: the index says archived, turn.json {manifest.state}")
        return None
    read.take(key, manifest.archive)
    if not read.originals:
        return manifest
    fault = desk.cold.verify(manifest.archive)
    originals = read.checks[DayCheck.ORIGINALS_RESTORABLE]
    originals.hold(f"{key}: {fault}" if fault else "")
    originals.by_rule += not fault and desk.cold.tombstone(manifest.archive) is not None
    return manifest


def _over(key: TurnKey, document: ArchivedDocument) -> str:
    """A document may stand whole, with its reason; a compressed one fits its target, unless no sound text does."""
    if document.whole or document.tokens_after <= document.target:
        return ""
    return f"{key}: {document.name}: {document.tokens_after} tokens: expected at most {document.target}; no shorter text kept its facts"


def _unsound(key: TurnKey, document: ArchivedDocument) -> str:
    if document.whole:
        return "" if document.sha_before == document.sha_after else f"{key}: {document.name}: stands whole, and is another text"
    wrong = [f"{n} {outcome}" for outcome in _UNSOUND if (n := document.counts.get(outcome, 0))]
    if document.checks.get("facts_preserved") and not wrong:
        return ""
    return f"{key}: {document.name}: facts_preserved did not hold ({', '.join(wrong) or 'no verdict'})"
