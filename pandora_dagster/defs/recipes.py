"""The recipes behind a phase, for display. Knows how to ask the cookbook; a fault is a value here, never an exception."""

from dataclasses import dataclass

from pandora_dagster.contracts.ports import Cookbook
from pandora_dagster.contracts.recipes import LoadedRecipe
from pandora_dagster.contracts.words import Mode
from pandora_dagster.errors import ConfigurationError
from pandora_dagster.phases.flow import PhaseSpec


@dataclass(frozen=True, slots=True)
class PhaseRecipes:
    """What one phase runs: one recipe for both modes, or one per mode, or none; `faults` where one can not be loaded."""

    loaded: tuple[LoadedRecipe, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def layers(self) -> tuple[str, ...]:
        """Model layers, each once."""
        return tuple(dict.fromkeys(r.recipe.model_layer.value for r in self.loaded))


def phase_recipes(spec: PhaseSpec, cookbook: Cookbook) -> PhaseRecipes:
    """The recipes of `spec` in every mode. A broken one is reported, so that the graph still loads (DECISIONS 17)."""
    loaded: dict[str, LoadedRecipe] = {}
    faults: dict[str, None] = {}
    for mode in Mode if spec.recipe else ():
        try:
            recipe = cookbook.get(spec.recipe or "", mode.value)
            loaded[recipe.path] = recipe
        except ConfigurationError as error:
            faults[str(error)] = None
    return PhaseRecipes(tuple(loaded.values()), tuple(faults))
