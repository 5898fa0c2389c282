"""`doc.search`: earlier turns by words, whole pieces within a budget, each under its source."""

import asyncio
import json

import pytest

from pandora_dagster.contracts.ids import TurnKey, user_id
from pandora_dagster.contracts.ports.tool import ToolRun
from pandora_dagster.errors import DocumentError
from pandora_dagster.tools.document_search import BUDGET_TOKENS, MAX_TURNS
from tests.fakes.tools import ScriptedRecipes
from tests.governance.recipe_copies import copied_without_evidence
from tests.phases.rig import open_rig


@pytest.fixture
def rig(tmp_path):
    """A store of its own; scripted answers need no source."""
    made = open_rig(tmp_path / "store", recipes=copied_without_evidence(tmp_path / "edited"))
    yield made
    made.app.close()


def search(rig, query, *, user="anna", before=99, ask=None):
    tool = rig.app.dependencies.tools["doc.search"]
    return asyncio.run(tool.run(ToolRun({"query": query}, TurnKey(user_id(user), before), 30.0, ask=ask or ScriptedRecipes())))


def test_the_best_pieces_come_with_their_sources(rig):
    """Each piece names its turn and day; the raw bundle holds the same text."""
    rig.say(synthesizer="The walnut desk costs 300.")
    key = rig.ask("which desk?")
    found = search(rig, "walnut desk")
    assert found.ok and "The walnut desk costs 300." in found.text and found.text.startswith("[source 1] Turn 1 (")
    assert [(s.turn_id, s.path, s.label) for s in found.sources] == [(key.turn_id, "turns/turn_000001/context.md", "")]
    assert json.loads(found.raw)[0]["turn_id"] == key.turn_id


def test_nothing_found_is_no_error(rig):
    """An empty text and no sources."""
    found = search(rig, "zeppelin")
    assert (found.ok, found.text, found.sources) == (True, "", ())


def test_only_the_users_own_earlier_turns_are_searched(rig):
    """Neither another user's turns, nor this turn, nor later ones."""
    rig.ask("the walnut desk", user="ben")
    rig.ask("the walnut desk")
    assert search(rig, "walnut", user="carla").sources == () and search(rig, "walnut", before=1).sources == ()
    assert {s.turn_id for s in search(rig, "walnut").sources} == {"turn_000001"}


def test_the_result_stays_within_its_budget(rig):
    """At most three turns, whole pieces, and what was left out is named in the raw bundle."""
    for n in range(MAX_TURNS + 2):
        rig.ask("\n\n".join(f"walnut paragraph {n} {m} " + "and so on " * 30 for m in range(4)))
    found = search(rig, "walnut paragraph")
    assert 0 < len(found.sources) <= MAX_TURNS
    assert rig.app.dependencies.counter.count(found.text) <= BUDGET_TOKENS + 20 * MAX_TURNS
    assert any(entry["left_out"] for entry in json.loads(found.raw))


def test_a_damaged_turn_is_named(rig):
    """A found turn whose document was changed is an error that names it, never silently left out."""
    key = rig.ask("the walnut desk")
    (rig.app.folder(key) / "context.md").write_text("changed")
    with pytest.raises(DocumentError, match="turn_000001"):
        search(rig, "walnut")


def test_a_search_that_found_nothing_is_made_in_other_words(rig):
    """The first that finds; a search that found something, and one in the first turn, ask for none."""
    rig.say(synthesizer="The walnut sofa costs 300.")
    rig.ask("which sofa?")
    ask = ScriptedRecipes({"tools/doc_search_query": {"queries": ["zeppelin", "sofa"]}})
    assert "The walnut sofa costs 300." in search(rig, "couch", ask=ask).text
    assert [(recipe, documents[0].text) for recipe, documents in ask.asked] == [("tools/doc_search_query", "couch")]
    assert search(rig, "sofa", ask=ask).sources and search(rig, "couch", before=1, ask=ask).sources == () and len(ask.asked) == 1
