"""Commands that read, under a root where no store is: they say so and make none."""

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pandora_dagster.cli.program import command_line
from pandora_dagster.errors import InputError
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile, Schema

READING = (
    "search desk",
    "turns",
    "show ann:turn_000001",
    "resume ann:turn_000001",
    "export",
    "index verify",
    "index rebuild",
    "recipes scores",
    "recipes lessons reflection",
    "correct ann:turn_000001 wrong",
    "interventions list",
    "interventions show int_1",
    "interventions resolve int_1",
    "memory list",
    "memory facts",
    "memory consent",
    "memory consent off",
    "memory erase",
    "memory forget budget",
    "research list",
    "research show commerce.laptop",
    "archive",
    "restore ann:turn_000001",
    "pin ann:turn_000001",
    "unpin ann:turn_000001",
    "visit list",
    "visit show visit_1",
)


@pytest.fixture
def mistyped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in os.environ:
        if name.startswith(("PANDORA_", "DAGSTER_")):
            monkeypatch.delenv(name)
    return tmp_path / "stoer"


@pytest.mark.parametrize("command", READING)
@pytest.mark.parametrize("there", [False, True])
def test_a_root_without_a_store_is_named_and_left_as_it_is(mistyped: Path, command: str, there: bool) -> None:
    """Also a folder of other things is none."""
    if there:
        mistyped.mkdir()
    before = list(mistyped.parent.rglob("*"))
    result = CliRunner().invoke(command_line, ["--root", str(mistyped), *command.split()], prog_name="pandora")
    assert isinstance(result.exception, InputError) and f"{mistyped}: no store there" in str(result.exception)
    assert list(mistyped.parent.rglob("*")) == before


def test_doctor_says_that_there_is_no_store_yet(mistyped: Path) -> None:
    """It is no fault: a store begins with the first turn."""
    result = CliRunner().invoke(command_line, ["--root", str(mistyped), "doctor", "--json"], prog_name="pandora")
    store = next(f for f in json.loads(result.stdout) if f["part"] == "store")
    assert store["ok"] and "no store there yet" in store["says"] and not mistyped.exists()


@pytest.mark.parametrize("name", ["turn_index", "call_index", "research_index"])
def test_an_index_of_an_old_design_is_reported_with_its_remedy_once(mistyped: Path, name: str) -> None:
    """By the doctor, and by a command that needs it; nothing else of the store is at fault."""
    (mistyped / "users").mkdir(parents=True)
    DuckDBFile(mistyped / "indexes" / f"{name}.duckdb", Schema(0, ())).create()
    result = CliRunner().invoke(command_line, ["--root", str(mistyped), "doctor", "--json"], prog_name="pandora")
    wrong = [f for f in json.loads(result.stdout) if not f["ok"]]
    if name == "turn_index":  # is made anew by the first command that needs it
        assert result.exit_code == 0 and not wrong
        return
    assert result.exit_code == 1 and len(wrong) == 1
    assert wrong[0]["part"].startswith("index of ") and "index version 0, expected" in wrong[0]["says"]
    assert "pandora index rebuild" in wrong[0]["remedy"] and "index rebuild" not in wrong[0]["says"]
    assert CliRunner().invoke(command_line, ["--root", str(mistyped), "index", "rebuild"], prog_name="pandora").exit_code == 0
    assert CliRunner().invoke(command_line, ["--root", str(mistyped), "doctor"], prog_name="pandora").exit_code == 0
