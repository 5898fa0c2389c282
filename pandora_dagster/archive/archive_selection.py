"""Selection of the stored turns that are due for archival.

The day of a turn is the local date of its last activity. The turn is due once that whole day is `after_days` days past: at any hour of day
D the newest due day is D - 31 for 30 days. Days are counted on the calendar of the time zone, so a day of 23 or 25 hours is one day.

Candidates are rows of the turn index, and folders without a row. A manifest is read only where the row is missing or its state may still
change. The archival run judges each turn again under its lock.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from pandora_dagster.archive.turn_archival import ArchiveContext
from pandora_dagster.contracts.archive_records import DueTurn, Hold, NotDueReason, NotDueTurn, TurnActivity
from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey, UserId, turn_number
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.turns import Manifest
from pandora_dagster.errors import BadIdError, DocumentError, StoreError, UnknownTurnError
from pandora_dagster.phases.core.halt_interventions import has_continued
from pandora_dagster.phases.core.turn_indexing import UNSETTLED_STATES

EARLIEST_DAY = date(2000, 1, 1)
"""The day of all older turns: one wrong year would otherwise create a thousand years of day partitions."""
_KEYS_PER_QUERY = 10_000
"""Folders that are compared with the index at a time."""
_FINISHED_STATES = (TurnState.SAVED, TurnState.CLARIFY)


def local_day(moment: str, zone: ZoneInfo) -> date:
    """The local date of an ISO 8601 moment with an offset, not before EARLIEST_DAY; raises ValueError."""
    parsed = datetime.fromisoformat(moment)
    if parsed.tzinfo is None:
        raise ValueError(f"{moment!r}: no offset: expected a moment such as 2026-01-04T14:30:00Z")
    try:
        return max(EARLIEST_DAY, parsed.astimezone(zone).date())
    except OverflowError as error:
        raise ValueError(f"{moment!r}: beyond the calendar") from error


def timestamp_bounds(first: date, last: date) -> tuple[str, str]:
    """Bounds [from, before), as texts, of the ISO 8601 moments whose day in any time zone is between `first` and `last`.

    Moments are compared as texts. An offset moves the date of a moment by less than two days.
    """
    earliest = "" if first <= EARLIEST_DAY else str(first - timedelta(days=2))
    return earliest, "\U0010ffff" if last.year == date.max.year else str(last + timedelta(days=3))


def last_due_day(now: datetime, zone: ZoneInfo, after_days: int) -> date:
    """The newest day whose turns are due at `now`; raises ValueError where that is before the calendar begins."""
    try:
        return now.astimezone(zone).date() - timedelta(days=after_days + 1)
    except OverflowError as error:
        raise ValueError(f"{after_days} days before {now.date()}: before the calendar begins") from error


@dataclass(frozen=True, slots=True)
class EligibilityRule:
    """The rule that decides which turns are due. `interventions`: turn -> its open intervention."""

    now: datetime
    zone: ZoneInfo
    after_days: int
    interventions: Mapping[TurnKey, str]

    def decide(self, turn: TurnActivity, hold: Hold | None = None) -> DueTurn | NotDueTurn:
        """Whether a turn is due, or why not. State and age are checked first, then what a user has to decide: an intervention, a hold."""
        if turn.state == TurnState.ARCHIVED:
            return NotDueTurn(turn.key, None, NotDueReason.ARCHIVED, "it is archived already")
        if turn.state == NotDueReason.UNREADABLE:
            return NotDueTurn(turn.key, None, NotDueReason.UNREADABLE, turn.last_activity)
        try:
            day = local_day(turn.last_activity, self.zone)
        except ValueError as error:
            return NotDueTurn(turn.key, None, NotDueReason.UNREADABLE, f"last_activity: {error}")
        if day > (last_day := last_due_day(self.now, self.zone, self.after_days)):
            return NotDueTurn(turn.key, day, NotDueReason.YOUNG, f"its day is {day}: days up to {last_day} are due")
        if intervention := self.interventions.get(turn.key):
            return NotDueTurn(turn.key, day, NotDueReason.INTERVENTION, f"intervention {intervention} is open: expected it resolved")
        if turn.state == TurnState.ABANDONED:
            return NotDueTurn(turn.key, day, NotDueReason.HALTED, "it is abandoned: it has no answer to archive")
        if turn.state not in _FINISHED_STATES:
            cause = NotDueReason.HALTED if turn.state == TurnState.HALTED else NotDueReason.OPEN
            return NotDueTurn(turn.key, day, cause, f"it is {turn.state}: continue it: pandora resume {turn.key}")
        if hold and (reason := self.hold_reason(hold)):
            return NotDueTurn(turn.key, day, NotDueReason.HELD, reason)
        return DueTurn(turn.key, day)

    def hold_reason(self, hold: Hold) -> str:
        """Why a hold is in force; "" once it has ended. An unreadable end does not end it."""
        why = f" ({hold.why})" if hold.why else ""
        if hold.until is None:
            return f"it is pinned{why}"
        try:
            has_ended = datetime.fromisoformat(hold.until) <= self.now
        except (ValueError, TypeError):
            return f"it is held{why}, until {hold.until!r}: not a time: expected one such as 2026-01-04T14:30:00Z"
        return "" if has_ended else f"it is held until {hold.until}{why}"


@dataclass(frozen=True, slots=True)
class ArchiveSelection:
    """The turns that a run archives, oldest day first, and those of the same days that are not due, with the reason.

    `indexed`: the due turns as their rows have them; a row that still agrees with its turn needs no new texts.
    """

    due: tuple[DueTurn, ...]
    not_due: tuple[NotDueTurn, ...]
    indexed: frozenset[TurnActivity]


def current_eligibility(ctx: ArchiveContext) -> EligibilityRule:
    """The rule at this moment, with the open interventions; raises DocumentError for a damaged one."""
    return EligibilityRule(ctx.deps.clock(), ctx.rules.zone, ctx.rules.after_days, interventions_by_turn(ctx))


def select_turns(ctx: ArchiveContext, *, days: Collection[date] | None = None) -> ArchiveSelection:
    """Select every due turn, or those of `days`. Archived turns are not listed; turns that are too young only where `days` names their
    day."""
    eligibility = current_eligibility(ctx)
    due: list[DueTurn] = []
    not_due: list[NotDueTurn] = []
    indexed: set[TurnActivity] = set()
    for activity, is_from_row in _candidates(ctx):
        try:
            verdict = _judge_with_hold(eligibility, activity, ctx)
        except StoreError:  # the folder is missing: the archival run reports it
            verdict = eligibility.decide(activity)
        if days is not None and verdict.day not in days:
            continue
        if isinstance(verdict, NotDueTurn) and verdict.cause is NotDueReason.HELD and verdict.day and is_archived(activity.key, ctx):
            verdict = DueTurn(activity.key, verdict.day)  # an interrupted restore: its row and hold were written before its manifest
        if isinstance(verdict, DueTurn):
            due.append(verdict)
            indexed |= {activity} if is_from_row else set()
        elif verdict.cause is not NotDueReason.ARCHIVED and (days is not None or verdict.cause is not NotDueReason.YOUNG):
            not_due.append(verdict)
    return ArchiveSelection(tuple(sorted(due, key=lambda turn: (turn.day, turn.key))), tuple(not_due), frozenset(indexed))


def is_archived(key: TurnKey, ctx: ArchiveContext) -> bool:
    """Whether the manifest says archived; False where it cannot be read."""
    return _manifest_activity(key, ctx).state == NotDueReason.ARCHIVED


def judge_manifest(manifest: Manifest, ctx: ArchiveContext, eligibility: EligibilityRule) -> DueTurn | NotDueTurn:
    """Judge a turn by its own manifest, read under its lock; raises DocumentError, StoreError."""
    return _judge_with_hold(eligibility, TurnActivity(manifest.key, manifest.state, manifest.last_activity), ctx)


def _judge_with_hold(eligibility: EligibilityRule, activity: TurnActivity, ctx: ArchiveContext) -> DueTurn | NotDueTurn:
    verdict = eligibility.decide(activity)
    if isinstance(verdict, NotDueTurn):
        return verdict
    try:
        hold: Hold | None = ctx.holds.find(activity.key)
    except DocumentError as error:
        return NotDueTurn(activity.key, verdict.day, NotDueReason.HELD, f"its hold cannot be read, and may be a pin: {error.with_hint}")
    return eligibility.decide(activity, hold)


def _candidates(ctx: ArchiveContext) -> Iterator[tuple[TurnActivity, bool]]:
    """Each turn that is not archived, and whether it is given as its row has it. A state that may still change comes from the manifest."""
    for row in ctx.deps.index.activities(archived=False):
        yield (row, True) if row.state not in UNSETTLED_STATES else (_manifest_activity(row.key, ctx), False)
    keys = iter(ctx.deps.turns.keys(None))
    while chunk := list(islice(keys, _KEYS_PER_QUERY)):
        yield from ((_manifest_activity(key, ctx), False) for key in ctx.deps.index.missing(chunk))


def _manifest_activity(key: TurnKey, ctx: ArchiveContext) -> TurnActivity:
    """State and last activity of a turn from its manifest; for an unreadable one UNREADABLE and the reason."""
    try:
        manifest = ctx.deps.turns.manifest(key)
    except (DocumentError, UnknownTurnError, StoreError) as error:
        return TurnActivity(key, NotDueReason.UNREADABLE, str(error))
    return TurnActivity(key, manifest.state, manifest.last_activity)


def interventions_by_turn(ctx: ArchiveContext, *, phase: str = "") -> dict[TurnKey, str]:
    """Turn -> its open intervention, of one `phase` if given; without interventions whose phase has succeeded since."""
    by_turn: dict[TurnKey, str] = {}
    for intervention in ctx.deps.interventions.list(state="open"):
        with suppress(BadIdError):
            key = TurnKey(UserId(intervention.user_id), turn_number(intervention.turn_id))
            if (not phase or intervention.phase == phase) and not _has_continued(key, intervention, ctx):
                by_turn[key] = intervention.id
    return by_turn


def _has_continued(key: TurnKey, intervention: Intervention, ctx: ArchiveContext) -> bool:
    try:
        return has_continued(ctx.deps.turns.manifest(key), intervention)
    except (DocumentError, UnknownTurnError, StoreError):
        return False
