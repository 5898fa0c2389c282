"""What the calls of a real store say of versions and layers: which calls count, on which side, and what a worse layer looks like."""

import json
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from pandora_dagster.app import recipe_admin
from pandora_dagster.app.evaluation import open_evaluation
from pandora_dagster.cli.program import command_line
from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.recipe_governance import ConfidenceBin, ConfidenceCalibration, RecipeCalibration
from pandora_dagster.governance.call_metrics import TurnOutcome
from pandora_dagster.governance.promotion import ChangeAttribution, assign
from pandora_dagster.governance.regressions import MIN_CALLS
from tests.governance.recipe_copies import copied, edit
from tests.phases.rig import APPROVE, PROCEED, Rig, open_rig, plain, verdict

RECIPE = "pipeline/phase1_reflection"
ANN = ChangeAttribution("ann", "slow")


@pytest.fixture
def rig(tmp_path) -> Iterator[Rig]:
    made = open_rig(tmp_path / "store", recipes=copied(tmp_path / "edited"))
    yield made
    made.app.close()


def to(rig: Rig, layer: ModelLayer | None) -> None:
    assign(recipe_admin.open_recipe_admin(rig.app.settings).ctx, RECIPE, layer, ANN)


def test_a_layer_that_is_worse_is_found_and_taken_back(rig: Rig, tmp_path) -> None:
    """The version stays; its calls on one layer are compared with those on the other."""
    rig.say(reflection=lambda pack: "no JSON" if pack.layer == "MIND" else PROCEED)
    for number in range(MIN_CALLS):
        rig.ask(session=f"a{number}")
    version = rig.app.recipes.load(RECIPE).version
    to(rig, ModelLayer.MIND)
    for number in range(MIN_CALLS):
        rig.ask(session=f"b{number}")
    found = open_evaluation(rig.app).comparison(RECIPE)
    assert (found.verdict, found.version, found.predecessor) == ("worse", f"{version} on MIND", version)
    assert f"passed 0 of {MIN_CALLS}, before {MIN_CALLS} of {MIN_CALLS}" in found.summary
    day = rig.app.dependencies.clock().date().isoformat()
    of_day = {key: one.calls for key, one in open_evaluation(rig.app).versions(day).items() if key[0] == "reflection"}
    assert of_day == {("reflection", version, "REFLEX"): MIN_CALLS, ("reflection", version, "MIND"): MIN_CALLS}
    environment = {"PANDORA_ROOT": str(tmp_path / "store"), "PANDORA_RECIPES": str(tmp_path / "edited")}
    result = CliRunner(env=environment).invoke(command_line, ["recipes", "scores", "reflection"], prog_name="pandora")
    assert result.exit_code == 1 and found.summary in result.stdout
    assert f"{RECIPE}@{version} on MIND: failed gates: schema_validation {MIN_CALLS}" in result.stdout
    shown = CliRunner(env=environment).invoke(command_line, ["recipes", "scores", "reflection", "--json"], prog_name="pandora")
    assert [one["failed_gates"] for one in json.loads(shown.stdout)[0]["figures"].values()] == [{"schema_validation": MIN_CALLS}, {}]
    to(rig, None)
    assert open_evaluation(rig.app).comparison(RECIPE).verdict == "not worse"


def test_a_call_counts_for_the_layer_that_was_asked_first(rig: Rig) -> None:
    """Escalated, the larger one answered it: a smaller layer that needs help each time does not look clean."""
    rig.say(reflection=lambda pack: PROCEED if pack.layer == "MIND" else plain(decision="PROCEED", confidence=0.2))
    version, bins = rig.app.recipes.load(RECIPE).version, (ConfidenceBin(calls=40, good=8),) * 10
    table = ConfidenceCalibration(version=version, model="scripted-REFLEX", bins=bins)
    rig.app.versions.keep_calibration(RecipeCalibration(recipe=RECIPE, tables=(table,)))
    rig.ask()
    record = next(rig.app.calls.newest("reflection", limit=1))
    assert (record.model_layer, record.recipe_layer, record.escalated) == ("MIND", "REFLEX", True)
    evaluation = open_evaluation(rig.app)
    reflex, mind = (evaluation.window("reflection", record.recipe_version, layer) for layer in ("REFLEX", "MIND"))
    assert (reflex.calls, reflex.shares["first_time"].value, mind.calls) == (1, 0.0, 0)


def test_versions_on_one_layer_are_compared_on_it(rig: Rig, tmp_path) -> None:
    """An edited prompt under an assigned layer stands beside the one before it there; calls on other layers do not count."""
    rig.ask()
    to(rig, ModelLayer.MIND)
    rig.ask(session="s2")
    edit(tmp_path / "edited", f"recipes/{RECIPE}.yaml", "confidence_threshold: 0.7", "confidence_threshold: 0.6")
    rig.ask(session="s3")
    first, second = (c.version for c in rig.app.versions.production(RECIPE).history if c.kind == "file")
    sides = open_evaluation(rig.app).production_figures(RECIPE)
    assert {name: one.calls for name, one in sides.items()} == {f"{second} on MIND": 1, f"{first} on MIND": 1}


def outcome(rig: Rig, key: TurnKey, recipe: str, **changed: object) -> TurnOutcome | None:
    record = next(r for r in rig.app.calls.of_turn(key, rig.turn(key).manifest.revision) if r.recipe == recipe)
    return open_evaluation(rig.app).outcomes.outcome_of(record.model_copy(update=changed))


def test_what_became_of_a_turn_counts_for_its_calls(rig: Rig) -> None:
    """Saved; sent back by the validator; halted later on; of another revision or still open: not known."""
    clean = rig.ask()
    assert outcome(rig, clean, "reflection") == TurnOutcome(True)
    assert outcome(rig, clean, "reflection", revision=1) is None
    assert outcome(rig, clean, "reflection", turn_id="") is None
    rig.say(validator=[verdict("REVISE", "say more"), APPROVE])
    assert outcome(rig, rig.ask(session="s2"), "synthesizer_chat") == TurnOutcome(True, sent_back=True)
    rig.say(validator="no JSON")
    halted = rig.ask(session="s3")
    assert rig.turn(halted).manifest.state == "halted"
    assert outcome(rig, halted, "reflection") == TurnOutcome(False)
    assert not TurnOutcome(False).is_good and not TurnOutcome(True, sent_back=True).is_good and TurnOutcome(True).is_good


def test_a_damaged_version_of_old_stops_no_scorecard(rig: Rig, tmp_path) -> None:
    """Which layer was its own is not known then: all its calls count."""
    rig.ask()
    version = rig.app.recipes.load(RECIPE).version
    (tmp_path / "store" / "recipes" / RECIPE / f"{version}.json").write_text("{}")
    assert open_evaluation(rig.app).production_figures(RECIPE)[version].calls == 1
