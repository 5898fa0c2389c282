"""The cookbook as the command line looks after it: checked, listed, generated. Opens no store and no runtime."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pandora_dagster.cookbook import RecipeLoader, check_all, check_file, write_registry, write_schema_file
from pandora_dagster.settings import Settings
from pandora_dagster.wiring.building import open_recipe_loader, open_counter, open_versions

__all__ = ["RecipeCheckResult", "check_recipes", "check_files", "open_recipe_loader", "recipe_rows", "write_generated"]
TOOL_NAMES = frozenset({"doc.search", "memory.query", "memory.create"})
"""The names of the tools that `building.open_house` registers."""


@dataclass(frozen=True, slots=True)
class RecipeCheckResult:
    """What a check found: `count` recipes looked at."""

    count: int
    faults: tuple[str, ...]
    notices: tuple[str, ...] = ()


def check_recipes(settings: Settings) -> RecipeCheckResult:
    """The whole cookbook: recipes, prompts, registry and schema."""
    shelf = open_recipe_loader(settings)
    checked = check_all(shelf, TOOL_NAMES, open_counter(settings))
    return RecipeCheckResult(len(shelf.names()), checked.faults, checked.notices)


def check_files(settings: Settings, files: Sequence[Path]) -> RecipeCheckResult:
    """These files alone, wherever they lie, without the registry."""
    return RecipeCheckResult(len(files), tuple(fault for file in files for fault in check_file(file)))


def write_generated(settings: Settings) -> None:
    """Generate `registry.yaml` and `schema.json` from the recipe files."""
    shelf = open_recipe_loader(settings)
    write_schema_file(shelf)
    write_registry(shelf, open_counter(settings))


def recipe_rows(settings: Settings) -> list[dict[str, Any]]:
    """One row a recipe as it is in production, for a table."""
    shelf = open_recipe_loader(settings, open_versions(settings))
    return [_row(shelf, name) for name in shelf.names()]


def _row(shelf: RecipeLoader, name: str) -> dict[str, Any]:
    loaded = shelf.load(name)
    recipe, budget = loaded.recipe, loaded.recipe.token_budget
    return {
        "recipe": name,
        "layer": loaded.layer.value,
        "mode": recipe.mode.value if recipe.mode else "",
        **budget.model_dump(),
        "version": loaded.version,
    }
