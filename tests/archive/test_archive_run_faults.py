"""Archival over damaged turns, disks that refuse, clocks set back: nothing is lost, and the rest goes on."""

import errno
import json
import os
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from pandora_dagster.app import open_app
from pandora_dagster.archive.archive_selection import select_turns
from pandora_dagster.archive.turn_restoration import pin, restore
from pandora_dagster.contracts.archive_records import ArchiveOutcome, Hold, NotDueReason
from pandora_dagster.contracts.ids import TurnKey, user_id
from pandora_dagster.errors import DocumentError
from pandora_dagster.settings import load_settings
from tests.archive.archived_store import archive_context, archived, snapshot
from tests.phases.vocabulary import vocabulary


@pytest.fixture
def app(tmp_path):
    """The shipped example, imported: recorded turns of last January."""
    opened = open_app(load_settings({"PANDORA_ROOT": str(tmp_path / "store")}), counter=vocabulary())
    opened.transfer.import_example()
    yield opened
    opened.close()


def damaged(app, how):
    key = list(app.turns.keys(None))[2]
    folder = Path(app.turns.path(key))
    outside = app.settings.root.parent / "outside"
    if how == "no context.md":
        (folder / "context.md").unlink()
    elif how == "other document":
        (folder / "messages.jsonl").write_text("{}\n")
    elif how == "no manifest":
        (folder / "turn.json").unlink()
    elif how == "another's manifest":
        (folder / "turn.json").write_text((folder.parent / "turn_000001" / "turn.json").read_text())
    elif how == "folder is a link":
        shutil.move(folder, outside)
        folder.symlink_to(outside)
    elif how == "document is a link":
        outside.write_text((folder / "messages.jsonl").read_text())
        (folder / "messages.jsonl").unlink()
        (folder / "messages.jsonl").symlink_to(outside)
    elif how == "a stray link":
        (folder / "more.md").symlink_to("/etc/passwd")
    elif how == "a pipe":
        os.mkfifo(folder / "more.md")
    elif how == "linked cold folder":
        (app.settings.root / "cold").mkdir()
        outside.mkdir()
        (app.settings.root / "cold" / key.user).symlink_to(outside)
    return key


HOWS = [
    "no context.md",
    "other document",
    "no manifest",
    "another's manifest",
    "folder is a link",
    "document is a link",
    "a stray link",
    "a pipe",
]


@pytest.mark.parametrize("how", HOWS)
def test_a_bad_turn_becomes_an_intervention_and_the_rest_goes_on(app, how):
    """It is not touched, it is named once, and it is due again when a user has judged it."""
    key = damaged(app, how)
    base = app.settings.root / "users" / key.user / "turns" / key.turn_id
    before = sorted(p.name for p in base.iterdir())
    report, _ = archived(app)
    (failed,) = report.failed
    count = len(list(app.turns.keys(None)))
    assert failed.key == key and report.counts == {ArchiveOutcome.FAILED: 1, ArchiveOutcome.ARCHIVED: count - 1}
    message = app.interventions.show(failed.intervention)
    assert message.type in ("missing_document", "corrupt_document") and (message.user_id, message.turn_id, message.phase) == (
        key.user,
        key.turn_id,
        "archival",
    )
    assert [n for n in sorted(p.name for p in base.iterdir()) if n != ".lock"] == before
    again, _ = archived(app)
    assert again.due == 0 and [n.cause for n in again.not_due] == [NotDueReason.INTERVENTION]
    app.interventions.resolve(failed.intervention, "mended")
    assert archived(app)[0].due == 1


def test_a_linked_folder_of_cold_storage_stops_its_user_only(app):
    """Nothing is written through the link; the others are archived."""
    extra = {"id": "c9", "user_id": "ben", "created_at": "2025-01-04T10:00:00Z", "messages": [{"role": "user", "content": "hello"}]}
    app.transfer.import_conversations([json.dumps(extra).encode()], where="x")
    key = damaged(app, "linked cold folder")
    report, _ = archived(app)
    assert {row.key.user for row in report.failed} == {key.user} and report.counts[ArchiveOutcome.ARCHIVED] == 1
    assert app.turns.manifest(TurnKey(user_id("ben"), 1)).state == "archived"
    assert not list((app.settings.root.parent / "outside").iterdir())


