"""What may run: recipes and prompts from disk, checked, versioned and catalogued. Calls no model, fills no pack."""

from pandora_dagster.recipes.generated_files import check_registry, check_schema_file, write_registry, write_schema_file
from pandora_dagster.recipes.lint import LintReport, check_all
from pandora_dagster.recipes.recipe_loader import RecipeLoader, RecipeOverride, check_file, get_recipe, load_recipe, open_recipes
from pandora_dagster.recipes.static_prompts import fill_variables, io_schema, select_prompts
from pandora_dagster.recipes.version_text import read_version, version_text

__all__ = [
    "LintReport",
    "RecipeLoader",
    "RecipeOverride",
    "check_all",
    "check_file",
    "check_registry",
    "check_schema_file",
    "fill_variables",
    "get_recipe",
    "io_schema",
    "load_recipe",
    "open_recipes",
    "read_version",
    "select_prompts",
    "version_text",
    "write_registry",
    "write_schema_file",
]
