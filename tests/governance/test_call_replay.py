"""Logged calls made again beside what was logged, over a real store on the embedded runtime."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import duckdb
import pytest

from pandora_dagster.app import open_app
from pandora_dagster.app.recipe_admin import open_dry_run
from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.model_calls import CallRecord
from pandora_dagster.governance.call_replay import replay_calls
from pandora_dagster.recipes.recipe_loader import open_recipes
from pandora_dagster.settings import load_settings
from pandora_dagster.stores.calls.call_index import CALL_SCHEMA, DuckCallIndex
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from tests.governance.recipe_copies import copied, edit
from tests.phases.vocabulary import vocabulary

QUERIES = ("Which desk did we order, and what did it cost?", "What is my budget for desk and chair together?")
ANSWERS = "pipeline/phase5_synthesizer_chat"


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    """The example's history with two turns asked over it."""
    place = tmp_path_factory.mktemp("replay") / "store"
    app = open_app(load_settings({"PANDORA_ROOT": str(place)}), counter=vocabulary())
    app.transfer.import_example()
    for query in QUERIES:
        app.run_turn(app.start(query, user="example"), on_report=lambda _: None)
    app.close()
    return place


def again(
    root: Path, recipe: str, recipes: Path | None = None, *, last: int = 200, logged: str = "", changed: Mapping[str, object] = {}, **more
):
    """The newest calls of `recipe` on the version that `recipes` holds."""
    settings = load_settings({"PANDORA_ROOT": str(root)} | ({"PANDORA_RECIPES": str(recipes)} if recipes else {}))
    loader = open_recipes(recipes)
    app, trying = open_app(settings, counter=vocabulary()), open_dry_run(settings, loader, vocabulary())
    version = loader.load(recipe)
    trying.executor.select_version(version)
    try:
        found = app.calls.newest(version.name, version=logged, limit=last)
        records = [record.model_copy(update=changed) for record in found]
        return trying.run(replay_calls(records, trying.executor, app.vault.read, **more))
    finally:
        trying.close()
        app.close()


def files(root: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file() and p.suffix in (".jsonl", ".zst", ".json")
    }


@pytest.mark.parametrize("concurrency", [1, 8])
def test_the_same_version_says_the_same(root, concurrency):
    """Every recipe that ran, call by call; nothing is stored by it."""
    before = files(root)
    counts = {}
    for name in open_recipes().names():
        report = again(root, name, concurrency=concurrency)
        assert (report.same, dict(report.changed), dict(report.left_out)) == (report.calls, {}, {}), name
        assert report.before.row() | {"latency_ms_a_call": 0} == report.after.row() | {"latency_ms_a_call": 0}, name
        counts[name] = report.calls
    assert counts["pipeline/phase1_reflection"] == 2 and sum(counts.values()) >= 16
    assert files(root) == before


def test_many_calls_say_the_same_to_the_last(tmp_path):
    """Over turns of several kinds and all recipes that they asked; what was said of the same question before is among what is read."""
    place = tmp_path / "store"
    app = open_app(load_settings({"PANDORA_ROOT": str(place)}), counter=vocabulary())
    app.transfer.import_example()
    for number, query in enumerate(
        (*QUERIES, "Please remember that I prefer grey fabric.", "Which chair did we order, and when did it arrive?") * 2
    ):
        app.run_turn(app.start(query, user="example", session=f"s{number}"), on_report=lambda _: None)
    app.close()
    report = {name: again(place, name) for name in open_recipes().names()}
    calls = sum(one.calls for one in report.values())
    assert calls >= 60 and sum(one.same for one in report.values()) == calls
    assert len([one for one in report.values() if one.calls]) >= 8


def test_a_worse_version_is_seen_in_the_answers(root, tmp_path):
    """Without section 2 the answer tells nothing of the desk: other words, beside each other."""
    worse = copied(tmp_path)
    edit(worse, f"recipes/{ANSWERS}.yaml", '  - "§2"\n', "")
    report = again(root, ANSWERS, worse)
    assert (report.calls, report.same, dict(report.changed)) == (2, 0, {"answer": 2})
    assert any("429.00 euros" in e.before and "429.00 euros" not in e.after for e in report.examples)


