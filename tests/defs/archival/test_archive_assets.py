"""The archival runs in Dagster: assets over a real house, the schedule and the sensor called as their daemon calls them."""

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import dagster as dg
from dagster._core.storage.defs_state.base import set_defs_state_storage

from pandora_dagster.app.archive_service import ArchiveService, open_archive
from pandora_dagster.archive.turn_restoration import pin, restore, unpin
from pandora_dagster.contracts.archive_records import Hold
from pandora_dagster.contracts.enums import Priority, TurnState
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.user.summary_levels import LevelSubject
from pandora_dagster.defs.archival.archival_schedule import (
    ARCHIVAL_JOB,
    CHECK,
    SCHEDULE,
    archival_schedule,
    missed_archival_check,
    missed_archival_sensor,
)
from pandora_dagster.defs.archival.archive_assets import ASSET, archive_asset
from pandora_dagster.defs.archival.level_assets import DIGESTS, NARRATIVES, level_assets
from pandora_dagster.defs.instance import ARCHIVAL_DAYS, TURNS, add_archival_days, add_turn_partitions
from pandora_dagster.defs.resources import ArchiveResource

RANGE = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")
NIGHT = datetime.now(UTC).replace(hour=2, minute=0, second=0, microsecond=0)
"""The time of the schedule, today."""
CHECKS = ("no_fact_changed", "originals_restorable", "within_target", "index_agrees", "nothing_left_behind")


def definitions(app, archive=ArchiveResource):
    """As a code location loads them now."""
    archive = archive(root=str(app.settings.root), runtime="extractive")
    return dg.Definitions(
        assets=[archive_asset(), *level_assets(), dg.AssetSpec("turn_summary", partitions_def=TURNS)],
        asset_checks=[missed_archival_check(app.settings)],
        jobs=[ARCHIVAL_JOB],
        schedules=[archival_schedule(app.settings)],
        sensors=[missed_archival_sensor(app.settings)],
        resources={"archive": archive},
    )


def run(graph, instance, first, last=None):
    """Run the days that are partitions from `first` to `last`; a day that the schedule has not added is added, as the UI allows."""
    add_archival_days(instance, [date.fromisoformat(day) for day in (first, last or first)])
    job = graph.resolve_job_def("archival")
    if last is None:
        return job.execute_in_process(instance=instance, partition_key=first, raise_on_error=False)
    return job.execute_in_process(instance=instance, tags=dict(zip(RANGE, (first, last), strict=True)), raise_on_error=False)


def tick(graph, instance, at):
    """What the daemon would start at this moment: (partition or range) for each run.

    Dagster reads the graph with the storage of the instance that was entered last, which may be one that is collected already.
    """
    with set_defs_state_storage(instance.defs_state_storage):
        schedule = graph.resolve_schedule_def(SCHEDULE)
        context = dg.build_schedule_context(
            instance=instance, scheduled_execution_time=at, resources=graph.resources, repository_def=graph.get_repository_def()
        )
        data = schedule.evaluate_tick(context)
    return [r.tags.get("dagster/partition") or (r.tags[RANGE[0]], r.tags[RANGE[1]]) for r in data.run_requests]


def checks(result, asset=ASSET):
    return {e.check_name: e for e in result.get_asset_check_evaluations() if e.asset_key.path == [asset]}


def days_of(app):
    """Day -> turns of the example."""
    found = {}
    for key in app.turns.keys(None):
        found.setdefault(app.turns.manifest(key).last_activity[:10], []).append(key)
    return found


def test_a_range_of_days_is_archived_in_one_run(graph, app, instance):
    """Every day has its table and its sums; all checks pass with the days in their metadata; the partition keys of archived turns go,
    their history stays."""
    days = days_of(app)
    first, last = min(days), max(days)
    keys = list(app.turns.keys(None))
    add_turn_partitions(instance, [*keys, TurnKey.parse("ann:turn_000001")])
    assert tick(graph, instance, NIGHT) == [(first, last)]
    result = run(graph, instance, first, last)
    assert result.success
    made = {m.partition: m.metadata for m in result.asset_materializations_for_node(ASSET)}
    assert set(made) == set(days) == set(instance.get_dynamic_partitions(ARCHIVAL_DAYS.name)), "an empty day has no partition"
    for day, turns in days.items():
        rows = [r.data for r in made[day]["documents_table"].records]
        assert {r["turn"] for r in rows} == {str(t) for t in turns} and made[day]["turns"].value == len(turns)
        assert all(f"/lineage/{t}/context.md)" in made[day]["lineage_of_documents"].value for t in turns)
        assert made[day]["tokens_before"].value == sum(r["tokens_before"] for r in rows)
        for r in rows:
            assert (app.settings.root / r["cold"]).is_file() and r["tokens_after"] <= r["tokens_before"]
            assert r["whole"] or (r["runtime"] == "extractive" and r["facts_kept"] <= r["facts"])
    found = checks(result)
    assert {name for name, e in found.items() if e.passed} == {*CHECKS, CHECK}
    assert found["no_fact_changed"].metadata["day"].value == f"{first} to {last}"
    assert {r.data["day"] for r in found["originals_restorable"].metadata["days"].records} == set(made)
    assert instance.get_dynamic_partitions("turns") == ["ann:turn_000001"]
    assert all(app.turns.manifest(key).state is TurnState.ARCHIVED for key in keys) and app.indexes.verify() == ()
    assert app.turns.manifest(keys[0]).archive.run_id == result.run_id


