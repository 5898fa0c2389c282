"""What every catalog of recipes must do, asked of the files and of the fake in memory."""

import shutil
from pathlib import Path

import pytest

from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.contracts.ports.recipe_execution import RecipeCatalog
from pandora_dagster.errors import RecipeNotFoundError, RecipeValidationError
from pandora_dagster.recipes.recipe_loader import open_recipes
from pandora_dagster.shipped import shipped_folder
from tests.fakes.recipe_catalog import MemoryRecipeCatalog

PLANNER, RETRIEVAL, BROKEN = "pipeline/phase3_planner", "pipeline/phase2_retrieval", "pipeline/phase6_validator"
NAMES = ("compression/compress_generic", RETRIEVAL, f"{PLANNER}_chat", f"{PLANNER}_code", BROKEN)


@pytest.fixture(params=["memory", "files"])
def recipes(request: pytest.FixtureRequest, tmp_path: Path) -> RecipeCatalog:
    """Five of the shipped recipes, of which one is broken."""
    shutil.copytree(shipped_folder() / "prompts", tmp_path / "prompts")
    for name in NAMES:
        file = tmp_path / f"recipes/{name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(shipped_folder() / f"recipes/{name}.yaml", file)
    files = open_recipes(tmp_path)
    if request.param == "memory":
        return MemoryRecipeCatalog({name: files.load(name) for name in NAMES}, broken=[BROKEN])
    (tmp_path / f"recipes/{BROKEN}.yaml").write_text("name: validator\ntoken_budget: none\n")
    return files


def test_the_names_of_all_are_listed(recipes: RecipeCatalog) -> None:
    """In the order of the alphabet, the broken one among them."""
    assert recipes.names() == NAMES


def test_a_recipe_is_found_by_its_name(recipes: RecipeCatalog) -> None:
    loaded = recipes.load(f"{PLANNER}_code")
    assert (loaded.path, loaded.recipe.mode) == (f"{PLANNER}_code", "code") and loaded.version and loaded.prompts
    assert recipes.load(f"{PLANNER}_code") == loaded


def test_a_mode_has_its_variant_or_the_recipe_of_all_modes(recipes: RecipeCatalog) -> None:
    assert [recipes.get(PLANNER, mode).path for mode in ("chat", "code")] == [f"{PLANNER}_chat", f"{PLANNER}_code"]
    assert [recipes.get(RETRIEVAL, mode).path for mode in ("chat", "code")] == [RETRIEVAL, RETRIEVAL]


def test_an_unknown_recipe_is_refused(recipes: RecipeCatalog) -> None:
    """With its name; nothing takes its place."""
    with pytest.raises(RecipeNotFoundError, match="pipeline/none"):
        recipes.load("pipeline/none")
    with pytest.raises(RecipeNotFoundError, match="pipeline/none"):
        recipes.get("pipeline/none", "chat")
    with pytest.raises(RecipeNotFoundError, match="'talk': not a mode"):
        recipes.get(PLANNER, "talk")


def test_a_broken_recipe_is_refused_with_its_faults(recipes: RecipeCatalog) -> None:
    with pytest.raises(RecipeValidationError, match=f"recipes/{BROKEN}.yaml:") as loading:
        recipes.load(BROKEN)
    with pytest.raises(RecipeValidationError) as choosing:
        recipes.get(BROKEN, "chat")
    assert loading.value.faults == choosing.value.faults != ()


def test_a_content_type_has_one_compressor(recipes: RecipeCatalog) -> None:
    assert recipes.compressor(ContentType.GENERIC).path == "compression/compress_generic"
    with pytest.raises(RecipeNotFoundError, match=f"content type {ContentType.PAGE_DOC}: none"):
        recipes.compressor(ContentType.PAGE_DOC)
