"""Versions put into production and taken back, over real files and a real store."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from pandora_dagster.app.composition import production_override
from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.recipe_governance import RecipeProduction
from pandora_dagster.contracts.recipe_schema import LoadedRecipe
from pandora_dagster.errors import ConfigurationError, InputError
from pandora_dagster.governance.promotion import ChangeAttribution, PromotionContext, assign, resolve_version, roll_back
from pandora_dagster.phases.flow.phase_table import answer_model
from pandora_dagster.recipes.recipe_loader import RecipeLoader, open_recipes
from pandora_dagster.stores.records.recipe_version_files import RecipeVersionFiles
from tests.fakes.recipe_stores import MemoryRecipeVersions
from tests.governance.recipe_copies import copied, edit

RECIPE, FILE = "pipeline/phase1_reflection", "recipes/pipeline/phase1_reflection.yaml"
PROMPT = "prompts/pipeline/phase1_reflection.md"
ANN = ChangeAttribution("ann", "it asks back too often")


@dataclass
class EditedRecipes:
    """A recipes that is edited, the store of its versions, and what runs."""

    folder: Path
    versions: RecipeVersionFiles

    @property
    def files(self) -> RecipeLoader:
        return open_recipes(self.folder)

    @property
    def ctx(self) -> PromotionContext:
        return PromotionContext(self.versions, self.files.load_file, answer_model, lambda: datetime(2026, 1, 4, tzinfo=UTC))

    def running(self) -> LoadedRecipe:
        """What a call would run now."""
        return RecipeLoader(self.folder / "recipes", self.folder / "prompts", partial(production_override, self.versions)).get(
            RECIPE, "chat"
        )

    def run(self) -> LoadedRecipe:
        """A call: what runs is kept."""
        loaded = self.running()
        self.versions.keep(loaded)
        return loaded

    def edited(self, words: str) -> LoadedRecipe:
        path = self.folder / PROMPT
        path.write_text(path.read_text() + f"\n{words}\n")
        return self.run()


@pytest.fixture
def recipe_files(tmp_path) -> EditedRecipes:
    versions = RecipeVersionFiles(tmp_path / "root", clock=lambda: datetime(2026, 1, 4, tzinfo=UTC))
    return EditedRecipes(copied(tmp_path / "edited"), versions)


def test_a_rollback_and_its_undoing(recipe_files):
    """The text that ran before runs again, whatever the file says and is edited to, until the file counts again."""
    first, second = recipe_files.run(), recipe_files.edited("Hurry.")
    made = roll_back(recipe_files.ctx, RECIPE, ANN)
    assert (made.pinned, made.history[-1].kind, made.history[-1].who, made.history[-1].why) == (first.version, "rollback", *ANN_SAYS)
    assert recipe_files.running() == first
    third = recipe_files.edited("More.")
    assert third == first
    back = roll_back(recipe_files.ctx, RECIPE, ChangeAttribution("bob", "mended"), to="file")
    assert (back.pinned, back.history[-1].kind, recipe_files.running().version) == (
        "",
        "release",
        recipe_files.files.load_file(RECIPE).version,
    )
    assert recipe_files.running().version not in (first.version, second.version)


ANN_SAYS = ("ann", "it asks back too often")


def test_an_edited_file_that_never_ran_goes_back_to_what_did(recipe_files):
    """The version before the present one is the one that ran last."""
    first = recipe_files.run()
    (recipe_files.folder / PROMPT).write_text((recipe_files.folder / PROMPT).read_text() + "\nWorse.\n")
    assert roll_back(recipe_files.ctx, RECIPE, ANN).pinned == first.version


def test_a_rollback_to_what_the_file_says_lets_the_file_count(recipe_files):
    """By its hash as well as by `file`; nothing is pinned that would hide the next edit."""
    first, second = recipe_files.run(), recipe_files.edited("Hurry.")
    roll_back(recipe_files.ctx, RECIPE, ANN, to=first.version[:5])
    assert roll_back(recipe_files.ctx, RECIPE, ANN, to=second.version[:5]).pinned == ""


def test_a_broken_file_is_stood_in_for(recipe_files):
    """The version that ran before it was broken runs again."""
    first = recipe_files.run()
    (recipe_files.folder / FILE).write_text("name: [")
    roll_back(recipe_files.ctx, RECIPE, ANN, to=first.version)
    assert recipe_files.running() == first


@pytest.mark.parametrize("to", ["", "file", "ffff"])
def test_a_rollback_to_nothing_is_refused(recipe_files, to):
    """No version before this one, the one that is there, and one that nobody kept."""
    recipe_files.run()
    with pytest.raises(InputError, match="expected"):
        roll_back(recipe_files.ctx, RECIPE, ANN, to=to)
    assert recipe_files.versions.production(RECIPE).pinned == ""


def test_a_version_that_nobody_could_read_is_refused_with_its_field(recipe_files):
    """The phase needs the confidence that an old answer need not have."""
    edit(recipe_files.folder, FILE, "required: [reasoning, decision, confidence]", "required: [reasoning, decision]")
    old = recipe_files.run()
    edit(recipe_files.folder, FILE, "required: [reasoning, decision]", "required: [reasoning, decision, confidence]")
    recipe_files.run()
    with pytest.raises(InputError, match=rf"{RECIPE}@{old.version}: .*confidence: may be left out"):
        roll_back(recipe_files.ctx, RECIPE, ANN, to=old.version)
    assert recipe_files.versions.production(RECIPE).pinned == ""


def test_a_pinned_version_that_is_damaged_stops_the_recipe(recipe_files, tmp_path):
    """It is named with what lets the file run again: nothing runs in its place in silence."""
    first = recipe_files.run()
    recipe_files.edited("Hurry.")
    roll_back(recipe_files.ctx, RECIPE, ANN)
    (tmp_path / "root" / "recipes" / RECIPE / f"{first.version}.json").write_text("{}")
    recipe_files.versions = RecipeVersionFiles(tmp_path / "root", clock=recipe_files.ctx.clock)
    with pytest.raises(ConfigurationError, match=first.version) as refused:
        recipe_files.running()
    assert "--to file" in refused.value.hint


def test_a_layer_is_assigned_apart_from_the_text(recipe_files):
    """The version stays, also over a rollback; the assignment has a line of its own in the history."""
    first = recipe_files.run()
    assign(recipe_files.ctx, RECIPE, ModelLayer.MIND, ANN)
    assert (recipe_files.running().version, recipe_files.running().layer) == (first.version, "MIND")
    recipe_files.edited("Hurry.")
    roll_back(recipe_files.ctx, RECIPE, ANN)
    assert (recipe_files.running().version, recipe_files.running().layer) == (first.version, "MIND")
    assign(recipe_files.ctx, RECIPE, None, ANN)
    assert recipe_files.running() == first
    kinds = [c.kind for c in recipe_files.versions.production(RECIPE).history]
    assert kinds == ["file", "layer", "file", "rollback", "layer"]
    with pytest.raises(InputError, match="answers already"):
        assign(recipe_files.ctx, RECIPE, None, ANN)


@dataclass
class Meanwhile:
    """A store of versions over which somebody else decides between our look and our change, once."""

    kept: RecipeVersionFiles
    act: Callable[[], object]

    def __getattr__(self, name: str) -> object:
        return getattr(self.kept, name)

    def change(self, *given, **more):
        act, self.act = self.act, lambda: None
        act()
        return self.kept.change(*given, **more)


def to_mind(ctx: PromotionContext) -> RecipeProduction:
    return assign(ctx, RECIPE, ModelLayer.MIND, ChangeAttribution("bob", "slow"))


def back(ctx: PromotionContext) -> RecipeProduction:
    return roll_back(ctx, RECIPE, ChangeAttribution("bob", "worse"))


@pytest.mark.parametrize(("ours", "theirs"), [(to_mind, back), (back, to_mind), (back, back)])
def test_who_decided_on_what_stands_there_no_more_is_refused(recipe_files, tmp_path, ours, theirs):
    """Neither a rollback nor a layer is lost, and no version stands before itself; decided again, it counts."""
    recipe_files.run()
    recipe_files.edited("B.")
    recipe_files.edited("C.")
    other = EditedRecipes(recipe_files.folder, RecipeVersionFiles(tmp_path / "root", clock=recipe_files.ctx.clock)).ctx
    ctx = replace(recipe_files.ctx, versions=Meanwhile(recipe_files.versions, lambda: theirs(other)))
    with pytest.raises(InputError, match="changed meanwhile: bob"):
        ours(ctx)
    assert recipe_files.versions.production(RECIPE).history[-1].kind == ("rollback" if theirs is back else "layer")
    made = ours(ctx)
    undone = ours is theirs  # the version before the present one is the file's again
    assert (made.pinned == "", made.layer) == (undone, None if undone else "MIND")
    history = made.history
    assert all(new.before == old.version for old, new in pairwise(history))
    assert all(c.before != c.version for c in history if c.kind != "layer")


def test_a_version_that_runs_on_an_assigned_layer_is_kept_as_it_is(recipe_files, tmp_path):
    """Also by a process that did not keep it before: the layer is no part of the text."""
    recipe_files.run()
    assign(recipe_files.ctx, RECIPE, ModelLayer.MIND, ANN)
    recipe_files.versions = RecipeVersionFiles(tmp_path / "root", clock=recipe_files.ctx.clock)
    ran = recipe_files.run()
    assert (ran.layer, recipe_files.versions.faults()) == ("MIND", ())


@pytest.mark.parametrize("name", ["file", "production", "kept"])
def test_a_version_is_tried_on_the_layer_that_would_answer(recipe_files, name):
    """The assigned one, over whichever version."""
    first = recipe_files.run()
    assign(recipe_files.ctx, RECIPE, ModelLayer.MIND, ANN)
    found = resolve_version(recipe_files.ctx, RECIPE, first.version if name == "kept" else name)
    assert (found.version, found.layer, found.recipe.model_layer) == (first.version, "MIND", "REFLEX")


def test_versions_are_named_in_several_ways(recipe_files):
    """`file`, `production`, digits of what is kept, and of the file before it ever ran."""
    unrun = recipe_files.files.load_file(RECIPE)
    assert resolve_version(recipe_files.ctx, RECIPE, unrun.version[:6]) == unrun
    first, second = recipe_files.run(), recipe_files.edited("Hurry.")
    roll_back(recipe_files.ctx, RECIPE, ANN)
    assert [resolve_version(recipe_files.ctx, RECIPE, name) for name in ("file", "production", second.version[:4])] == [
        second,
        first,
        second,
    ]


def test_a_turn_runs_what_is_in_production(tmp_path):
    """Read at run time by an open store; each version that ran is kept, and stands in the call's record."""
    from tests.phases.rig import open_rig

    rig = open_rig(tmp_path / "store", recipes=copied(tmp_path / "edited"))
    recipe_files = EditedRecipes(tmp_path / "edited", RecipeVersionFiles(tmp_path / "store", clock=rig.app.dependencies.clock))
    used: list[str] = []
    for step in (lambda: None, lambda: recipe_files.edited("Hurry."), lambda: roll_back(recipe_files.ctx, RECIPE, ANN)):
        step()
        key = rig.ask()
        used += [p.recipes["reflection"] for p in rig.turn(key).manifest.phases if p.phase == "reflection"]
    assert used[0] == used[2] != used[1] and set(used) <= set(recipe_files.versions.versions(RECIPE))
    assert recipe_files.versions.faults() == ()
    rig.app.close()


