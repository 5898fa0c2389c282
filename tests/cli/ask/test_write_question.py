"""A recipe of high risk asks at the terminal; without one the turn halts until its intervention is answered."""

import io
import json

import pytest

from pandora_dagster.cli.ask import write_question
from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.contracts.interventions import Intervention
from tests.cli.ask.test_intervention_commands import pandora
from tests.cli.recipes.test_recipe_commands import Shell, shell
from tests.phases.rig import COMPLETE, command, open_rig, plan, tool

__all__ = ["shell"]
ASK = ("ask", "Remember that my hotel is Casa Azul.", "--user", "ann", "--mode", "code")
HALT = Intervention(id="int_1", type=InterventionType.NEEDS_APPROVAL, message="memory.create {}: writes", created_at="2026")


class Terminal(io.StringIO):
    """Lines that a user types."""

    def isatty(self) -> bool:
        return True


def memory(shell: Shell) -> list[str]:
    return [row["value"] for row in json.loads(pandora(shell, "memory", "list", "--user", "ann", "--json").stdout)]


def waiting(shell: Shell) -> str:
    """The intervention of a turn that waits for an approval."""
    asked = pandora(shell, *ASK, "--json")
    assert asked.exit_code == 1 and "--approve" in asked.stderr and "approve this call?" not in asked.stderr
    (halt,) = json.loads(pandora(shell, "interventions", "list", "--json").stdout)
    assert halt["type"] == "needs_approval" and memory(shell) == []
    return halt["id"]


@pytest.mark.parametrize(("option", "how", "kept"), [("--approve", "approved", ["Casa Azul"]), ("--refuse", "refused", [])])
def test_an_intervention_is_approved_or_refused(shell: Shell, option: str, how: str, kept: list[str]) -> None:
    """The turn goes on with the call or without it; a decision is final."""
    halt = waiting(shell)
    done = pandora(shell, "interventions", "resolve", halt, option, "--note", "seen")
    assert done.exit_code == 0, done.output + repr(done.exception)
    assert memory(shell) == kept
    assert [turn["state"] for turn in json.loads(pandora(shell, "turns", "--user", "ann", "--json").stdout)] == ["saved"]
    shown = json.loads(pandora(shell, "interventions", "show", halt, "--json").stdout)
    assert (shown["how"], shown["resolution"]) == (how, "seen")
    assert "resolved already" in str(pandora(shell, "interventions", "resolve", halt, option).exception)


@pytest.mark.parametrize(("typed", "approved"), [("y\n", True), ("maybe\n\nNO\n", False), ("", None)])
def test_the_terminal_takes_yes_or_no_only(
    typed: str, approved: bool | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Anything else is asked again; the end of input decides nothing."""
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    assert write_question._ask(HALT) is approved
    assert "memory.create {}: writes" in capsys.readouterr().err


def test_nothing_is_asked_without_a_terminal_or_about_another_halt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert write_question._ask(HALT) is None
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    assert write_question._ask(HALT.model_copy(update={"type": InterventionType.TIMEOUT})) is None


def test_a_turn_asks_at_the_terminal_and_goes_on(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call that writes is a question; the last report is that of the finished turn."""
    rig = open_rig(tmp_path)
    call = tool("memory.create", key="hotel", value="Casa Azul", kind="preference")
    rig.say(planner=plan("coordinator"), executor=[command(), command(), COMPLETE], coordinator=call)
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    key = rig.start(mode="code")
    last = write_question.run_with_questions(rig.app, key, on_report=lambda _: None)
    assert last.halt is None and rig.turn(key).manifest.state == "saved"
    assert [e.value for e in rig.app.dependencies.memory.entries(key.user)] == ["Casa Azul"]
    rig.app.close()
