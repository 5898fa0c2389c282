"""Nights cut off between the archiving of their turns and what follows from it: keys, tables, checks, levels. The next makes them up."""

import os
from datetime import UTC, date, datetime, timedelta

import dagster as dg
import pytest
from dagster._core.storage.defs_state.base import set_defs_state_storage

from pandora_dagster.app import open_app
from pandora_dagster.app.archive_service import ArchiveService, open_archive
from pandora_dagster.archive.archive_selection import select_turns
from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.defs.archival import archival_schedule, archive_assets
from pandora_dagster.defs.archival.archival_schedule import ALARM, CHECK, AlarmCursor
from pandora_dagster.defs.archival.archive_assets import ASSET
from pandora_dagster.defs.archival.level_assets import DIGESTS, NARRATIVES
from pandora_dagster.defs.instance import add_turn_partitions
from pandora_dagster.defs.resources import ArchiveResource
from pandora_dagster.settings import load_settings
from tests.defs.archival.test_archival_schedule import ANN, conversation_at, imported
from tests.defs.archival.test_archive_assets import CHECKS, checks, definitions, run, tick

RUN = (ASSET, NARRATIVES, DIGESTS)
TURNS = [TurnKey(ANN, 1), TurnKey(ANN, 2), TurnKey(UserId("ben"), 1)]
AT = datetime.now(UTC).replace(hour=2, minute=0, second=0, microsecond=0)
FIRST, LAST, LATER = (str(AT.date() - timedelta(days=31 + back)) for back in (40, 36, 33))
"""Days of turns that are due; the last one has its turns later."""


@pytest.fixture
def app(tmp_path, monkeypatch):
    """Three turns of two users on two days."""
    for name in [name for name in os.environ if name.startswith(("PANDORA_", "DAGSTER_"))]:
        monkeypatch.delenv(name)
    opened = open_app(load_settings({"PANDORA_ROOT": str(tmp_path)}))
    imported(
        opened,
        conversation_at("a", f"{FIRST}T10:00:00Z"),
        conversation_at("b", f"{LAST}T10:00:00Z"),
        conversation_at("c", f"{LAST}T11:00:00Z", user="ben"),
    )
    yield opened
    opened.close()


@pytest.fixture
def instance():
    with dg.instance_for_test() as opened:
        add_turn_partitions(opened, [*TURNS, TurnKey(ANN, 9)])
        yield opened


def killed(*args, **kwargs):
    raise RuntimeError("killed")


def cut_off(app, instance, monkeypatch, first=FIRST, last=LAST, *, owner=ArchiveService, step="verify_days"):
    """A run over these days that gets no further than to this step."""
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, killed)
        assert not run(definitions(app), instance, first, last).success


def made(instance):
    """The days that are materialised, by asset."""
    return {name: instance.get_materialized_partitions(dg.AssetKey(name)) for name in RUN}


def look(app, instance, cursor=""):
    """What the alarm of missed archival runs says now: its evaluation, or None where it is silent."""
    graph = definitions(app)
    with set_defs_state_storage(instance.defs_state_storage):
        context = dg.build_sensor_context(instance=instance, cursor=cursor, definitions=graph, resources=graph.resources)
        found = graph.resolve_sensor_def(ALARM)(context)
    return next(iter(found.asset_events or ()), None)


@pytest.mark.parametrize(
    ("owner", "step"),
    [(archive_assets, "remove_turn_partitions"), (ArchiveService, "verify_days"), (ArchiveService, "update_level")],
    ids=["keys", "days", "levels"],
)
def test_an_archival_run_that_was_cut_off_is_made_up(app, instance, monkeypatch, owner, step):
    """The turns are archived, what follows from it is missing: the alarm names the days, one tick asks for all of them in one run, then
    keys, tables, checks, narratives and digests are as if nothing had happened, and the next tick asks for nothing."""
    cut_off(app, instance, monkeypatch, owner=owner, step=step)
    assert all(app.turns.manifest(key).state is TurnState.ARCHIVED for key in TURNS)
    assert not made(instance)[DIGESTS]
    alarm = look(app, instance)
    assert not alarm.passed and alarm.check_name == CHECK and f"from {FIRST} to " in alarm.description

    ((first, last),) = tick(definitions(app), instance, AT)
    assert (first, last) == (FIRST, LAST)
    result = run(definitions(app), instance, first, last)
    assert result.success
    assert instance.get_dynamic_partitions("turns") == ["ann:turn_000009"]
    assert all({FIRST, LAST} <= days for days in made(instance).values())
    assert {name for name, e in checks(result).items() if e.passed} == {*CHECKS, CHECK}
    tables = {m.partition: m.metadata for m in result.asset_materializations_for_node(ASSET)}
    assert (tables[FIRST]["turns"].value, tables[LAST]["turns"].value) == (1, 2)
    archive = ArchiveResource(root=str(app.settings.root), runtime="extractive").open()
    sessions = archive.subjects({date.fromisoformat(FIRST), date.fromisoformat(LAST)}, by_user=False)
    assert not [fault for subjects in sessions.values() for fault in archive.source_faults(subjects)]
    users = app.settings.root / "users"
    assert len(list(users.glob("*/sessions/*/narrative.json"))) == 3 and len(list(users.glob("*/digest.json"))) == 2

    alarmed = AlarmCursor(missed=(date.fromisoformat(FIRST), date.fromisoformat(LAST))).encode()
    assert look(app, instance, cursor=alarmed).passed and look(app, instance) is None
    assert tick(definitions(app), instance, AT) == []


