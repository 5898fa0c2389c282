"""The graph of a turn: one asset per phase, whatever the recipes are worth."""

from pandora_dagster.defs.turn.phase_assets import turn_assets
from pandora_dagster.phases.flow.phase_table import PHASES


def test_every_phase_is_an_asset_with_the_flows_dependencies(graph):
    """The graph is the table of phases, no more and no less."""
    drawn = {a.key.to_user_string(): {d.to_user_string() for d in a.asset_deps[a.key]} for a in graph.assets}
    assert drawn == {p.name: set(p.needs) for p in PHASES}


def test_a_broken_recipe_leaves_the_graph_whole_and_says_so_at_its_asset(recipes):
    """The definitions load; the asset's description carries the error with file and line (DECISIONS 17)."""
    recipes.broken = ("pipeline/phase2_retrieval",)
    described = {a.key.to_user_string(): a.descriptions_by_key[a.key] for a in turn_assets(recipes)}
    assert len(described) == len(PHASES)
    assert "recipes/pipeline/phase2_retrieval.yaml:7: token_budget: 6250 is over total 5750" in described["retrieval_plan"]
    assert described["retrieval_plan"].count("6250") == 1
    assert "cannot be loaded" not in described["reflection"]


def test_a_phase_shows_every_recipe_that_it_runs(recipes):
    """The main recipe and what runs beside it stand in description and metadata; the checks stay the main recipe's gates."""
    specs = {spec.key.to_user_string(): spec for asset in turn_assets(recipes) for spec in asset.specs}
    for phase, names in (
        ("tool_results", ("pipeline/phase4_coordinator", "pipeline/phase4_executor")),
        ("validation", ("pipeline/phase6_validator", "pipeline/phase5_synthesizer")),
    ):
        for recipe in names:
            assert f"`{recipe}`" in specs[phase].description
            assert f"recipe_{recipe.rpartition('/')[2]}" in specs[phase].metadata
    recipes.broken = ("pipeline/phase4_executor",)
    broken = {spec.key.to_user_string(): spec for asset in turn_assets(recipes) for spec in asset.specs}["tool_results"]
    assert "cannot be loaded" in broken.description and "`pipeline/phase4_coordinator`" in broken.description