@pytest.mark.parametrize(("number", "says"), [(errno.ENOSPC, "full"), (errno.EROFS, "read-only")])
@pytest.mark.parametrize(("step", "after"), [("write", 0), ("write", 9), ("fsync", 20), ("replace", 0), ("replace", 3), ("replace", 12)])
def test_a_disk_that_refuses_ends_the_run_and_loses_nothing(app, monkeypatch, number, says, step, after):
    """One clear sentence; every turn is archived or as it was, and the next run finishes."""
    keys = list(app.turns.keys(None))
    before = {key: app.turns.load(key) for key in keys}
    original, done = getattr(os, step), [0]

    def refuse(*args, **kwargs):
        done[0] += 1
        if done[0] > after:
            raise OSError(number, os.strerror(number))
        return original(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(os, step, refuse)
        report, _ = archived(app)
    assert says in report.stopped and report.hint and not report.failed
    for key in keys:
        assert app.turns.original(key) == before[key]
    again, _ = archived(app)
    assert not again.stopped and not again.failed
    assert {app.turns.manifest(key).state for key in keys} == {"archived"} and app.indexes.verify() == ()
    assert all(app.turns.original(key) == before[key] for key in keys)


def test_a_row_that_a_crash_kept_back_is_put_by_the_next_run(app):
    """The turn is archived, its row is not: the second run settles folder and row, and archives nothing twice."""
    key = next(iter(app.turns.keys(None)))
    row = next(r for r in app.turn_index.rows(key.user) if r.number == key.number)
    messages = app.turn_index.messages_by_turn(key.user)[key.number]
    archived(app)
    app.turn_index.put([row.model_copy(update={"messages": messages})])
    (Path(app.turns.path(key)) / "messages.jsonl").write_text("left over")
    manifest = app.turns.manifest(key)
    report, rows = archived(app)
    assert [(r.key, r.outcome) for r in rows] == [(key, ArchiveOutcome.FINISHED)] and report.counts == {ArchiveOutcome.FINISHED: 1}
    assert app.turns.manifest(key) == manifest and set(snapshot(app.turns.path(key))) == {"turn.json", "context.md"}
    assert app.indexes.verify() == ()


def test_a_turn_without_a_row_is_not_left_behind(app):
    """Folders are compared with rows."""
    keys = list(app.turns.keys(None))
    app.turn_index.remove(keys[0].user, [keys[0].number])
    assert archived(app)[0].counts == {ArchiveOutcome.ARCHIVED: len(keys)}
    assert app.indexes.verify() == ()


def test_a_turn_that_somebody_works_on_comes_last_or_stays(app):
    """A held lock delays nobody else, and is no failure."""
    keys = list(app.turns.keys(None))
    app.turns._lock_seconds = 0.2
    with app.turns.lock(keys[0]):
        report, rows = archived(app)
    assert {r.key: r.outcome for r in rows}[keys[0]] is ArchiveOutcome.KEPT and report.counts[ArchiveOutcome.ARCHIVED] == len(keys) - 1
    assert not report.failed and archived(app)[0].counts == {ArchiveOutcome.ARCHIVED: 1}


def test_a_clock_set_back_archives_nothing_and_restores_all_the_same(app):
    """What is archived stays readable, whatever the clock says."""
    archived(app)
    assert archived(app, after=-timedelta(days=20_000))[0].due == 0
    key = next(iter(app.turns.keys(None)))
    assert restore(key, archive_context(app, after=-timedelta(days=20_000))).was_archived and app.indexes.verify() == ()


def test_restoring_from_a_damaged_object_changes_nothing(app):
    """The turn stays archived and readable, without a hold; the next turn is unharmed."""
    archived(app)
    one, two, *_ = app.turns.keys(None)
    record = app.turns.manifest(one).archive
    path = app.settings.root / record.cold
    path.write_bytes(path.read_bytes()[:-9])
    before = snapshot(app.turns.path(one))
    with pytest.raises(DocumentError, match="damaged or cut off"):
        restore(one, archive_context(app))
    assert snapshot(app.turns.path(one)) == before and app.turns.load(one).manifest.state == "archived"
    assert archive_context(app).holds.find(one) is None
    assert any("damaged or cut off" in fault for fault in app.indexes.verify())
    assert restore(two, archive_context(app)).was_archived


def test_restoring_keeps_a_pin_and_heals_a_row(app):
    """A turn that is not archived is reported as that."""
    key = next(iter(app.turns.keys(None)))
    ctx = archive_context(app)
    archived(app)
    pin(key, ctx, why="the lawyer asked")
    done = restore(key, ctx)
    assert done.was_archived and done.hold == ctx.holds.find(key) and done.hold.until is None and done.hold.why == "the lawyer asked"
    app.turn_index.remove(key.user, [key.number])
    assert not restore(key, ctx).was_archived and app.indexes.verify() == ()
    ctx.holds.put(key, Hold(until="2020-01-01T00:00:00Z", at="2019-01-01T00:00:00Z"))
    assert [d.key for d in select_turns(ctx).due] == [key]


@pytest.mark.parametrize("damage", ["changed", "gone"])
def test_a_damaged_archived_turn_comes_back_whole(app, damage):
    """What stands in an original's place may be damaged: the original is in its cold object, and takes that place."""
    key = list(app.turns.keys(None))[1]
    before = snapshot(app.folder(key))
    archived(app)
    path = app.folder(key) / "context.md"
    if damage == "changed":
        path.write_text(path.read_text() + "6,178.51\n")
    else:
        path.unlink()
    with pytest.raises(DocumentError):
        app.turns.load(key)
    assert restore(key, archive_context(app)).was_archived and snapshot(app.folder(key)) == before and app.indexes.verify() == ()


def test_a_manifest_that_contradicts_itself_is_never_archived_again(app):
    """An archive record and another state: compressed texts would be taken for originals, and these lost to the manifest."""
    key = list(app.turns.keys(None))[1]
    archived(app)
    path = app.folder(key) / "turn.json"
    path.write_text(path.read_text().replace('"state": "archived"', '"state": "saved"'))
    app.indexes.rebuild()
    before = snapshot(app.settings.root / "cold"), snapshot(app.folder(key))
    report, _ = archived(app)
    assert not report.counts.get(ArchiveOutcome.ARCHIVED) and (snapshot(app.settings.root / "cold"), snapshot(app.folder(key))) == before
    with pytest.raises(DocumentError, match="with an archive record"):
        app.turns.manifest(key)


def test_one_damaged_original_does_not_keep_the_others_from_leaving(app):
    """An export names the conversation and writes the rest."""
    whole = {c["id"] for c in app.transfer.export_conversations(None)}
    archived(app)
    key = list(app.turns.keys(None))[1]
    record = app.turns.manifest(key).archive
    (app.settings.root / record.cold).write_bytes(b"damaged")
    faults = []
    left = {c["id"] for c in app.transfer.export_conversations(None, on_fault=faults.append)}
    assert whole - left == {app.turns.manifest(key).session_id} and len(faults) == 1 and record.sha256[:12] in str(faults[0])