def test_asking_the_executor_keeps_the_version():
    """A store that refuses to put it into production costs the record, not the call."""
    from pandora_dagster.execution.call.executor import Executor
    from tests.execution.conftest import FakeStores, loaded, request
    from tests.fakes.model_runtimes import SequenceRuntime
    from tests.fakes.recipe_catalog import MemoryRecipeCatalog
    from tests.phases.vocabulary import vocabulary

    async def sleep(_: float) -> None: ...

    stores, versions, recipe = FakeStores(), MemoryRecipeVersions(lock_seconds=0.0), loaded()
    executor = Executor(
        recipes=MemoryRecipeCatalog({"pipeline/plan": recipe}),
        runtime=SequenceRuntime(['{"next_step": "synthesis", "confidence": 0.9}']),
        counter=vocabulary(),
        log=stores,
        vault=stores,
        interventions=stores,
        clock=lambda: datetime(2026, 1, 4, tzinfo=UTC),
        sleep=sleep,
        new_call_id=lambda: "call_1",
        versions=versions,
    )
    with versions.locks[recipe.path]:
        assert asyncio.run(executor.call(request())).parsed["next_step"] == "synthesis"
    assert versions.versions(recipe.path) == (recipe.version,) and versions.production(recipe.path).history == ()


def test_a_layer_that_answers_already_hides_no_predecessor(recipe_files):
    """The version's own layer by its name is no change; a compression recipe's layer is a setting's."""
    first, second = recipe_files.run(), recipe_files.edited("Hurry.")
    with pytest.raises(InputError, match="answers already"):
        assign(recipe_files.ctx, RECIPE, second.recipe.model_layer, ANN)
    assert [change.version for change in recipe_files.versions.production(RECIPE).current_and_previous] == [second.version, first.version]
    with pytest.raises(InputError, match="COMPRESSION_MODEL_LAYER"):
        assign(recipe_files.ctx, "compression/compress_context", ModelLayer.MIND, ANN)
