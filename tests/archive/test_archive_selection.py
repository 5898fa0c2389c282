"""Which turns are due: days of a time zone, and every reason to stay."""

from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandora_dagster.archive.archive_selection import EARLIEST_DAY, EligibilityRule, last_due_day, local_day, timestamp_bounds
from pandora_dagster.contracts.archive_records import DueTurn, Hold, NotDueReason, NotDueTurn, TurnActivity
from pandora_dagster.contracts.ids import TurnKey

KEY = TurnKey("anna", 1)
NOW = datetime(2026, 3, 1, 2, tzinfo=UTC)
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Kiritimati"])
MOMENTS = st.datetimes(datetime(2000, 1, 3), datetime(2060, 12, 31), timezones=st.just(UTC))


def rules(now=NOW, zone="UTC", days=30, interventions=None):
    return EligibilityRule(now, ZoneInfo(zone), days, interventions or {})


def old(state="saved", last="2026-01-29T23:59:59Z"):
    return TurnActivity(KEY, state, last)


@given(MOMENTS, ZONES, st.integers(1, 400), st.integers(0, 23), st.integers(0, 59))
def test_a_turn_becomes_due_with_the_local_day_whatever_the_clocks_do(moment, name, days, hour, minute):
    """At any hour of the local day before which `days` whole days have passed since its own it is due, and at no hour of the day before;
    also where a day has 23 or 25 hours."""
    zone = ZoneInfo(name)
    turn = TurnActivity(KEY, "saved", moment.isoformat())
    day = local_day(turn.last_activity, zone)
    assert day == moment.astimezone(zone).date()

    def at(local):
        return rules(datetime(local.year, local.month, local.day, hour, minute, tzinfo=zone).astimezone(UTC), name, days).decide(turn)

    when = day + timedelta(days=days + 1)
    skipped = datetime(when.year, when.month, when.day, hour, minute, tzinfo=zone).astimezone(UTC).astimezone(zone).date() != when
    if not skipped:
        assert at(when) == DueTurn(KEY, day)
    assert isinstance(at(when - timedelta(days=2)), NotDueTurn)
    assert at(when + timedelta(days=2)) == DueTurn(KEY, day)


@given(MOMENTS, ZONES, st.integers(1, 400))
def test_every_moment_has_one_newest_due_day(now, name, days):
    """It is the day before the local date less the days, never off by one at a change of the clocks: at 02:00 on D, D - 31."""
    zone = ZoneInfo(name)
    assert (now.astimezone(zone).date() - last_due_day(now, zone, days)).days == days + 1


@pytest.mark.parametrize(
    ("stands", "hold", "kept"),
    [
        (old("open"), None, NotDueReason.OPEN),
        (old("halted"), None, NotDueReason.HALTED),
        (old("archived"), None, NotDueReason.ARCHIVED),
        (old(last="2026-01-30T00:00:00Z"), None, NotDueReason.YOUNG),
        (old(last="2026-02-30T00:00:00Z"), None, NotDueReason.UNREADABLE),
        (old(last="2026-01-01T00:00:00"), None, NotDueReason.UNREADABLE),
        (old(last="yesterday"), None, NotDueReason.UNREADABLE),
        (TurnActivity(KEY, "unreadable", "turn.json: empty"), None, NotDueReason.UNREADABLE),
        (old(), Hold(at="2026-01-01T00:00:00Z"), NotDueReason.HELD),
        (old(), Hold(until="2026-03-01T02:00:01Z", at="2026-01-01T00:00:00Z"), NotDueReason.HELD),
        (old(), Hold(until="no moment", at="2026-01-01T00:00:00Z"), NotDueReason.HELD),
        (old(), Hold(until="2026-03-01T02:00:00", at="2026-01-01T00:00:00Z"), NotDueReason.HELD),
    ],
)
def test_what_stays_says_why(stands, hold, kept):
    """One reason, in words that tell what is expected."""
    judged = rules().decide(stands, hold)
    assert isinstance(judged, NotDueTurn) and judged.cause is kept and len(judged.reason) > 10


@pytest.mark.parametrize("state", ["saved", "clarify"])
@pytest.mark.parametrize("until", ["2026-03-01T02:00:00Z", "2026-03-01T03:00:00+01:00", "2020-01-01T00:00:00Z"])
def test_a_hold_that_is_over_keeps_nothing(state, until):
    """Its end is a moment, in any offset."""
    assert rules().decide(old(state), Hold(until=until, at="2026-01-01T00:00:00Z")) == DueTurn(KEY, date(2026, 1, 29))


def test_an_open_intervention_keeps_its_turn_only():
    """Also where the turn is saved."""
    judged = rules(interventions={KEY: "int_1"}).decide(old())
    assert isinstance(judged, NotDueTurn) and judged.cause is NotDueReason.INTERVENTION and "int_1" in judged.reason
    assert isinstance(rules(interventions={TurnKey("ben", 1): "int_1"}).decide(old()), DueTurn)


def test_a_clock_set_back_makes_nothing_due():
    """What happened after `now` is young."""
    judged = rules(now=datetime(2020, 1, 1, tzinfo=UTC)).decide(old())
    assert isinstance(judged, NotDueTurn) and judged.cause is NotDueReason.YOUNG


@given(MOMENTS, ZONES, st.integers(-14 * 60, 14 * 60), st.integers(0, 3), st.integers(0, 3))
def test_texts_between_leave_no_turn_of_the_days_out(moment, name, offset, before, after):
    """However the moment is written, and whatever the zone of the days."""
    text = moment.astimezone(timezone(timedelta(minutes=offset))).isoformat()
    day = local_day(text, ZoneInfo(name))
    start, end = timestamp_bounds(day - timedelta(days=before), day + timedelta(days=after))
    assert start <= text < end


def test_texts_between_at_the_ends_of_the_calendar():
    """Turns that say they are older than the earliest day have that day."""
    assert timestamp_bounds(EARLIEST_DAY, date.max) == ("", "\U0010ffff")
