"""`pandora recipes show|history|diff|rollback|assign`, over a store in which recipes ran."""

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pandora_dagster.app import open_app
from pandora_dagster.cli.program import command_line
from pandora_dagster.settings import load_settings
from tests.governance.recipe_copies import copied

PROMPT = "prompts/pipeline/phase1_reflection.md"


class Shell:
    """`pandora recipes ...` over one store and one recipes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {"PANDORA_RECIPES": str(copied(folder / "edited")), "PANDORA_ROOT": str(folder / "store")}

    def recipes(self, *arguments: str) -> Result:
        return CliRunner(env=self.environment).invoke(command_line, ["recipes", *arguments], prog_name="pandora")

    def printed(self, *arguments: str) -> str:
        result = self.recipes(*arguments)
        assert result.exit_code == 0, result.output + repr(result.exception)
        return result.stdout

    def asked(self) -> str:
        """A turn; the version of reflection that it ran."""
        app = open_app(load_settings(self.environment))
        key = app.start("Hello")
        app.run_turn(key, on_report=lambda _: None)
        app.close()
        return json.loads(self.printed("history", "reflection", "--json"))["history"][-1]["version"]

    def edited(self, words: str) -> None:
        path = self.folder / "edited" / PROMPT
        path.write_text(path.read_text() + f"\n{words}\n")


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    for name in os.environ:
        if name.startswith("PANDORA_"):
            monkeypatch.delenv(name)
    return Shell(tmp_path)


def test_a_change_is_seen_rolled_back_and_undone(shell: Shell) -> None:
    """From the edit to its undoing, as a user does it."""
    first = shell.asked()
    shell.edited("Ask back whenever you can.")
    second = shell.asked()
    report = shell.printed("diff", f"reflection@{first}", f"reflection@{second}")
    assert "+Ask back whenever you can." in report
    assert f"--- pipeline/phase1_reflection@{first} {PROMPT} (" in report and " tokens)" in report
    assert first in shell.printed("rollback", "reflection", "--why", "asks back too often", "--by", "ann")
    assert json.loads(shell.printed("show", "reflection", "--json"))["version"] == first
    assert json.loads(shell.printed("show", "reflection@file", "--json"))["version"] == second
    table = shell.printed("history", "phase1_reflection")
    assert all(words in table for words in ("ann", "rollback", first, second))
    assert shell.asked() == first
    shell.printed("rollback", "reflection", "--to", "file")
    assert shell.asked() == second


def test_nothing_to_compare(shell: Shell) -> None:
    """The same version twice is reported, not printed as an empty line."""
    result = shell.recipes("diff", "reflection@file")
    assert (result.exit_code, result.stdout) == (0, "") and "say the same" in result.stderr


def test_a_layer_is_assigned_and_taken_back(shell: Shell) -> None:
    """The text stays."""
    assert "MIND answers from now on" in shell.printed("assign", "reflection", "MIND", "--by", "ann")
    assert "MIND answers: assigned" in shell.recipes("show", "reflection").stderr
    assert shell.printed("history", "reflection").count("MIND") == 1
    assert "its own layer answers" in shell.printed("assign", "reflection", "own")
    assert shell.recipes("assign", "reflection", "LARGE").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("rollback", "reflection"), "no version ran before"),
        (("rollback", "reflection", "--to", "ffff"), "is not kept"),
        (("show", "reflection@zz"), "expected 4 to 12 digits"),
        (("history", "nobody"), "no recipe"),
        (("diff", "reflection@file", "ffff"), "is not kept"),
    ],
)
def test_what_is_not_there_is_named(shell: Shell, arguments: tuple[str, ...], says: str) -> None:
    """One sentence; nothing is written."""
    result = shell.recipes(*arguments)
    assert result.exit_code != 0 and says in str(result.exception)
    assert not (shell.folder / "store").exists()