def test_a_day_that_had_its_night_before_is_made_up_too(app, instance, monkeypatch):
    """Turns came late to a day that is materialised, and the run that archived them was cut off: the older table hides nothing."""
    assert run(definitions(app), instance, FIRST, LAST).success
    imported(app, conversation_at("late", f"{LATER}T10:00:00Z"))
    late = TurnKey(ANN, 3)
    add_turn_partitions(instance, [late])
    assert tick(definitions(app), instance, AT) == [LATER]
    cut_off(app, instance, monkeypatch, LATER, LATER, owner=archive_assets, step="remove_turn_partitions")
    assert app.turns.manifest(late).state is TurnState.ARCHIVED
    assert f"{LATER}: " in look(app, instance).description
    assert tick(definitions(app), instance, AT) == [LATER]
    assert run(definitions(app), instance, LATER).success
    assert instance.get_dynamic_partitions("turns") == ["ann:turn_000009"] and look(app, instance) is None
    assert tick(definitions(app), instance, AT) == []


def test_an_empty_day_that_was_cut_off_is_made_up(app, instance, monkeypatch):
    """Somebody added it and ran it. It holds no turn, and its run is no less missing: Dagster's records say so, the store does not."""
    assert run(definitions(app), instance, FIRST, LAST).success
    empty = str(date.fromisoformat(LATER) + timedelta(days=1))
    cut_off(app, instance, monkeypatch, LATER, empty, step="update_level")
    assert tick(definitions(app), instance, AT) == [(LATER, empty)]


def test_days_archived_by_hand_are_reported_once(app, instance):
    """Turns that were archived without Dagster: no alarm; the next archival run materialises their days, in one run, and none after it."""
    ctx = open_archive(app)
    assert ArchiveService(app).archive(select_turns(ctx), ctx, on_row=lambda row: None).counts
    assert all(app.turns.manifest(key).state is TurnState.ARCHIVED for key in TURNS)
    assert look(app, instance) is None
    asked = tick(definitions(app), instance, AT)
    assert asked == [(FIRST, LAST)]
    assert run(definitions(app), instance, *asked[0]).success
    assert instance.get_dynamic_partitions("turns") == ["ann:turn_000009"]
    assert tick(definitions(app), instance, AT) == []


def test_a_day_lacks_its_levels_alone(app, instance):
    """Its turns were reported by themselves; the archival run asks for the day until its users were, too."""
    graph = definitions(app)
    assert tick(graph, instance, AT) == [(FIRST, LAST)]
    job = graph.resolve_implicit_global_asset_job_def()
    assert job.execute_in_process(instance=instance, partition_key=FIRST, asset_selection=[dg.AssetKey(ASSET)]).success
    assert run(graph, instance, LAST).success and made(instance)[NARRATIVES] == {LAST}
    assert tick(graph, instance, AT) == [FIRST]
    assert run(graph, instance, FIRST).success
    assert tick(graph, instance, AT) == []


def test_a_run_under_way_raises_no_alarm_until_it_takes_too_long(app, instance, monkeypatch):
    """Half an archival run is none that was cut off, while it may still go on; one whose process was killed says for ever that it does."""
    seen = []
    levels = ArchiveService.update_level

    def looked(*args, **kwargs):
        seen.append(look(app, instance))
        with monkeypatch.context() as patch:
            patch.setattr(archival_schedule, "_MAX_RUN_TIME", timedelta(0))
            seen.append(look(app, instance))
        return levels(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(ArchiveService, "update_level", looked)
        assert run(definitions(app), instance, LAST).success
    assert [one and one.passed for one in seen[:2]] == [None, False] and LAST in seen[1].metadata["days"].value