def test_sessions_and_users_follow_the_turns(graph, app, instance):
    """Each day tells of its sessions and users; the links prove that nothing is lost; a session that cannot be reported fails the check and
    is named, the next run makes it up."""
    days = days_of(app)
    ((first, last),) = tick(graph, instance, NIGHT)
    result = run(graph, instance, first, last)
    assert result.success and checks(result, NARRATIVES)["sources_linked"].passed and checks(result, DIGESTS)["sources_linked"].passed
    for asset, wanted in ((NARRATIVES, lambda m: f"{m.user_id}:session/{m.session_id}"), (DIGESTS, lambda m: f"{m.user_id}:digest")):
        made = {m.partition: m.metadata for m in result.asset_materializations_for_node(asset)}
        for day, turns in days.items():
            rows = [r.data for r in made[day]["levels"].records]
            assert {r["of"] for r in rows} == {wanted(app.turns.manifest(t)) for t in turns}
            assert all(r["links"] and r["runtime"] == "extractive" and r["tokens"] for r in rows)
            assert made[day]["lineage"].value.count("/lineage/example:") == len(rows)
    (path,) = (app.settings.root / "users").glob("*/sessions/chair/narrative.json")
    path.write_text(path.read_text().replace('"turn": ', '"turn": 9'))
    archive = ArchiveResource(root=str(app.settings.root), runtime="extractive").open()
    chair = LevelSubject(UserId("example"), "chair")
    assert any("session/chair" in fault for fault in archive.source_faults({chair}))
    assert run(graph, instance, first, last).success and not list(archive.source_faults({chair}))


class LinkLossService(ArchiveService):
    """An archive that reports a lost link of every subject."""

    def source_faults(self, subjects):
        return iter(f"{subject}: its link leads nowhere" for subject in sorted(subjects, key=str))


class LinkLossResource(ArchiveResource):
    def open(self):
        return LinkLossService(self.app(Priority.BATCH))


def test_a_link_that_is_lost_fails_the_check_of_its_level(app, instance):
    """The run itself went well; the check tells each."""
    day = min(days_of(app))
    result = run(definitions(app, LinkLossResource), instance, day)
    assert result.success
    for asset in (NARRATIVES, DIGESTS):
        found = checks(result, asset)["sources_linked"]
        assert not found.passed and "its link leads nowhere" in found.description and "faults" in found.metadata


