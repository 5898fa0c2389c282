"""Checkpoints of research: who holds a run, and which old runs a sweep deletes."""

import os
from pathlib import Path

import pytest

from pandora_dagster.contracts.ids import TurnKey, user_id
from pandora_dagster.contracts.web.fetched import WebAccount
from pandora_dagster.contracts.web.research_run import ResearchRun
from pandora_dagster.errors import ConfigurationError, StoreError
from pandora_dagster.stores.user.research_run_files import ResearchRunFile, ResearchRunSweep, TurnRunFiles, user_run

ANNA, OLD_S, BEFORE_S = user_id("anna"), 1_000.0, 2_000.0
ONE, TWO = TurnKey.parse("anna:turn_000001"), TurnKey.parse("anna:turn_000002")


def cut_off(file: ResearchRunFile) -> ResearchRunFile:
    """A run that was stored long ago, and whose process was killed: its lock file is left."""
    with file.held():
        file.save(ResearchRun(question="What?"))
        file.account.save(WebAccount(pages=1))
    for path in file.folder.glob(f"{file.run_id}.*"):
        os.utime(path, (OLD_S, OLD_S))
    return file


def test_old_runs_are_deleted_with_their_locks_and_folders(tmp_path: Path) -> None:
    command, of_turn = cut_off(user_run(tmp_path, ANNA, "a1")), cut_off(TurnRunFiles(tmp_path, ONE).file("b1"))
    of_waiting_turn, young = cut_off(TurnRunFiles(tmp_path, TWO).file("c1")), user_run(tmp_path, ANNA, "d1")
    young.save(ResearchRun(question="What?"))
    assert ResearchRunSweep(tmp_path).sweep(before=BEFORE_S, spared=[TWO]) == 2
    assert (command.load(), of_turn.load()) == (None, None) and of_waiting_turn.load() and young.load()
    left = {path.name for path in (tmp_path / "users" / "anna" / "research_runs").rglob("*")}
    assert left == {"turn_000002", "c1.json", "c1.budget", "c1.lock", "d1.json"}


def test_a_run_that_goes_on_is_never_deleted_and_has_one_holder(tmp_path: Path) -> None:
    file = cut_off(user_run(tmp_path, ANNA, "a1"))
    with file.held():
        os.utime(tmp_path / "users" / "anna" / "research_runs" / "a1.lock", (OLD_S, OLD_S))
        assert ResearchRunSweep(tmp_path).sweep(before=BEFORE_S, spared=()) == 0
        with pytest.raises(StoreError, match="another process works on the same research"), file.held():
            pass
    assert file.load()
    assert ResearchRunSweep(tmp_path).sweep(before=BEFORE_S, spared=()) == 1


def test_an_ended_run_leaves_nothing(tmp_path: Path) -> None:
    file = user_run(tmp_path, ANNA, "a1")
    with file.held():
        file.save(ResearchRun(question="What?"))
        file.delete()
    assert list((tmp_path / "users" / "anna" / "research_runs").iterdir()) == []


def test_a_run_that_ends_before_its_first_step_leaves_no_file(tmp_path: Path) -> None:
    file = user_run(tmp_path, ANNA, "a1")
    with pytest.raises(ConfigurationError), file.held():
        file.account.save(WebAccount(pages=1))
        raise ConfigurationError("PANDORA_WEB: off")
    assert list(file.folder.iterdir()) == []
