"""Cold objects that no turn names any more: which go, after how long, and what keeps them."""

import os
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from pandora_dagster.archive.original_retention import prune
from pandora_dagster.archive.turn_restoration import restore
from pandora_dagster.contracts.retention import RetentionReason, Tombstone
from pandora_dagster.phases.flow.turn_flow import run_phase
from pandora_dagster.stores.turns.cold_files import ColdFiles
from tests.archive.archived_store import LATER, archive_context, archived
from tests.phases.rig import open_rig

LAST = 4 * LATER
"""When originals of the earlier archival are over 100 days old, by their file, and those of the newer one are not."""


@pytest.fixture
def rig(tmp_path):
    """A turn that was archived, restored, made again, and archived anew."""
    opened = open_rig(tmp_path / "store")
    key = opened.ask("which desk?")
    archived(opened.app, after=LATER)
    restore(key, archive_context(opened.app, after=LATER))
    opened.app.run(run_phase("response", key, opened.app.dependencies))
    opened.run(key)
    archived(opened.app, after=3 * LATER)
    yield opened
    opened.app.close()


def places(rig) -> tuple[Path, Path]:
    """The object that the turn names, and the earlier one."""
    root = rig.app.settings.root
    (key,) = rig.app.turns.keys(None)
    newer = root / rig.app.turns.manifest(key).archive.cold
    (earlier,) = {path for path in (root / "cold").rglob("*.tar.zst")} - {newer}
    return newer, earlier


def pruned(rig, *, after=LAST, **how):
    return prune(archive_context(rig.app, after=after), older_than_days=100, by="a test", **how)


def test_an_object_of_an_earlier_archival_goes_with_a_tombstone(rig):
    """After the days, not before; a dry run changes nothing; the turn comes back as it was."""
    (key,) = rig.app.turns.keys(None)
    newer, earlier = places(rig)
    before = rig.app.turns.original(key)
    assert not pruned(rig, after=timedelta(days=99)).pruned and earlier.exists()
    dry = pruned(rig, dry_run=True)
    assert earlier.exists() and [(t.key, t.cold, t.size) for t in dry.pruned] == [
        (key, earlier.relative_to(rig.app.settings.root).as_posix(), earlier.stat().st_size)
    ]
    report = pruned(rig)
    assert report.pruned == dry.pruned and (report.within_retention, report.faults) == (1, ())
    assert newer.exists() and not earlier.exists()
    stone = Tombstone.model_validate_json(earlier.with_name(earlier.name.removesuffix(".tar.zst") + ".tombstone.json").read_text())
    assert (stone.turn, stone.by, stone.sha256) == (str(key), "a test", earlier.name.removesuffix(".tar.zst"))
    assert {"turn.json", "context.md", "response.md"} <= set(stone.files) and all(f.size for f in stone.files.values())
    assert not pruned(rig).pruned and rig.app.indexes.verify() == ()
    assert restore(key, archive_context(rig.app)).turn == before


def test_the_object_of_a_restored_turn_stays(rig):
    (key,) = rig.app.turns.keys(None)
    restore(key, archive_context(rig.app))
    report = pruned(rig)
    assert not report.pruned and not report.kept and all(path.exists() for path in (rig.app.settings.root / "cold").rglob("*.zst"))


def test_a_run_that_was_cut_off_after_the_tombstone_is_finished_by_the_next(rig, monkeypatch):
    _, earlier = places(rig)

    def dies(self, place):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(ColdFiles, "delete", dies)
        pruned(rig)
    assert earlier.exists() and earlier.with_name(earlier.name.removesuffix(".tar.zst") + ".tombstone.json").exists()
    assert len(pruned(rig).pruned) == 1 and not earlier.exists()


@pytest.mark.parametrize("gone", ["the newer object", "the turn"])
def test_what_may_be_the_last_copy_stays(rig, gone):
    """Nothing goes where the object that the turn names is damaged, or the turn is not there."""
    (key,) = rig.app.turns.keys(None)
    newer, earlier = places(rig)
    if gone == "the turn":
        shutil.rmtree(rig.app.turns.path(key, revision=0))
    else:
        newer.write_bytes(b"no object")
    report = pruned(rig)
    assert not report.pruned and earlier.exists()
    kept = next(turn for turn in report.kept if turn.cold.endswith(earlier.name))
    assert (kept.key, kept.kept_because) == (key, RetentionReason.FAULT)
    assert ("damaged" if gone == "the newer object" else "may be the last copy") in kept.reason


def test_an_object_that_does_not_tell_whose_it_is_stays_and_is_reported(rig):
    """Cut off, or in another user's folder."""
    _, earlier = places(rig)
    cold = rig.app.settings.root / "cold"
    elsewhere = cold / "ben" / Path(*earlier.relative_to(cold).parts[1:])
    elsewhere.parent.mkdir(parents=True)
    shutil.copy2(earlier, elsewhere)
    earlier.write_bytes(earlier.read_bytes()[:-20])
    os.utime(earlier, (0, 0))
    report = pruned(rig)
    assert not report.pruned and earlier.exists() and elsewhere.exists()
    assert len(report.unreadable_objects) == len(report.faults) == 2
    assert any(str(earlier) in text and "damaged or cut off" in text for text in report.unreadable_objects)
    assert any(str(elsewhere) in text and "expected it below cold/anna/" in text for text in report.unreadable_objects)
