"""The assets of a turn: one per phase. Knows only that the table of phases is the graph."""

import dagster as dg

from pandora_dagster.contracts.ports import Cookbook
from pandora_dagster.defs.factory import phase_asset
from pandora_dagster.defs.recipes import phase_recipes
from pandora_dagster.phases.flow import PHASES


def turn_assets(cookbook: Cookbook) -> list[dg.AssetsDefinition]:
    """One asset per phase, in the order of the flow; never fails on a broken recipe."""
    return [phase_asset(spec, phase_recipes(spec, cookbook)) for spec in PHASES]