def test_changed_fields_of_an_answer_are_counted(root, tmp_path):
    """By name, over all calls, however the answer is laid out."""
    worse = copied(tmp_path)
    edit(worse, "recipes/pipeline/phase3_planner_chat.yaml", '  - "§2"\n', "")
    report = again(root, "pipeline/phase3_planner_chat", worse)
    assert report.same < report.calls == 2
    assert set(report.changed) <= {"reasoning", "next_step", "tasks", "confidence", "question"}


def test_another_layer_answers_where_asked(root):
    """The version stays; the record says who answered."""
    report = again(root, "pipeline/phase1_reflection", layer=ModelLayer.MIND)
    assert report.same == report.calls == 2
    assert (dict(report.before.layers), dict(report.after.layers)) == ({"REFLEX": 2}, {"MIND": 2})


def test_a_call_that_fails_now_or_failed_then_is_not_the_same(root):
    """Whatever its answer says: what became of it differs."""
    report = again(root, "pipeline/phase1_reflection", changed={"success": False})
    assert (report.calls, report.same) == (2, 0)


def test_calls_of_a_version_and_the_newest_ones(root):
    """`--from` takes those of one version, `--last` the newest."""
    version = open_recipes().load("pipeline/phase1_reflection").version
    assert again(root, "pipeline/phase1_reflection", logged=version).calls == 2
    assert again(root, "pipeline/phase1_reflection", logged="ffffffffffff").calls == 0
    assert again(root, "pipeline/phase1_reflection", last=1).calls == 1


def test_what_was_not_kept_is_counted():
    """Inputs that are gone, damaged, or were never kept leave their calls out, with the reason."""
    from pandora_dagster.errors import DocumentError

    def read(ref: str) -> str:
        if ref == "gone":
            raise DocumentError("gone", missing=True)
        return "{"

    base = json.loads(RECORD)
    records = [CallRecord.model_validate({**base, "call_id": ref, "request_ref": ref}) for ref in ("", "gone", "damaged")]
    report = asyncio.run(replay_calls(records, None, read))  # type: ignore[arg-type]
    assert report.calls == 0
    assert dict(report.left_out) == {
        "its inputs were not stored": 1,
        "its inputs were deleted: their retention is over": 1,
        "its inputs are damaged": 1,
    }


RECORD = (
    '{"call_id": "c", "timestamp": "2026-01-04T14:30:00Z", "recipe": "gate", "recipe_version": "ab12", "model_layer": "MIND",'
    ' "runtime": "extractive", "user_id": "ann", "phase": "response", "tokens": {}, "latency_ms": 1.0, "success": true}'
)


def filled_index(path, calls):
    """An index of this many calls, every second one of the recipe `gate`."""
    index = DuckCallIndex(DuckDBFile(path, CALL_SCHEMA))
    with index.file.reading():
        pass
    with duckdb.connect(str(path)) as db:
        names = [row[0] for row in db.execute("SELECT column_name FROM (DESCRIBE calls)").fetchall()]
        given = {
            "call_id": "printf('call_%08d', i)",
            "timestamp": "printf('2026-01-%02dT%02d:00:00Z', 1 + i // 40000, i % 24)",
            "recipe": "CASE WHEN i % 2 = 0 THEN 'gate' ELSE 'other' END",
            "recipe_version": "'ab12'",
            "record": f"replace('{RECORD}', '\"c\"', '\"' || printf('call_%08d', i) || '\"')",
        }
        columns = ", ".join(f"{given.get(name, 'NULL')} AS {name}" for name in names)
        db.execute(f"INSERT INTO calls SELECT {columns} FROM range({calls}) AS numbers(i)")
    return index


def test_the_newest_calls_are_read_page_by_page(tmp_path):
    """The newest two thousand of ten thousand, each once. Memory over a million calls: tests/faults/test_call_log_growth.py."""
    seen = [record.call_id for record in filled_index(tmp_path / "calls.duckdb", 10_000).newest("gate", limit=2_000)]
    assert len(seen) == len(set(seen)) == 2_000 and all(int(call.removeprefix("call_")) % 2 == 0 for call in seen)
