"""A recipe made worse on the shipped example, from the edit to its undoing: its tests fail; forced through, the scorecard's check turns
red within 50 calls; a rollback restores the old scores without a change of any file."""

import json
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import dagster as dg

from pandora_dagster.app import App, open_app, recipe_admin
from pandora_dagster.app.evaluation import Evaluation, open_evaluation
from pandora_dagster.defs.prompt_scores import CHECK, SCORES, prompt_assets
from pandora_dagster.governance.promotion import ChangeAttribution, roll_back
from pandora_dagster.governance.regressions import MIN_CALLS
from pandora_dagster.settings import load_settings
from pandora_dagster.shipped import shipped_folder
from tests.governance.recipe_copies import copied, edit
from tests.phases.vocabulary import vocabulary

RECIPE = "pipeline/phase5_synthesizer_chat"
QUERIES = cycle(("Which desk did we order, and what did it cost?", "What is my budget for desk and chair together?"))


def asked(app: App, user: str, turns: int) -> None:
    """Turns of one user over the example's history, each in a session of its own."""
    if not app.dependencies.index.rows(user):
        lines = (shipped_folder() / "data" / "example" / "conversations.jsonl").read_text(encoding="utf-8").splitlines()
        app.transfer.import_conversations([json.dumps({**json.loads(line), "user_id": user}).encode() for line in lines], where="example")
    for query in (next(QUERIES) for _ in range(turns)):
        key = app.start(query, user=user, session=f"s{app.dependencies.clock().timestamp()}".replace(".", "-"))
        app.run_turn(key, on_report=lambda _: None)
        assert app.turns.manifest(key).state in ("saved", "halted")


@dataclass(frozen=True)
class OpenScores:
    """The resource of the scores, over an application that is open."""

    app: App

    def open(self) -> Evaluation:
        return open_evaluation(self.app)


def check(app: App) -> dg.AssetCheckEvaluation:
    """What Dagster's check says now."""
    day = app.dependencies.clock().date().isoformat()
    selection = [asset for asset in prompt_assets(app.settings) if asset.key.to_user_string() == SCORES]
    result = dg.materialize(selection, partition_key=day, resources={"scores": OpenScores(app)})
    return next(e for e in result.get_asset_check_evaluations() if e.check_name == CHECK)


def failed_tests(app: App) -> list[str]:
    outcomes = recipe_admin.run_tests(app.settings, recipe_admin.open_recipe_admin(app.settings), RECIPE)
    return [outcome.test for outcome in outcomes if not outcome.passed]


def answered(app: App, version: str) -> float | None:
    return open_evaluation(app).window("synthesizer_chat", version).shares["answered"].value


def test_a_worse_recipe_is_found_three_times_and_undone(tmp_path: Path) -> None:
    """By its tests, by the scorecard, by its users's answers; the file stays as it was edited throughout."""
    recipes = copied(tmp_path / "edited")
    app = open_app(load_settings({"PANDORA_ROOT": str(tmp_path / "store"), "PANDORA_RECIPES": str(recipes)}), counter=vocabulary())
    assert failed_tests(app) == []
    asked(app, "ann", MIN_CALLS)
    good = app.recipes.load(RECIPE).version
    assert check(app).passed and answered(app, good) == 1.0

    edit(recipes, f"recipes/{RECIPE}.yaml", '  - "§2"\n', "")
    assert failed_tests(app) == ["the answer states what section 2 says, with its source"]
    worse = app.recipes.load(RECIPE).version
    asked(app, "ben", MIN_CALLS)
    calls = MIN_CALLS
    while (now := check(app)).passed and calls < 50:
        asked(app, "ben", 5)
        calls += 5
    assert not now.passed and calls <= 50
    assert f"{RECIPE}@{worse} is worse than {good}: answered 0 of " in (now.description or "")
    assert answered(app, worse) == 0.0

    ctx = recipe_admin.open_recipe_admin(app.settings).ctx
    text = (recipes / "recipes" / f"{RECIPE}.yaml").read_text()
    roll_back(ctx, RECIPE, ChangeAttribution("ann", "it answers nothing"))
    assert app.recipes.load(RECIPE).version == good
    asked(app, "cleo", 2)
    assert check(app).passed and answered(app, good) == 1.0
    assert (recipes / "recipes" / f"{RECIPE}.yaml").read_text() == text
    assert failed_tests(app) == []
    app.close()
