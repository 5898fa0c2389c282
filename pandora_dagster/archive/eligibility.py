"""Which turns are due for archival: the day of a turn, and the reasons why it is not due. Reads no store.

A turn's day is the local date of its last activity. The turn is due once that whole day is `after_days` days past: at any hour of day D the
newest due day is D - 31 for 30 days. Days are counted on the calendar of the time zone, so a day of 23 or 25 hours is one day.
"""

from bisect import bisect
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from pandora_dagster.contracts.archive_records import DueTurn, Hold, NotDueReason, NotDueTurn, TurnActivity
from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey

EARLIEST = date(2000, 1, 1)
"""Older turns have this day: one wrong year would otherwise create a thousand years of day partitions."""
_FINISHED = (TurnState.SAVED, TurnState.CLARIFY)


def local_day(moment: str, zone: ZoneInfo) -> date:
    """The local date of an ISO 8601 moment with its offset, not before EARLIEST; raises ValueError."""
    parsed = datetime.fromisoformat(moment)
    if parsed.tzinfo is None:
        raise ValueError(f"{moment!r}: no offset: expected a moment such as 2026-01-04T14:30:00Z")
    try:
        return max(EARLIEST, parsed.astimezone(zone).date())
    except OverflowError as error:
        raise ValueError(f"{moment!r}: beyond the calendar") from error


def timestamp_bounds(first: date, last: date) -> tuple[str, str]:
    """Bounds [from, before) of the ISO 8601 texts whose day in some time zone is one of these: an offset moves the date of a moment by
    less than two days."""
    earliest = "" if first <= EARLIEST else str(first - timedelta(days=2))
    return earliest, "\U0010ffff" if last.year == date.max.year else str(last + timedelta(days=3))


def last_due_day(now: datetime, zone: ZoneInfo, after_days: int) -> date:
    """The newest day whose turns are due at `now`; raises ValueError where that is before the calendar begins."""
    try:
        return now.astimezone(zone).date() - timedelta(days=after_days + 1)
    except OverflowError as error:
        raise ValueError(f"{after_days} days before {now.date()}: before the calendar begins") from error


def date_ranges(due: Collection[date], settled: Collection[date]) -> tuple[tuple[date, date], ...]:
    """Ranges of days, first to last, that contain every due day and no settled one, oldest first: one run each."""
    found: list[tuple[date, date]] = []
    breaks = sorted(set(settled) - set(due))
    for day in sorted(set(due)):
        if found and bisect(breaks, found[-1][1]) == bisect(breaks, day):
            found[-1] = (found[-1][0], day)
        else:
            found.append((day, day))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class EligibilityRule:
    """The rule of a selection. `interventions`: turn -> its open intervention."""

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
        if day > (last := last_due_day(self.now, self.zone, self.after_days)):
            return NotDueTurn(turn.key, day, NotDueReason.YOUNG, f"its day is {day}: days up to {last} are due")
        if intervention := self.interventions.get(turn.key):
            return NotDueTurn(turn.key, day, NotDueReason.INTERVENTION, f"intervention {intervention} is open: expected it resolved")
        if turn.state == TurnState.ABANDONED:
            return NotDueTurn(turn.key, day, NotDueReason.HALTED, "it is abandoned: it has no answer to archive")
        if turn.state not in _FINISHED:
            kept = NotDueReason.HALTED if turn.state == TurnState.HALTED else NotDueReason.OPEN
            return NotDueTurn(turn.key, day, kept, f"it is {turn.state}: continue it: pandora resume {turn.key}")
        if hold and (reason := self.hold_reason(hold)):
            return NotDueTurn(turn.key, day, NotDueReason.HELD, reason)
        return DueTurn(turn.key, day)

    def hold_reason(self, hold: Hold) -> str:
        """Why a hold is in force; "" once it has ended. An unreadable end does not end it."""
        why = f" ({hold.why})" if hold.why else ""
        if hold.until is None:
            return f"it is pinned{why}"
        try:
            until = datetime.fromisoformat(hold.until)
            over = until <= self.now
        except (ValueError, TypeError):
            return f"it is held{why}, until {hold.until!r}: not a time: expected one such as 2026-01-04T14:30:00Z"
        return "" if over else f"it is held until {hold.until}{why}"
