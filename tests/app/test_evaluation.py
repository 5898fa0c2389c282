"""Stated confidence, calibrated against what became of the turns: measured from recorded calls, stored, printed, acted on."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pandora_dagster.app.evaluation import open_evaluation
from pandora_dagster.cli.program import command_line
from pandora_dagster.contracts.recipe_governance import MIN_OUTCOMES, ConfidenceBin
from tests.governance.recipe_copies import copied
from tests.phases.rig import APPROVE, Rig, open_rig, plain, verdict

RECIPE = "pipeline/phase1_reflection"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = open_rig(tmp_path / "store", recipes=copied(tmp_path / "edited"))
    yield made
    made.app.close()


def layers_of_reflection(rig: Rig) -> list[str]:
    return [pack.layer.value for pack in rig.runtime.of("reflection")]


def test_a_model_that_is_sure_and_wrong_is_no_longer_trusted(rig: Rig, tmp_path: Path) -> None:
    """Twenty turns of sure answers were sent back by the validator: `scores` stores it, `show` prints it, and the next call goes on to the
    larger layer. Before, the same answers asked nobody."""
    environment = {"PANDORA_ROOT": str(tmp_path / "store"), "PANDORA_RECIPES": str(tmp_path / "edited")}

    def pandora(*arguments: str) -> str:
        return CliRunner(env=environment).invoke(command_line, ["recipes", *arguments], prog_name="pandora").output

    rig.say(reflection=plain(decision="PROCEED", confidence=0.92))
    for number in range(MIN_OUTCOMES):
        rig.say(validator=[verdict("REVISE", "say more"), APPROVE])
        rig.ask(session=f"s{number}")
    assert layers_of_reflection(rig) == ["REFLEX"] * MIN_OUTCOMES
    assert "confidence is not calibrated: no outcome" in pandora("show", "reflection")

    pandora("scores", "reflection")
    version = rig.app.recipes.load(RECIPE).version
    table = rig.app.versions.calibration(RECIPE).table(version, "scripted-REFLEX")
    assert table is not None and table.bin_of(0.92) == ConfidenceBin(calls=MIN_OUTCOMES, good=0)
    shown = pandora("show", "reflection")
    assert "scripted-REFLEX" in shown and f"0 of {MIN_OUTCOMES}" in shown and "0.00 to 0.16" in shown
    assert json.loads(pandora("show", "reflection", "--json"))["calibration"][0]["bins"][9] == {"calls": MIN_OUTCOMES, "good": 0}

    rig.say(reflection=plain(decision="PROCEED", confidence=0.95), validator=APPROVE)
    rig.ask(session="after")
    assert layers_of_reflection(rig)[-2:] == ["REFLEX", "MIND"]


def test_good_outcomes_keep_the_answer_of_the_smaller_layer(rig: Rig) -> None:
    """It states 0.3, under the threshold of 0.7, and its turns turn out well."""
    rig.say(reflection=plain(decision="PROCEED", confidence=0.3))
    for number in range(MIN_OUTCOMES):
        rig.ask(session=f"s{number}")
    open_evaluation(rig.app).calibrate()
    rig.ask(session="after")
    assert set(layers_of_reflection(rig)) == {"REFLEX"}


def test_a_recipe_without_outcomes_has_no_record(rig: Rig, tmp_path: Path) -> None:
    """Nothing is stored, and nothing acts."""
    measured = open_evaluation(rig.app).calibrate()
    assert {calibration.recipe.rpartition("/")[2] for calibration in measured} == {
        "phase1_reflection",
        "phase2_retrieval",
        "phase6_validator",
    }
    assert not list((tmp_path / "store").rglob("calibration.json"))
