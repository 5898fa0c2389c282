"""Checkpoints of runs: stored whole, of one user, and a damaged one is none."""

from pathlib import Path

from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.web.research_run import ResearchRun
from pandora_dagster.stores.user.research_run_files import ResearchRunFile


def test_a_run_is_found_again_until_it_is_deleted(tmp_path: Path) -> None:
    runs, other = (ResearchRunFile(tmp_path, user_id(name), "r1") for name in ("ann", "ben"))
    assert runs.load() is None
    runs.save(ResearchRun(question="Why?"))
    assert runs.load() == ResearchRun(question="Why?") and other.load() is None
    runs.delete()
    runs.delete()
    assert runs.load() is None


def test_a_damaged_checkpoint_is_none(tmp_path: Path) -> None:
    runs = ResearchRunFile(tmp_path, user_id("ann"), "r1")
    runs.save(ResearchRun(question="Why?"))
    (path,) = tmp_path.rglob("r1.json")
    path.write_text('{"question": ')
    assert runs.load() is None
