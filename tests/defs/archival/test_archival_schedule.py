"""Whose day a turn is, and what an archival run looks at: another time zone than UTC, turns that stay, turns that come late."""

import json
import os
from datetime import date

import dagster as dg
import pytest

from pandora_dagster.app import open_app, open_archive
from pandora_dagster.archive.turn_restoration import pin
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.user.summary_levels import LevelSubject
from pandora_dagster.defs.archival.archival_schedule import SCHEDULE
from pandora_dagster.defs.archival.archive_assets import ASSET
from pandora_dagster.defs.archival.level_assets import NARRATIVES
from pandora_dagster.defs.resources import ArchiveResource
from pandora_dagster.settings import load_settings
from tests.defs.archival.test_archive_assets import checks, definitions, run

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
        assert {r.data["of"] for r in made.metadata["levels"].records} == {"ann, session first", "ben, session other"}
        assert path.exists() and auckland.turns.manifest(last).state == "saved"
