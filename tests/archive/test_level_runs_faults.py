"""Narratives and digests over damaged files, runs cut off, models that are down, two processes at once: remade, named, never mixed."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pandora_dagster.contracts.ids import SessionId, user_id
from pandora_dagster.contracts.user.summary_levels import LevelOutcome, LevelSubject
from pandora_dagster.errors import DocumentError, RuntimeUnreachableError, StoreError
from tests.archive.level_store import ANNA, DIGEST, EXAMPLE, NARRATIVE, S1, files, levels, proved, run_levels


@pytest.mark.parametrize("name", ["sessions/chair/narrative.json", "digest.json"])
@pytest.mark.parametrize("damage", ["", "{", '{"format_version": 2}', "another's"])
def test_a_damaged_file_is_refused_in_a_sentence_and_made_again(app, name, damage):
    """Reading is strict; the next archival run makes the same text of the turns."""
    ctx = levels(app)
    run_levels(ctx)
    path = app.settings.root / "users" / "example" / name
    good = json.loads(path.read_text())
    path.write_text(json.dumps({**good, "user_id": "bob"}) if damage == "another's" else damage)
    with pytest.raises(DocumentError, match=str(path)):
        ctx.levels.digest(EXAMPLE) if name == "digest.json" else ctx.levels.narrative(EXAMPLE, SessionId("chair"))
    _, rows = run_levels(ctx)
    again = json.loads(path.read_text())
    assert ("fields" not in good or again["fields"] == good["fields"]) and again["user_id"] == "example"
    assert [p["text"] for p in again.get("parts", ())] == [p["text"] for p in good.get("parts", ())]
    assert any("made again" in row.reason for row in rows.values()) and proved(app, ctx) == []


@pytest.mark.parametrize("after", range(6))
def test_a_run_that_is_cut_off_is_finished_by_the_next(talk, after):
    """Wherever it was: what was made stays, what was not is made, no call twice."""
    talk.talk(*(f"question {n}?" for n in range(4)))
    talk.talk("another?", session="s2")
    ctx = levels(talk.app, l2_batch_size=2, l3_trigger_summaries=2)
    calls = {"left": after}

    class CutError(Exception):
        pass

    class Cutting:
        async def call(self, request):
            if calls["left"] == 0:
                raise CutError
            calls["left"] -= 1
            return await ctx.deps.execution.call(request)

    cut = replace(ctx, deps=replace(ctx.deps, execution=Cutting()), rules=replace(ctx.rules, concurrency=1))
    try:
        run_levels(cut)
        cut_off = False
    except CutError:
        cut_off = True
    run_levels(ctx)
    assert cut_off == (after < 5) and proved(talk.app, ctx) == []
    assert talk.runtime.calls()["session_summarizer"] == 3 and talk.runtime.calls()["digest_builder"] == 2


def test_one_bad_session_does_not_stop_the_archival_run(app):
    """A manifest that cannot be read is an intervention; the other sessions are done."""
    key = next(k for k in app.turns.keys(EXAMPLE) if app.turns.manifest(k).session_id == "chair")
    path = Path(app.turns.path(key)) / "turn.json"
    good = path.read_bytes()
    path.write_text("{")
    ctx = levels(app)
    (first, _), _ = run_levels(ctx)
    assert first.counts == {LevelOutcome.MADE: 2, LevelOutcome.FAILED: 1}
    (failed,) = first.failed
    assert failed.subject.session == "chair" and app.interventions.show(failed.intervention).type == "corrupt_document"
    path.write_bytes(good)
    app.interventions.resolve(failed.intervention, "mended")
    run_levels(ctx)
    assert proved(app, ctx) == []


def test_a_model_that_is_down_or_a_full_disk_ends_the_run(talk, monkeypatch):
    """With one sentence; the same run finishes once they are there again."""
    talk.talk("which chair?")
    talk.talk("which desk?", session="s2")
    ctx = levels(talk.app)
    ctx = replace(ctx, rules=replace(ctx.rules, concurrency=1))
    talk.say(session_summarizer=RuntimeUnreachableError("nobody there"))
    (report, _), _ = run_levels(ctx)
    assert "nobody there" in report.stopped and report.counts == {LevelOutcome.FAILED: 1}
    talk.say(session_summarizer=NARRATIVE)

    def full(*_):
        raise StoreError("the disk is full")

    monkeypatch.setattr(ctx.levels, "save_narrative", full)
    (report, _), _ = run_levels(ctx)
    assert report.stopped == "the disk is full" and files(talk.app) == {}
    monkeypatch.undo()
    run_levels(ctx)
    assert proved(talk.app, ctx) == [] and len(files(talk.app)) == 3


def test_two_processes_at_once_make_one_level(talk):
    """Whoever comes second waits for the lock and finds it done; one that waits too long leaves it."""
    talk.talk("which chair?")
    ctx = levels(talk.app)
    other = replace(ctx, levels=type(ctx.levels)(talk.app.settings.root, lock_seconds=0.05))
    with ctx.levels.lock(LevelSubject(ANNA, "s1")):
        _, rows = run_levels(other)
    assert rows[LevelSubject(ANNA, "s1")].outcome is LevelOutcome.KEPT and "another process" in rows[LevelSubject(ANNA, "s1")].reason
    assert talk.runtime.calls()["session_summarizer"] == 0
    run_levels(other)
    run_levels(ctx)
    assert talk.runtime.calls()["session_summarizer"] == 1


def test_two_processes_over_one_store_leave_what_one_leaves(app):
    """Started together: whatever each of them did, everything is linked, once, and nothing is left to do."""
    code = """
import asyncio, sys
from pandora_dagster.archive.user_digests import digest_users
from pandora_dagster.archive.session_narratives import summarize_sessions
from pandora_dagster.settings import load_settings
from pandora_dagster.app import open_app
from pandora_dagster.app.archive_service import open_levels
app = open_app(load_settings({"PANDORA_ROOT": sys.argv[1]}))
ctx = open_levels(app)
for work in (summarize_sessions, digest_users):
    report = asyncio.run(work(ctx))
    assert not report.failed and not report.stopped, report
app.close()
"""
    root = str(app.settings.root)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    both = [subprocess.Popen([sys.executable, "-c", code, root], env=environment) for _ in range(2)]
    assert [process.wait(timeout=120) for process in both] == [0, 0]
    ctx = levels(app)
    before = files(app)
    assert proved(app, ctx) == [] and len(before) == 4
    run_levels(ctx)
    assert files(app) == before and app.interventions.list(state="open") == ()


def test_nobody_sees_what_another_user_said(talk):
    """Two users with one session name: each narrative and digest is made of its own turns."""
    talk.talk("which lamp?", user="bob", answer="They talked about a lamp.")
    talk.talk("which chair?")
    talk.say(
        session_summarizer=lambda pack: pack.document("entries"),
        digest_builder=lambda pack: json.dumps({**DIGEST, "progress_toward_goal": pack.document("summaries").removeprefix("[1] ")}),
    )
    ctx = levels(talk.app)
    run_levels(ctx)
    assert "lamp" in ctx.levels.narrative(user_id("bob"), S1).text and "lamp" not in ctx.levels.narrative(ANNA, S1).text
    assert "lamp" in ctx.levels.digest(user_id("bob")).text and "lamp" not in ctx.levels.digest(ANNA).text
