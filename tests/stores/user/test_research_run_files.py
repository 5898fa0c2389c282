"""Checkpoints of runs: stored whole, of one user, and a damaged one is none."""

from pathlib import Path

from pandora_dagster.contracts.ids import TurnKey, user_id
from pandora_dagster.contracts.web.research_run import ResearchRun
from pandora_dagster.stores.user.research_run_files import TurnRunFiles, user_run


def test_a_run_is_found_again_until_it_is_deleted(tmp_path: Path) -> None:
    runs, other = (user_run(tmp_path, user_id(name), "r1") for name in ("ann", "ben"))
    assert runs.load() is None
    runs.save(ResearchRun(question="Why?"))
    assert runs.load() == ResearchRun(question="Why?") and other.load() is None
    runs.delete()
    runs.delete()
    assert runs.load() is None


def test_a_damaged_checkpoint_is_none(tmp_path: Path) -> None:
    runs = user_run(tmp_path, user_id("ann"), "r1")
    runs.save(ResearchRun(question="Why?"))
    (path,) = tmp_path.rglob("r1.json")
    path.write_text('{"question": ')
    assert runs.load() is None


def test_the_runs_of_a_turn_are_deleted_together(tmp_path: Path) -> None:
    """Those of another turn, and of commands, stay."""
    ann = user_id("ann")
    turns = [TurnRunFiles(tmp_path, TurnKey(ann, number)) for number in (1, 2)]
    assert turns[0].runs() == ()
    for turn in turns:
        turn.file("r1").save(ResearchRun(question="Why?"))
    turns[0].file("r2").save(ResearchRun(question="How?"))
    user_run(tmp_path, ann, "r1").save(ResearchRun(question="When?"))
    assert [run.question for run in turns[0].runs()] == ["Why?", "How?"]
    turns[0].delete()
    turns[0].delete()
    assert turns[0].runs() == () and len(turns[1].runs()) == 1 and user_run(tmp_path, ann, "r1").load()
