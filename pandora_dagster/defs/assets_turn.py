"""The assets of a turn: one per phase. Knows only that the table of phases is the graph."""

from functools import lru_cache

import dagster as dg

from pandora_dagster.contracts.ports import RecipeCatalog
from pandora_dagster.defs.factory import phase_asset
from pandora_dagster.defs.recipes import PhaseRecipes, phase_recipes
from pandora_dagster.phases.flow import PHASES


def turn_assets(cookbook: RecipeCatalog) -> list[dg.AssetsDefinition]:
    """One asset per phase, in the order of the flow; never fails on a broken recipe."""
    return list(_cached_assets(tuple(_RecipesKey(phase_recipes(spec, cookbook)) for spec in PHASES)))


class _RecipesKey:
    """The recipes of a phase as a key: equal where paths, versions and faults are."""

    def __init__(self, recipes: PhaseRecipes) -> None:
        self.recipes = recipes
        self._key = (tuple((r.path, r.version) for r in recipes.every), recipes.faults)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _RecipesKey) and other._key == self._key


@lru_cache(maxsize=4)
def _cached_assets(recipes: tuple[_RecipesKey, ...]) -> tuple[dg.AssetsDefinition, ...]:
    """Made once for a cookbook as it stands (60 ms); an edited recipe makes them anew."""
    return tuple(phase_asset(spec, same.recipes) for spec, same in zip(PHASES, recipes, strict=True))
