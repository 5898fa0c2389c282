"""A prompt that is emptied or contradicted fails at least one test: the check of recipes, or the replay of recorded answers.

The recordings are made here, of a runtime that answers every shipped test: the tests need answers that pass, not a model's.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pandora_dagster.app import recipe_admin
from pandora_dagster.app.composition import utc_now
from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.model_calls import ModelAnswer, PromptPack
from pandora_dagster.errors import InputError
from pandora_dagster.governance.recipe_test_run import RecipeTestOutcome
from pandora_dagster.recipes.lint import check_recipe
from pandora_dagster.recipes.recipe_loader import open_recipes
from pandora_dagster.runtime.extractive.extractive_runtime import ExtractiveRuntime
from pandora_dagster.runtime.token_counter import TokenCounter
from pandora_dagster.settings import Settings, load_settings
from pandora_dagster.shipped import shipped_folder
from pandora_dagster.tools.tool_registry import TOOL_NAMES
from tests.governance.recipe_copies import copied

RECIPES = open_recipes().names()
_EXAMPLES = re.compile(r"^(`{3,}).*?^\1$|^<(variables|document|query)\b.*?^</\2>$|^Answer:\n.*?$", re.MULTILINE | re.DOTALL)


class ScriptedServer(ExtractiveRuntime):
    """Answers as a server of a model would be recorded: under a name of its own."""

    @property
    def name(self) -> str:
        return "scripted"

    def model(self, layer: ModelLayer) -> str:
        return f"scripted-{layer.value}"

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: Callable[[str], None] | None = None) -> ModelAnswer:
        answer = await super().complete(pack, timeout_s=timeout_s, on_words=on_words)
        return ModelAnswer(answer.text, "stop", answer.usage, self.name, self.model(pack.layer), 1.0)


@pytest.fixture(scope="module")
def counter() -> TokenCounter:
    return TokenCounter(shipped_folder() / "data" / "tokenizer" / "cl100k_base.tiktoken")


def settings_of(folder: Path) -> Settings:
    return load_settings({"PANDORA_RECIPES": str(folder), "PANDORA_ROOT": str(folder / "store")})


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory, counter: TokenCounter) -> Path:
    """Answers to the tests of every shipped recipe."""
    folder = tmp_path_factory.mktemp("recorded")
    settings = settings_of(copied(tmp_path_factory.mktemp("shipped")))
    server = ScriptedServer(counter, utc_now)
    outcomes = recipe_admin.record_answers(settings, recipe_admin.open_recipe_admin(settings), "", folder, runtime=server)
    assert {outcome.recipe for outcome in outcomes} == set(RECIPES) and all(outcome.passed for outcome in outcomes), outcomes
    return folder


def replay(folder: Path, recipe: str, recordings: Path) -> tuple[RecipeTestOutcome, ...]:
    """The tests of a recipe in `folder`, answered from the recordings."""
    settings = settings_of(folder)
    admin = recipe_admin.open_recipe_admin(settings)
    return recipe_admin.run_tests(settings, admin, recipe, runtime=recipe_admin.open_recorded_runtime(admin, recordings))


def rewrite_prompts(folder: Path, recipe: str, rewrite: Callable[[str], str]) -> None:
    for entry in open_recipes(folder).load(recipe).recipe.prompt_files:
        path = folder / entry.path
        path.write_text(rewrite(path.read_text(encoding="utf-8")), encoding="utf-8")


def contradict(prompt: str) -> str:
    """The prompt with each line of its rules negated, in no more tokens; its examples stay, so that its form is sound."""
    kept: list[str] = []
    position = 0
    for example in [*_EXAMPLES.finditer(prompt), None]:
        rules = prompt[position : example.start() if example else len(prompt)]
        kept.append(re.sub(r"^(- )?(?!If evidence|Example)\w+", r"\1Not", rules, flags=re.MULTILINE))
        kept.append(example.group() if example else "")
        position = example.end() if example else position
    return "".join(kept)


@pytest.mark.parametrize("recipe", RECIPES)
def test_an_emptied_prompt_fails_the_check_and_a_contradicted_one_the_replay(
    recipe: str, tmp_path: Path, recordings: Path, counter: TokenCounter
) -> None:
    """All shipped recipes; as shipped each passes both."""
    shipped = copied(tmp_path / "shipped")
    assert all(outcome.passed for outcome in replay(shipped, recipe, recordings))
    assert check_recipe(open_recipes(shipped).load_with_tests(recipe), counter, TOOL_NAMES) == ()

    emptied = copied(tmp_path / "emptied")
    rewrite_prompts(emptied, recipe, lambda text: "-")
    assert check_recipe(open_recipes(emptied).load_with_tests(recipe), counter, TOOL_NAMES)

    contradicted = copied(tmp_path / "contradicted")
    rewrite_prompts(contradicted, recipe, contradict)
    outcomes = replay(contradicted, recipe, recordings)
    assert outcomes and not any(outcome.passed for outcome in outcomes)
    assert all("recorded for another prompt: record again" in outcome.faults[0] for outcome in outcomes), outcomes


def test_what_answered_is_named_from_the_recording(tmp_path: Path, recordings: Path) -> None:
    """A replay shows the model that was recorded, and counts as one that read the prompt."""
    outcomes = replay(copied(tmp_path), "reflection", recordings)
    assert {(o.runtime, o.model, o.reads_prompt) for o in outcomes} == {("scripted", "scripted-REFLEX", True)}


def test_the_embedded_runtime_is_not_recorded(tmp_path: Path, counter: TokenCounter) -> None:
    """Its answers say nothing about a prompt."""
    settings = settings_of(copied(tmp_path))
    with pytest.raises(InputError, match="reads no prompt: expected a model to record"):
        recipe_admin.record_answers(settings, recipe_admin.open_recipe_admin(settings), "", tmp_path / "recorded")
    assert not (tmp_path / "recorded").exists()


def test_a_folder_without_recordings_is_refused(tmp_path: Path) -> None:
    """Otherwise every test would fail for a reason that is none of its prompt's."""
    settings = settings_of(copied(tmp_path))
    with pytest.raises(InputError, match="no recorded answers"):
        recipe_admin.open_recorded_runtime(recipe_admin.open_recipe_admin(settings), tmp_path / "none")
