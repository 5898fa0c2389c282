"""A day's queries in Dagster: the asset over a real house, and the sensor called as its daemon calls it."""

import json
import os
from datetime import UTC, datetime

import dagster as dg
import pytest

from pandora_dagster.app import open_app
from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.defs.batch import ASSET, BATCH_JOB, CHECK, JOB, batch_asset, inbox_sensor
from pandora_dagster.defs.instance import TURNS, days
from pandora_dagster.defs.resources import BatchResource
from pandora_dagster.settings import load_settings

QUERIES = [
    {"query": "The oak desk costs 248 euros.", "user": "ann", "session": "s1", "id": "one"},
    {"query": "What did it cost?", "user": "ann"},
]


@pytest.fixture
def batches(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith(("PANDORA_", "DAGSTER_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PANDORA_ROOT", str(tmp_path))
    (tmp_path / "inbox").mkdir()
    return BatchResource(root=str(tmp_path), runtime="extractive")


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as opened:
        yield opened


@pytest.fixture
def graph(batches, tmp_path):
    settings = load_settings({"PANDORA_ROOT": str(tmp_path)})
    return dg.Definitions(assets=[batch_asset(settings)], jobs=[BATCH_JOB], sensors=[inbox_sensor()], resources={"batches": batches})


def put(root, name, lines, text=""):
    path = root / "inbox" / name
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + text)
    return path


def run(graph, instance, day, file=""):
    config = dg.RunConfig(ops={ASSET: {"config": {"file": file}}})
    return graph.resolve_job_def(JOB).execute_in_process(instance=instance, partition_key=day, run_config=config, raise_on_error=False)


def tick(graph, batches, instance, cursor):
    context = dg.build_sensor_context(instance=instance, cursor=cursor, resources={"batches": batches}, definitions=graph)
    found = graph.resolve_sensor_def("inbox_files")(context)
    if isinstance(found, dg.SkipReason):
        return [], context.cursor
    return found.run_requests, found.cursor


def test_a_days_queries_become_turns(graph, batches, instance, tmp_path):
    """The run takes what waits for its day; table, counts and the check tell of every line; the file moves under its day."""
    put(tmp_path, "q.jsonl", QUERIES, "not a query\n")
    today = batches.open().digest_and_day("q.jsonl")[1]
    result = run(graph, instance, today)
    assert result.success
    (made,) = result.asset_materializations_for_node(ASSET)
    assert made.partition == today
    shown = {name: value.value for name, value in made.metadata.items() if name != "lines"}
    assert {name: shown[name] for name in ("queries", "saved", "clarify", "halted", "rejected", "files")} == {
        "queries": 2, "saved": 2, "clarify": 0, "halted": 0, "rejected": 1, "files": 1,
    }  # fmt: skip
    assert shown["tokens"] > 1_000 and shown["ms_a_turn"] >= 0
    rows = [record.data for record in made.metadata["lines"].records]
    assert [(r["line"], r["id"], r["turn"], r["state"]) for r in rows] == [
        (3, "", "", "rejected"), (1, "one", "ann:turn_000001", "saved"), (2, "", "ann:turn_000002", "saved"),
    ]  # fmt: skip
    assert "expected a JSON object" in rows[0]["reason"]
    (check,) = result.get_asset_check_evaluations()
    assert check.check_name == CHECK and check.passed
    done = tmp_path / "inbox" / "done" / today
    assert sorted(path.name for path in done.iterdir()) == ["q.jsonl", "q.rejected.jsonl"] and not batches.inbox.files()
    assert set(instance.get_dynamic_partitions(str(TURNS.name))) == {"ann:turn_000001", "ann:turn_000002"}
    runs = instance.get_runs(dg.RunsFilter(job_name="turn"))
    assert {(r.tags["dagster/partition"], r.status.value) for r in runs} == {(f"ann:turn_00000{n}", "SUCCESS") for n in (1, 2)}
    assert instance.get_materialized_partitions(dg.AssetKey("response")) == {"ann:turn_000001", "ann:turn_000002"}


def test_a_second_run_of_the_day_tells_the_same_and_asks_nothing(graph, batches, instance, tmp_path):
    """The day's table stays whole when another file of the day has come."""
    put(tmp_path, "q.jsonl", QUERIES[:1])
    today = batches.open().digest_and_day("q.jsonl")[1]
    run(graph, instance, today)
    put(tmp_path, "r.jsonl", QUERIES[1:])
    put(tmp_path, "q.jsonl", QUERIES[:1])
    (made,) = run(graph, instance, today).asset_materializations_for_node(ASSET)
    assert [r.data["turn"] for r in made.metadata["lines"].records] == ["ann:turn_000001", "ann:turn_000002"]
    assert len(list((tmp_path / "users" / "ann" / "turns").glob("turn_*"))) == 2 == instance.get_runs_count(dg.RunsFilter(job_name="turn"))
    assert len(list((tmp_path / "inbox" / "done" / today).iterdir())) == 3, "no file is lost"


def test_another_day_takes_nothing(graph, batches, instance, tmp_path):
    """A past day has only what began on it; its table is empty and its check says so."""
    put(tmp_path, "q.jsonl", QUERIES)
    result = run(graph, instance, "2026-01-02")
    assert result.success and [file.name for file in batches.inbox.files()] == ["q.jsonl"]
    (made,) = result.asset_materializations_for_node(ASSET)
    assert made.metadata["queries"].value == 0


def test_a_file_that_does_not_wait_fails_with_a_sentence(graph, batches, instance):
    """What a user types into the launchpad is no path."""
    result = run(graph, instance, "2026-01-02", file="../../etc/passwd")
    assert not result.success
    report = str(next(event for event in result.all_events if event.is_step_failure).step_failure_data)
    assert "expected the name of a .jsonl file in this folder" in report


def test_the_check_fails_where_a_line_has_no_end(graph, batches, instance, tmp_path):
    """A turn whose documents are damaged is neither answered nor halted with an intervention."""
    put(tmp_path, "q.jsonl", QUERIES)
    today = batches.open().digest_and_day("q.jsonl")[1]
    run(graph, instance, today)
    (tmp_path / "users" / "ann" / "turns" / "turn_000002" / "turn.json").write_text("{")
    result = run(graph, instance, today)
    (check,) = result.get_asset_check_evaluations()
    assert result.success and not check.passed and check.metadata["lines"].value == "q.jsonl:2"


def test_a_file_begins_when_two_ticks_find_it_alike(graph, batches, instance, tmp_path):
    """Not at the first look, not while it grows; then with its digest as the run's key, and today as its day."""
    path = put(tmp_path, "q.jsonl", QUERIES)
    requests, cursor = tick(graph, batches, instance, None)
    assert requests == []
    path.write_text(path.read_text() + json.dumps({"query": "And the chair?"}) + "\n")
    requests, cursor = tick(graph, batches, instance, cursor)
    assert requests == []
    requests, _ = tick(graph, batches, instance, cursor)
    digest, today = batches.open().digest_and_day("q.jsonl")
    (request,) = requests
    assert (request.run_key, request.partition_key) == (digest, today)
    assert request.run_config["ops"] == {ASSET: {"config": {"file": "q.jsonl"}}}
    assert request.tags["pandora/batch"] == digest


def test_files_begin_one_after_the_other(graph, batches, instance, tmp_path):
    """While a run of one is under way no other begins; when it is over the next does."""
    put(tmp_path, "a.jsonl", QUERIES[:1])
    put(tmp_path, "b.jsonl", QUERIES[1:])
    _, cursor = tick(graph, batches, instance, None)
    requests, cursor = tick(graph, batches, instance, cursor)
    assert [r.tags["pandora/file"] for r in requests] == ["a.jsonl"]
    under_way = instance.add_run(dg.DagsterRun(job_name=JOB, run_id="r1", status=dg.DagsterRunStatus.STARTED))
    assert tick(graph, batches, instance, cursor)[0] == []
    instance.report_run_failed(under_way)
    assert [r.tags["pandora/file"] for r in tick(graph, batches, instance, cursor)[0]] == ["a.jsonl"]


def test_a_file_whose_run_was_killed_is_taken_up_again_but_not_for_ever(graph, batches, instance, tmp_path):
    """Dagster starts nothing twice under one key: each try has its own, and after three a user has to look."""
    put(tmp_path, "q.jsonl", QUERIES)
    digest, _ = batches.open().digest_and_day("q.jsonl")
    _, cursor = tick(graph, batches, instance, None)
    keys = []
    for number in range(4):
        requests, cursor = tick(graph, batches, instance, cursor)
        keys += [request.run_key for request in requests]
        dead = dg.DagsterRun(job_name=JOB, run_id=f"run-{number}", status=dg.DagsterRunStatus.FAILURE, tags={"pandora/batch": digest})
        instance.add_run(dead)
    assert keys == [digest, f"{digest}:2", f"{digest}:3"]


def test_days_follow_the_settings():
    """Keys begin at PANDORA_FIRST_DAY and end with today, by the clock of the configured zone."""
    settings = load_settings({"PANDORA_FIRST_DAY": "2026-03-01", "PANDORA_TIMEZONE": "Europe/Berlin"})
    partitions = days(settings)
    assert partitions.get_first_partition_key() == "2026-03-01" and partitions.timezone == "Europe/Berlin"
    late = datetime(2026, 3, 9, 23, 30, tzinfo=UTC)  # past midnight in Berlin
    assert partitions.get_partition_keys(current_time=late)[-1] == "2026-03-10"


def test_the_turns_of_a_batch_are_turns_like_others(graph, batches, instance, tmp_path):
    """They can be shown, resumed and searched as any other."""
    put(tmp_path, "q.jsonl", QUERIES)
    run(graph, instance, batches.open().digest_and_day("q.jsonl")[1])
    app = open_app(load_settings({"PANDORA_ROOT": str(tmp_path)}))
    assert app.turns.manifest(TurnKey.parse("ann:turn_000001")).state is TurnState.SAVED
    assert app.search.messages("oak desk", user="ann", budget_tokens=500).results
    app.close()
