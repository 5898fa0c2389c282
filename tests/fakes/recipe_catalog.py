"""Recipes without files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pandora_dagster.contracts.enums import ContentType, Mode
from pandora_dagster.contracts.recipe_schema import LoadedRecipe, PromptFrames, Recipe
from pandora_dagster.errors import RecipeNotFoundError, RecipeValidationError
from pandora_dagster.recipes.recipe_reader import read_frames
from pandora_dagster.shipped import shipped_folder


def frames_of(recipe: Recipe) -> PromptFrames:
    """The shipped frames for a recipe."""
    frames, faults = read_frames(shipped_folder() / "prompts", recipe.output_format)
    assert frames is not None, faults
    return frames


@dataclass
class MemoryRecipeCatalog:
    """`RecipeCatalog` over a dictionary by `{category}/{name}`; a recipe in `broken` raises as a faulty file would."""

    recipes: Mapping[str, LoadedRecipe]
    broken: Sequence[str] = ()

    def load(self, name: str) -> LoadedRecipe:
        if name in self.broken:
            raise RecipeValidationError([f"recipes/{name}.yaml:7: token_budget: 6250 is over total 5750"])
        if name not in self.recipes:
            raise RecipeNotFoundError(f"{name}: no such recipe: expected one of {', '.join(self.recipes)}")
        return self.recipes[name]

    def get(self, phase: str, mode: str) -> LoadedRecipe:
        if mode not in tuple(Mode):
            raise RecipeNotFoundError(f"{mode!r}: not a mode: expected {' or '.join(Mode)}")
        for name in (f"{phase}_{mode}", phase):
            if name in self.recipes and self.load(name).recipe.mode in (None, mode):
                return self.recipes[name]
        raise RecipeNotFoundError(f"{phase}: no such recipe for mode {mode}: expected one of {', '.join(self.recipes)}")

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self.recipes))

    def compressor(self, content_type: ContentType) -> LoadedRecipe:
        shelved = (name for name in self.names() if name.startswith("compression/"))
        fitting = [name for name in shelved if self.load(name).recipe.content_type is content_type]
        if len(fitting) != 1:
            raise RecipeNotFoundError(f"content type {content_type}: {', '.join(fitting) or 'none'}: expected exactly one recipe")
        return self.load(fitting[0])
