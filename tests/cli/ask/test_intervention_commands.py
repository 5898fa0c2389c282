"""`pandora interventions resolve`: by hand, again, or not at all; each is written down, and the turn goes on where it halted."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pandora_dagster.app import open_app
from pandora_dagster.cli.program import command_line
from pandora_dagster.settings import load_settings
from pandora_dagster.stores.turns.turn_files import TurnFiles
from tests.cli.recipes.test_recipe_commands import Shell, shell
from tests.governance.recipe_copies import edit

__all__ = ["shell"]
RETRIEVAL = "recipes/pipeline/phase2_retrieval.yaml"
SCHEMA = "    confidence:\n      type: number\n      minimum: 0\n"
STRICT_SCHEMA = "    confidence:\n      type: number\n      minimum: 0.99\n"
ANSWER = json.dumps({"reasoning": "by hand", "relevant_turns": [], "turn_relevance": {}, "relevant_memory_keys": [], "confidence": 1.0})


def pandora(shell: Shell, *arguments: str, text: str = "") -> Result:
    return CliRunner(env=shell.environment).invoke(command_line, list(arguments), input=text, prog_name="pandora")


@pytest.fixture
def halted(shell: Shell) -> str:
    """A turn that halted because its plan breaks the schema, which asks for more confidence than is stated; its intervention."""
    edit(shell.folder / "edited", RETRIEVAL, SCHEMA, STRICT_SCHEMA)
    app = open_app(load_settings(shell.environment))
    key = app.start("Which desk did we order?", user="ann")
    app.run_turn(key, on_report=lambda _: None)
    found = app.turns.manifest(key).intervention or ""
    app.close()
    return found


def of(shell: Shell, intervention: str) -> dict[str, str]:
    return json.loads(pandora(shell, "interventions", "show", intervention, "--json").stdout)


def test_all_that_is_needed_to_judge_is_shown(shell: Shell, halted: str) -> None:
    """Reasons, call, pack and answer."""
    shown = of(shell, halted)
    assert shown["type"] == "schema_violation" and '"confidence"' in shown["answer"] and '"system"' in shown["pack"]
    assert json.loads(json.dumps(shown["call"]))["recipe"] == "retrieval"
    assert "failed gates: schema_validation" in pandora(shell, "interventions", "show", halted).stdout


def test_an_answer_by_hand_finishes_the_turn(shell: Shell, halted: str) -> None:
    """One that does not pass is refused and resolves nothing; a sound one goes on to the answer."""
    refused = pandora(shell, "interventions", "resolve", halted, "--answer", "-", text='{"confidence": 0.1}')
    assert "schema_validation" in str(refused.exception)
    assert of(shell, halted)["state"] == "open"
    done = pandora(shell, "interventions", "resolve", halted, "--answer", "-", "--note", "nothing matters", text=ANSWER)
    assert done.exit_code == 0, done.output + repr(done.exception)
    assert [turn["state"] for turn in json.loads(pandora(shell, "turns", "--user", "ann", "--json").stdout)] == ["saved"]
    assert (of(shell, halted)["how"], of(shell, halted)["resolution"]) == ("by_hand", "nothing matters")


def test_a_retry_runs_what_is_in_production_now(shell: Shell, halted: str) -> None:
    """It halts again, with an intervention of its own, until the recipe is mended."""
    again = pandora(shell, "interventions", "resolve", halted, "--retry")
    assert again.exit_code == 1 and of(shell, halted)["how"] == "retry"
    (new,) = json.loads(pandora(shell, "interventions", "list", "--json").stdout)
    assert new["id"] != halted
    for again in (("--answer", "-"), ("--abandon",), ("--retry",), ("--note", "x")):
        result = pandora(shell, "interventions", "resolve", halted, *again, text=ANSWER)
        assert "resolved already (retry" in str(result.exception), again
    assert of(shell, halted)["how"] == "retry" and of(shell, new["id"])["state"] == "open"
    edit(shell.folder / "edited", RETRIEVAL, STRICT_SCHEMA, SCHEMA)
    assert pandora(shell, "interventions", "resolve", new["id"], "--retry").exit_code == 0


def test_an_answer_that_nobody_took_leaves_it_open(shell: Shell, halted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process works on the turn: nothing is written down, and the same command ends it later; a note before it stays."""
    monkeypatch.setitem(TurnFiles.__init__.__kwdefaults__, "lock_seconds", 0.1)
    noted = pandora(shell, "interventions", "resolve", halted, "--note", "seen")
    assert noted.exit_code == 0 and f"{halted} noted\n" in noted.stdout and "or resolve it with --retry" in noted.stderr
    app = open_app(load_settings(shell.environment))
    key = next(iter(app.turns.keys(None)))
    with app.turns.lock(key):
        held = pandora(shell, "interventions", "resolve", halted, "--answer", "-", text=ANSWER)
    app.close()
    assert held.exception and of(shell, halted)["how"] == "noted"
    assert pandora(shell, "interventions", "resolve", halted, "--answer", "-", text=ANSWER).exit_code == 0
    assert (of(shell, halted)["how"], of(shell, halted)["resolution"]) == ("by_hand", "seen")


def test_an_abandoned_turn_is_over(shell: Shell, halted: str) -> None:
    """Nothing is left to resume; two decisions at once are refused."""
    assert pandora(shell, "interventions", "resolve", halted, "--retry", "--abandon").exit_code == 2
    assert "is abandoned" in pandora(shell, "interventions", "resolve", halted, "--abandon").stdout
    assert of(shell, halted)["how"] == "abandoned"
    resumed = pandora(shell, "resume", "ann:turn_000001")
    assert resumed.exit_code == 2 and "nothing is left to do; the turn is abandoned" in resumed.stderr


def test_what_is_left_of_a_call_is_shown(shell: Shell, halted: str) -> None:
    """Where pack and answer are gone this is reported; the record and the call are there."""
    for path in (shell.folder / "store").glob("users/ann/vault/*/*.zst"):
        path.unlink()
    shown = pandora(shell, "interventions", "show", halted, "--json")
    assert (shown.exit_code, json.loads(shown.stdout)["pack"]) == (0, "") and "its retention may be over" in shown.stderr
    assert json.loads(shown.stdout)["call"]["recipe"] == "retrieval"


def test_an_answer_that_is_no_text_is_refused(shell: Shell, halted: str, tmp_path: Path) -> None:
    """As a sentence; the intervention stays open."""
    (tmp_path / "answer").write_bytes(b"\xff\xfe{}")
    for answer in (str(tmp_path / "answer"), str(tmp_path / "nowhere")):
        result = pandora(shell, "interventions", "resolve", halted, "--answer", answer)
        assert result.exit_code == 2 and "expected UTF-8 text" in result.stderr
    assert of(shell, halted)["state"] == "open"


def test_a_damaged_intervention_costs_no_answer(shell: Shell, halted: str) -> None:
    """A turn is answered as before; what cannot be tidied is named."""
    edit(shell.folder / "edited", RETRIEVAL, STRICT_SCHEMA, SCHEMA)
    path = shell.folder / "store" / "interventions" / f"{halted}.json"
    path.write_text("{}")
    result = pandora(shell, "ask", "Which desk did we order?", "--user", "ann")
    assert (result.exit_code, result.exception) == (0, None) and str(path) in result.stderr
