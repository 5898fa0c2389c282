"""Verification of archived days: the five checks of `DayCheck`, from manifests, folders, cold objects and the index.

Turns are read one after the other, so memory is bounded by the rows that are shown.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from zoneinfo import ZoneInfo

from pandora_dagster.archive.archive_selection import interventions_by_turn, is_archived, local_day, select_turns, timestamp_bounds
from pandora_dagster.archive.turn_archival import PHASE, ArchiveContext
from pandora_dagster.contracts.archive_records import (
    ArchivedDay,
    ArchivedDayRow,
    ArchivedDocument,
    ArchiveRecord,
    DayCheck,
    DayVerdict,
    DueTurn,
    NotDueReason,
    NotDueTurn,
)
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.ports.turn_storage import TurnIndex
from pandora_dagster.contracts.turns import Manifest
from pandora_dagster.errors import PandoraError

MAX_ROWS = 500
"""Documents of a day that its table in Dagster shows; its page and the manifests have all."""
_MANIFESTS_PER_QUERY = 200
"""Manifests that are compared with the index at a time."""
_UNSOUND_OUTCOMES = ("mutated", "invented")


def verify_days(
    days: Collection[date], ctx: ArchiveContext, *, originals: bool = True, max_rows: int | None = MAX_ROWS
) -> Iterator[ArchivedDay]:
    """Verify each day, in order; without `originals` no cold object is opened, and that check has no verdict. `max_rows`: documents of a
    day that are rows, None for all.

    Raises StoreError where the index cannot be read.
    """
    requested_days = set(days)
    turns: dict[date, list[TurnKey]] = {day: [] for day in sorted(requested_days)}
    for day, key in archived_turns(requested_days, ctx.deps.index, ctx.rules.zone):
        turns[day].append(key)
    selected = select_turns(ctx, days=requested_days)
    failed = interventions_by_turn(ctx, phase=PHASE)
    for day, keys in turns.items():
        due = [turn for turn in selected.due if turn.day == day]
        not_due = [turn for turn in selected.not_due if turn.day == day]
        checks = (check for check in DayCheck if originals or check is not DayCheck.ORIGINALS_RESTORABLE)
        tally = _DayTally(ArchivedDay(day=day), {check: DayVerdict(check) for check in checks}, max_rows)
        yield _verify_day(tally, sorted(keys), due, not_due, failed, ctx)


def archived_turns(days: Collection[date], index: TurnIndex, zone: ZoneInfo) -> Iterator[tuple[date, TurnKey]]:
    """The archived turns of these days by the index, user by user. Raises StoreError."""
    requested_days = set(days)
    if not requested_days:
        return
    for activity in index.activities(archived=True, between=timestamp_bounds(min(requested_days), max(requested_days))):
        try:
            day = local_day(activity.last_activity, zone)
        except ValueError:
            continue
        if day in requested_days:
            yield day, activity.key


@dataclass(slots=True)
class _DayTally:
    """Running sums, shown rows and verdicts of a day."""

    day: ArchivedDay
    """The sums so far."""
    verdicts: dict[DayCheck, DayVerdict]
    max_rows: int | None
    rows: list[ArchivedDayRow] = field(default_factory=list[ArchivedDayRow])

    def judge(self, check: DayCheck, fault: str, *, by_rule: bool = False) -> None:
        """Count one result of a check; `fault` is "" where it holds."""
        self.verdicts[check] = self.verdicts[check].plus(fault, by_rule=by_rule)

    def add(self, key: TurnKey, record: ArchiveRecord) -> None:
        """Add an archived turn: its sums, its rows, and the checks of its documents."""
        self.day = replace(self.day.plus(record.documents, record.size), turns=self.day.turns + 1)
        free = None if self.max_rows is None else self.max_rows - len(self.rows)
        self.rows += [ArchivedDayRow(key, document, record.cold, record.run_id) for document in record.documents[:free]]
        for document in record.documents:
            self.judge(DayCheck.WITHIN_TARGET, _target_fault(key, document))
            self.judge(DayCheck.NO_FACT_CHANGED, _fact_fault(key, document))


def _verify_day(
    tally: _DayTally,
    keys: Sequence[TurnKey],
    due: Sequence[DueTurn],
    not_due: Sequence[NotDueTurn],
    failed: Mapping[TurnKey, str],
    ctx: ArchiveContext,
) -> ArchivedDay:
    """Verify one day. `keys`: its archived turns by the index; `failed`: turn -> the open intervention of its archival."""
    for start in range(0, len(keys), _MANIFESTS_PER_QUERY):
        manifests: list[Manifest] = []
        for key in keys[start : start + _MANIFESTS_PER_QUERY]:
            if manifest := _verify_turn(key, tally, ctx):
                manifests.append(manifest)
                tally.judge(DayCheck.NOTHING_LEFT_BEHIND, "")
        outdated = {manifest.key for manifest in ctx.deps.index.outdated(manifests)}
        for manifest in manifests:
            fault = f"{manifest.key}: its row is out of date: expected the state of turn.json; run: pandora index rebuild"
            tally.judge(DayCheck.INDEX_AGREES, fault if manifest.key in outdated else "")
    for turn in due:
        tally.judge(DayCheck.NOTHING_LEFT_BEHIND, f"{turn.key}: due, and not archived")
    for turn in (*due, *not_due):
        if is_archived(turn.key, ctx):
            tally.judge(DayCheck.INDEX_AGREES, f"{turn.key}: turn.json says archived, its row does not: pandora index rebuild")
    for turn in not_due:
        fault = f"{turn.key}: {turn.reason}" if turn.cause is NotDueReason.UNREADABLE else ""
        if turn.key in failed:
            fault = f"{turn.key}: it could not be archived: intervention {failed[turn.key]} says why"
        tally.judge(DayCheck.NOTHING_LEFT_BEHIND, fault)
    return replace(tally.day, rows=tuple(tally.rows), unarchived_turns=tuple(not_due), verdicts=tuple(tally.verdicts.values()))


def _verify_turn(key: TurnKey, tally: _DayTally, ctx: ArchiveContext) -> Manifest | None:
    """Verify a turn that the index lists as archived against its folder and cold object; None where it is not archived or unreadable."""
    try:
        manifest = ctx.deps.turns.load(key).manifest
    except PandoraError as error:
        tally.judge(DayCheck.NO_FACT_CHANGED, f"{key}: {error}")
        return None
    if manifest.archive is None:
        tally.judge(DayCheck.INDEX_AGREES, f"{key}: the index says archived, turn.json {manifest.state}")
        return None
    tally.add(key, manifest.archive)
    if DayCheck.ORIGINALS_RESTORABLE in tally.verdicts:
        fault = ctx.cold.verify(manifest.archive)
        by_rule = not fault and ctx.cold.tombstone(manifest.archive) is not None
        tally.judge(DayCheck.ORIGINALS_RESTORABLE, f"{key}: {fault}" if fault else "", by_rule=by_rule)
    return manifest


def _target_fault(key: TurnKey, document: ArchivedDocument) -> str:
    """The fault of a compressed document over its target; "" for one that fits or stays whole."""
    if document.whole or document.tokens_after <= document.target:
        return ""
    return f"{key}: {document.name}: {document.tokens_after} tokens: expected at most {document.target}; no shorter text kept its facts"


def _fact_fault(key: TurnKey, document: ArchivedDocument) -> str:
    """The fault of a document whose compression changed or invented a fact, or whose text changed although it stays whole; else ""."""
    if document.whole:
        return "" if document.sha_before == document.sha_after else f"{key}: {document.name}: stays whole, but is another text"
    unsound = [f"{n} {outcome}" for outcome in _UNSOUND_OUTCOMES if (n := document.counts.get(outcome, 0))]
    if document.checks.get("no_fact_changed") and not unsound:
        return ""
    return f"{key}: {document.name}: no_fact_changed did not hold ({', '.join(unsound) or 'no verdict'})"
