"""The graph of a turn: one asset per phase, whatever the recipes are worth."""

from pandora_dagster.defs.assets_turn import turn_assets
from pandora_dagster.phases.flow import PHASES


def test_every_phase_is_an_asset_with_the_flows_dependencies(graph):
    """The graph is the table of phases, no more and no less."""
    drawn = {a.key.to_user_string(): {d.to_user_string() for d in a.asset_deps[a.key]} for a in graph.assets}
    assert drawn == {p.name: set(p.needs) for p in PHASES}


def test_a_broken_recipe_leaves_the_graph_whole_and_says_so_at_its_asset(cookbook):
    """The definitions load; the asset's description carries the error with file and line (DECISIONS 17)."""
    cookbook.broken = ("pipeline/phase2_retrieval",)
    described = {a.key.to_user_string(): a.descriptions_by_key[a.key] for a in turn_assets(cookbook)}
    assert len(described) == len(PHASES)
    assert "recipes/pipeline/phase2_retrieval.yaml:7: token_budget: 6250 is over total 5750" in described["retrieval_plan"]
    assert described["retrieval_plan"].count("6250") == 1
    assert "can not be loaded" not in described["reflection"]