def test_many_spans_are_five_runs_the_newest_day_among_them(graph, app, instance):
    """What is free again on many days far apart comes night by night: the oldest first, and the newest day each time."""
    reply = '{"id": "c%d", "user_id": "ann", "created_at": "2026-0%d-%02dT10:00:00Z", "messages": [{"role": "user", "content": "Hello."}]}'
    lines = [(reply % (number, number // 2 + 2, 5 + number % 2)).encode() for number in range(13)]
    assert not app.transfer.import_conversations(lines, where="months").faults
    ((first, last),) = tick(graph, instance, NIGHT)
    assert run(graph, instance, first, last).success and tick(graph, instance, NIGHT) == []
    ctx = open_archive(app)
    for number in range(1, 14, 2):
        restore(TurnKey(UserId("ann"), number), ctx)
        unpin(TurnKey(UserId("ann"), number), ctx)
    assert tick(graph, instance, NIGHT) == ["2026-02-05", "2026-03-05", "2026-04-05", "2026-05-05", "2026-08-05"]


def test_a_damaged_object_and_a_damaged_turn_fail_their_checks_alone(graph, app, instance):
    """The day's run goes through; the check names the object and the turn; the rest of the day is as it was."""
    day, turns = max(days_of(app).items(), key=lambda item: len(item[1]))
    assert len(turns) >= 3
    broken = turns[0]
    Path(app.turns.path(broken), "messages.jsonl").write_text("{}\n")
    result = run(graph, instance, day)
    found = checks(result)
    assert result.success and not found["nothing_left_behind"].passed and found["no_fact_changed"].passed
    assert str(broken) in found["nothing_left_behind"].metadata["faults"].value
    assert app.turns.manifest(broken).state is TurnState.SAVED
    (opened,) = [i for i in app.interventions.list(state="open") if i.turn_id == broken.turn_id]
    assert opened.id in found["nothing_left_behind"].metadata["faults"].value

    record = app.turns.manifest(turns[1]).archive
    path = app.settings.root / record.cold
    path.write_bytes(path.read_bytes()[:-7])
    behind = app.turns.manifest(turns[2])
    app.dependencies.index.update_states([behind.model_copy(update={"tokens": behind.tokens + 1})])
    found = checks(run(graph, instance, day))
    assert {name for name in CHECKS if not found[name].passed} == {"originals_restorable", "index_agrees", "nothing_left_behind"}
    assert str(turns[1]) in found["originals_restorable"].description and str(turns[2]) in found["index_agrees"].description
    assert found["originals_restorable"].metadata["days"].records[0].data["faulty"] == 1


def test_a_day_that_is_not_due_is_refused(graph, app, instance):
    """Somebody adds a day whose turns are too young: its run fails with the days that are due; the schedule does not repeat it."""
    day = (datetime.now(UTC).date() - timedelta(days=3)).isoformat()
    result = run(graph, instance, day)
    (failed,) = result.get_step_failure_events()[:1]
    assert not result.success and f"{day}: its turns are not due yet" in failed.event_specific_data.error_display_string
    ((first, last),) = tick(graph, instance, NIGHT)
    assert last < day and checks(run(graph, instance, first, last))[CHECK].passed


def test_the_archival_run_takes_what_is_due_and_what_is_left(graph, app, instance):
    """The first run archives all that is due; a tick without due turns starts none; a turn whose hold ended brings its day."""
    days = days_of(app)
    held = days[min(days)][0]
    pin(held, open_archive(app))
    ((first, last),) = tick(graph, instance, NIGHT)
    assert (first, last) == (min(d for d in days if days[d] != [held]), max(days))
    assert run(graph, instance, first, last).success
    assert tick(graph, instance, NIGHT) == [] and tick(graph, instance, NIGHT + timedelta(days=2)) == []

    unpin(held, open_archive(app))
    assert tick(graph, instance, NIGHT) == [min(days)]
    back = days[max(days)][-1]
    restore(back, open_archive(app))
    assert tick(graph, instance, NIGHT) == [min(days)], "a restored turn is held"
    unpin(back, open_archive(app))
    assert tick(graph, instance, NIGHT) == sorted([min(days), max(days)])


def test_an_import_while_the_definitions_are_loaded_is_archived_the_next_night(graph, app, instance):
    """Its day becomes a partition of the graph that was loaded before; days between have none."""
    days = days_of(app)
    assert tick(graph, instance, NIGHT) == [(min(days), max(days))] and run(graph, instance, min(days), max(days)).success
    line = {"id": "old", "user_id": "ann", "created_at": "2023-05-08T10:00:00Z", "messages": [{"role": "user", "content": "Hello there."}]}
    assert not app.transfer.import_conversations([json.dumps(line).encode()], where="old.jsonl").faults
    assert tick(graph, instance, NIGHT) == ["2023-05-08"]
    assert run(graph, instance, "2023-05-08").success and tick(graph, instance, NIGHT) == []


def test_a_restoring_that_was_cut_off_is_settled_by_the_archival_run(graph, app, instance):
    """Its hold and its row came before the switch: the check sees that the turn is still archived; the next archival run repairs it."""
    day, turns = max(days_of(app).items(), key=lambda item: len(item[1]))
    assert run(graph, instance, day).success
    manifest = app.turns.manifest(turns[0])
    open_archive(app).holds.put(turns[0], Hold(until="2999-01-01T00:00:00Z", why="restored", at="2026-01-01T00:00:00Z"))
    app.dependencies.index.update_states([manifest.model_copy(update={"state": TurnState.SAVED, "archive": None})])
    archive = ArchiveResource(root=str(app.settings.root), runtime="extractive").open()
    (before,) = archive.verify_days({date.fromisoformat(day)})
    assert {v.check: v.passed for v in before.verdicts}["index_agrees"] is False
    result = run(graph, instance, day)
    assert checks(result)["index_agrees"].passed and app.dependencies.index.outdated([manifest]) == () and app.indexes.verify() == ()


def test_a_document_over_its_target_is_reported(graph, app, instance):
    """A text that no sound compression brings to its target stands longer, and the day says so as a warning."""
    query = "Which of these is paid: " + ", ".join(f"ORD-{n:04d} of anna.berg{n}@example.org" for n in range(30)) + "?"
    line = {"id": "dense", "user_id": "ann", "created_at": "2026-02-03T10:00:00Z"}
    messages = [{"role": "user", "content": query}, {"role": "assistant", "content": "Not one of them is paid."}]
    assert not app.transfer.import_conversations([json.dumps({**line, "messages": messages}).encode()], where="dense").faults
    result = run(graph, instance, "2026-02-03")
    (made,) = result.asset_materializations_for_node(ASSET)
    (row,) = [r.data for r in made.metadata["documents_table"].records]
    found = checks(result)["within_target"]
    record = app.turns.manifest(TurnKey.parse("ann:turn_000001")).archive.documents[0]
    over = not record.whole and record.tokens_after > record.target
    assert found.passed is not over and found.severity is dg.AssetCheckSeverity.WARN
    assert over or row["whole"], "the query is kept word by word, and is longer than four tenths of the text"
