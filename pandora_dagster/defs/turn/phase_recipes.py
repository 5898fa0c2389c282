"""The recipes of a phase, for display. A fault of a recipe is a value here, never an exception."""

from dataclasses import dataclass

from pandora_dagster.contracts.enums import Mode
from pandora_dagster.contracts.ports.recipe_execution import RecipeCatalog
from pandora_dagster.contracts.recipe_schema import LoadedRecipe
from pandora_dagster.errors import ConfigurationError
from pandora_dagster.phases.flow.phase_spec import PhaseSpec


@dataclass(frozen=True, slots=True)
class PhaseRecipes:
    """What one phase runs: one recipe for both modes, or one per mode, or none; `faults` where one can not be loaded.

    `also` holds what it may run beside them: shown, while the checks are the main recipe's gates.
    """

    loaded: tuple[LoadedRecipe, ...] = ()
    faults: tuple[str, ...] = ()
    also: tuple[LoadedRecipe, ...] = ()

    @property
    def every(self) -> tuple[LoadedRecipe, ...]:
        """All recipes, the main ones first."""
        return self.loaded + self.also

    @property
    def layers(self) -> tuple[str, ...]:
        """Model layers, each once."""
        return tuple(dict.fromkeys(r.layer.value for r in self.every))


def phase_recipes(spec: PhaseSpec, cookbook: RecipeCatalog) -> PhaseRecipes:
    """The recipes of `spec` in every mode. A broken one is reported, so that the graph still loads (DECISIONS 17)."""
    faults: dict[str, None] = {}
    main, *others = [_loaded(recipe.name, cookbook, faults) for recipe in spec.recipes] or [{}]
    also = {path: recipe for other in others for path, recipe in other.items() if path not in main}
    return PhaseRecipes(tuple(main.values()), tuple(faults), tuple(also.values()))


def _loaded(name: str, cookbook: RecipeCatalog, faults: dict[str, None]) -> dict[str, LoadedRecipe]:
    loaded: dict[str, LoadedRecipe] = {}
    for mode in Mode:
        try:
            recipe = cookbook.get(name, mode.value)
            loaded[recipe.path] = recipe
        except ConfigurationError as error:
            faults[str(error)] = None
    return loaded
