"""A recipe that no call leads to is a fault, wherever its file is and whatever it says of itself."""

import shutil
from pathlib import Path

import pytest

from pandora_dagster.app.recipe_admin import called_recipes, check_recipes
from pandora_dagster.recipes.recipe_loader import RecipeLoader
from pandora_dagster.settings import load_settings
from tests.governance.recipe_copies import copied


def uncalled(folder: Path) -> list[str]:
    """The recipes of a folder that `pandora recipes check` calls uncalled."""
    faults = check_recipes(load_settings({"PANDORA_RECIPES": str(folder), "PANDORA_ROOT": str(folder / "store")})).faults
    return [fault.partition(".yaml")[0].removeprefix("recipes/") for fault in faults if "nothing calls it" in fault]


def put_copy(folder: Path, source: str, target: str, *, without: str = "\0") -> None:
    """A copy of a recipe under another name, without the line that begins with `without`."""
    text = (folder / "recipes" / f"{source}.yaml").read_text()
    lines = [f"name: {target.rpartition('/')[2]}" if line.startswith("name: ") else line for line in text.split("\n")]
    (folder / "recipes" / f"{target}.yaml").write_text("\n".join(line for line in lines if not line.startswith(without)))


def test_every_shipped_recipe_is_called(tmp_path: Path) -> None:
    assert uncalled(copied(tmp_path / "recipes")) == []


@pytest.mark.parametrize("target", ["memory/compress_more", "research/compress_generic_too", "memory/summaries"])
def test_a_recipe_of_compression_that_no_lookup_finds_is_a_fault(tmp_path: Path, target: str) -> None:
    """Any recipe with a `content_type` passed as called; the compressors are looked up in `compression/` alone."""
    folder = copied(tmp_path / "recipes")
    put_copy(folder, "compression/compress_generic", target)
    assert uncalled(folder) == [target]


def test_two_recipes_for_one_content_type_are_called_by_nothing(tmp_path: Path) -> None:
    """A call for that type fails: it expects exactly one."""
    folder = copied(tmp_path / "recipes")
    put_copy(folder, "compression/compress_generic", "compression/compress_more")
    assert uncalled(folder) == ["compression/compress_generic", "compression/compress_more"]


def test_a_recipe_that_its_variants_shadow_is_a_fault(tmp_path: Path) -> None:
    """A call finds the variant of its mode before the recipe without one."""
    folder = copied(tmp_path / "recipes")
    put_copy(folder, "pipeline/phase3_planner_chat", "pipeline/phase3_planner", without="mode: ")
    assert uncalled(folder) == ["pipeline/phase3_planner"]


def test_a_faulty_file_of_compression_is_a_fault_of_its_own(tmp_path: Path) -> None:
    folder = copied(tmp_path / "recipes")
    (folder / "recipes" / "compression" / "compress_generic.yaml").write_text("name: [")
    assert uncalled(folder) == []
    shutil.rmtree(folder / "recipes" / "compression")
    assert not any(name.startswith("compression/") for name in called_recipes(RecipeLoader(folder / "recipes", folder / "prompts")))
