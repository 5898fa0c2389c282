"""Whose day a turn is, and what an archival run looks at: another time zone than UTC, turns that stay, turns that come late."""

import json
import os
from datetime import date, datetime, timedelta
from functools import partial

import dagster as dg
import pytest
from dagster._core.storage.defs_state.base import set_defs_state_storage

from pandora_dagster.app import open_app
from pandora_dagster.app.archive_service import open_archive
from pandora_dagster.archive.turn_restoration import pin
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.user.summary_levels import LevelSubject
from pandora_dagster.defs.archival import archival_schedule as archival_schedule_module
from pandora_dagster.defs.archival.archival_schedule import ALARM, CHECK, SCHEDULE, AlarmCursor
from pandora_dagster.defs.archival.archive_assets import ASSET
from pandora_dagster.defs.archival.level_assets import NARRATIVES
from pandora_dagster.defs.instance import ARCHIVAL_DAYS
from pandora_dagster.defs.resources import ArchiveResource
from pandora_dagster.settings import load_settings
from tests.defs.archival.test_archive_assets import NIGHT, checks, days_of, definitions, run, tick

ANN = UserId("ann")


def conversation_at(session, at, user="ann"):
    """One turn of a session, at this moment."""
    asked = f"Which desk did we order on {at[:10]}?"
    messages = [{"role": "user", "content": asked, "created_at": at}, {"role": "assistant", "content": "The oak desk.", "created_at": at}]
    return {"id": session, "user_id": user, "created_at": at, "messages": messages}


def imported(app, *lines):
    report = app.transfer.import_conversations([json.dumps(line).encode() for line in lines], where="made")
    assert not report.faults


@pytest.fixture
def auckland(tmp_path, monkeypatch):
    """An empty store of somebody whose day begins half a day before that of UTC."""
    for name in [name for name in os.environ if name.startswith(("PANDORA_", "DAGSTER_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PANDORA_ROOT", str(tmp_path))
    monkeypatch.setenv("PANDORA_TIMEZONE", "Pacific/Auckland")
    opened = open_app(load_settings(os.environ))
    yield opened
    opened.close()


def test_days_and_the_archival_runs_hour_are_those_of_the_zone(auckland):
    """20:00 of the 4th in UTC is the 5th there: its partition, its table, its place in cold storage; the schedule ticks at its 02:00."""
    imported(auckland, conversation_at("late", "2026-01-04T20:00:00Z"), conversation_at("early", "2026-01-04T09:00:00Z"))
    graph = definitions(auckland)
    schedule = graph.resolve_schedule_def(SCHEDULE)
    assert (schedule.execution_timezone, schedule.cron_schedule) == ("Pacific/Auckland", "0 2 * * *")
    with dg.instance_for_test() as instance:
        result = run(graph, instance, "2026-01-05")
        assert result.success and checks(result)["index_agrees"].passed
        (made,) = result.asset_materializations_for_node(ASSET)
        assert made.metadata["turns"].value == 1
        states = {auckland.turns.manifest(key).session_id: auckland.turns.manifest(key) for key in auckland.turns.keys(None)}
        assert (states["late"].state, states["early"].state) == ("archived", "saved")
        assert states["late"].archive.day == "2026-01-05"
        archive = ArchiveResource(root=str(auckland.settings.root), runtime="extractive").open()
        assert [day.turns for day in archive.verify_days({date(2026, 1, 4), date(2026, 1, 5)})] == [0, 1]
        assert archive.subjects({date(2026, 1, 5)}, by_user=False) == {date(2026, 1, 5): frozenset({LevelSubject(ANN, "late")})}


def test_a_turn_that_came_late_is_missed_by_its_check(auckland):
    """Imported after the day's night: due, and not archived, until the next archival run takes it."""
    imported(auckland, conversation_at("one", "2026-01-05T02:00:00Z"))
    graph = definitions(auckland)
    with dg.instance_for_test() as instance:
        assert checks(run(graph, instance, "2026-01-05"))["nothing_left_behind"].passed
        imported(auckland, conversation_at("two", "2026-01-05T03:00:00Z"))
        archive = ArchiveResource(root=str(auckland.settings.root), runtime="extractive").open()
        (day,) = archive.verify_days({date(2026, 1, 5)})
        (verdict,) = [v for v in day.verdicts if v.check == "nothing_left_behind"]
        assert not verdict.passed and verdict.faults == ("ann:turn_000002: due, and not archived",)
        assert checks(run(graph, instance, "2026-01-05"))["nothing_left_behind"].passed


def test_a_session_is_reported_once_its_last_day_is_over_though_that_turn_stays(auckland):
    """Its last turn is pinned: the archival run of that turn's day looks at the session all the same, and tells what was archived of it."""
    line = conversation_at("first", "2026-01-05T02:00:00Z")
    line["messages"] += conversation_at("first", "2026-01-09T02:00:00Z")["messages"]
    imported(auckland, line, conversation_at("other", "2026-01-09T02:00:00Z", "ben"))
    last = TurnKey(ANN, 2)
    assert auckland.turns.manifest(last).session_id == "first"
    pin(last, open_archive(auckland))
    graph = definitions(auckland)
    with dg.instance_for_test() as instance:
        run(graph, instance, "2026-01-05")
        (path,) = auckland.settings.root.glob("users/ann/sessions/*/narrative.json")
        path.unlink()  # as on an archival run on which the session was not at rest yet
        result = run(graph, instance, "2026-01-09")
        (made,) = result.asset_materializations_for_node(NARRATIVES)
        assert {r.data["of"] for r in made.metadata["levels"].records} == {"ann:session/first", "ben:session/other"}
        assert path.exists() and auckland.turns.manifest(last).state == "saved"


def alarm_at(graph, instance, monkeypatch, moment, cursor):
    """What the sensor reports at this moment, and its cursor."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return moment

    monkeypatch.setattr(archival_schedule_module, "datetime", Clock)
    with set_defs_state_storage(instance.defs_state_storage):
        sensor = graph.resolve_sensor_def(ALARM)
        found = sensor(dg.build_sensor_context(instance=instance, cursor=cursor, definitions=graph, resources=graph.resources))
    return list(found.asset_events or ()), found.cursor


def test_a_missed_archival_run_raises_an_alarm_until_it_is_made_up(graph, app, instance, monkeypatch):
    """What is due when the schedule ticks and six hours later fails the check, once; what was imported since then does not; the sensor adds
    the days; a run that archives them passes the check again."""
    days = days_of(app)
    look = partial(alarm_at, graph, instance, monkeypatch)
    events, cursor = look(NIGHT - timedelta(hours=4), None)
    assert not events and set(instance.get_dynamic_partitions(ARCHIVAL_DAYS.name)) == set(days)
    events, cursor = look(NIGHT + timedelta(hours=5), cursor)
    assert not events, "a run may take six hours"
    (report,), cursor = look(NIGHT + timedelta(hours=7), cursor)
    assert not report.passed and report.check_name == CHECK and min(days) in report.description
    events, cursor = look(NIGHT + timedelta(hours=8), cursor)
    assert not events
    result = run(graph, instance, min(days), max(days))
    assert result.success and checks(result)[CHECK].passed
    (report,), cursor = look(NIGHT + timedelta(hours=9), cursor)
    assert report.passed
    imported(app, conversation_at("old", "2023-05-08T10:00:00Z"))
    events, cursor = look(NIGHT + timedelta(hours=10), cursor)
    assert not events and instance.get_dynamic_partitions(ARCHIVAL_DAYS.name)[-1] == "2023-05-08"
    (report,), cursor = look(NIGHT + timedelta(days=1, hours=7), cursor)
    assert not report.passed and "2023-05-08: not archived" in report.description


def test_a_daemon_that_was_down_at_the_time_of_the_schedule_reports_it(app, instance, monkeypatch):
    """The day became due at midnight and its run was missed at 02:00; the sensor, which comes up at 09:00, says so."""
    midnight = NIGHT.replace(hour=0)
    imported(app, conversation_at("due", (midnight - timedelta(days=31) + timedelta(hours=9)).isoformat()))
    graph = definitions(app)
    ((first, last),) = tick(graph, instance, midnight - timedelta(hours=22))
    assert run(graph, instance, first, last).success
    look = partial(alarm_at, graph, instance, monkeypatch)
    events, cursor = look(midnight - timedelta(hours=3), None)
    assert not events
    (report,), _ = look(midnight + timedelta(hours=9), cursor)
    assert not report.passed and (midnight - timedelta(days=31)).date().isoformat() in report.description


def test_a_cursor_of_an_older_version_is_no_error(graph, instance, monkeypatch):
    """It held the missed days, with commas."""
    events, cursor = alarm_at(graph, instance, monkeypatch, NIGHT, "2026-01-03,2026-01-04")
    assert not events and AlarmCursor.parse(cursor).evaluated == NIGHT
