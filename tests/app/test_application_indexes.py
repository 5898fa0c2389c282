"""The indexes of a whole store: imported and live turns, calls, research and visits, compared with their documents."""

import duckdb
import pytest

from pandora_dagster.contracts.ids import user_id
from pandora_dagster.errors import StoreError
from tests.phases.rig import Rig, command, open_rig, plan, tool
from tests.stores.user.test_source_files import research, visit

ANNA = user_id("anna")
INDEXES = ("turn_index", "call_index", "research_index")


@pytest.fixture
def rig(tmp_path):
    """A store that holds something of every kind."""
    made = open_rig(tmp_path / "store")
    made.app.transfer.import_example()
    made.app.dependencies.sources.put(ANNA, research())
    made.app.dependencies.sources.put(ANNA, visit())
    made.say(planner=plan("coordinator"), executor=[command()], coordinator=tool("memory.query", query="desk"))
    made.ask("which desk did we order?")
    made.say(planner=plan("synthesis"))
    made.ask("and the chair?")
    made.ask("and the chair?", user="example")
    yield made
    made.app.close()


def aged(rig: Rig, name: str) -> None:
    """An index as an older design of it would stand there."""
    with duckdb.connect(rig.app.settings.root / "indexes" / f"{name}.duckdb") as connection:
        connection.execute("UPDATE schema_version SET version = 0")


def test_indexes_that_grew_with_the_store_agree_with_it_and_so_do_rebuilt_ones(rig):
    """Nothing differs before, after, and after turns that came later."""
    assert rig.app.indexes.verify() == ()
    before = rig.app.turn_index.rows()
    made = rig.app.indexes.rebuild()
    assert (made.turns, made.faults, made.broken_lines) == (len(before), (), ())
    assert made.rows["research and visits"] == 2 and made.rows["calls"] > 0
    assert rig.app.turn_index.rows() == before and rig.app.indexes.verify() == ()
    rig.ask("and the lamp?")
    assert rig.app.indexes.verify() == ()


def test_what_differs_is_named(rig):
    """A row that is gone, and a record behind the index's back."""
    rig.app.turn_index.remove("anna", [1])
    (rig.app.settings.root / "users" / "anna" / "webpage_cache").rename(rig.app.settings.root / "elsewhere")
    found = "\n".join(rig.app.indexes.verify())
    assert "anna:turn_000001: missing from the index" in found and "visit_abc123" in found


@pytest.mark.parametrize("name", INDEXES)
def test_an_index_of_an_older_design_says_what_to_do_and_costs_no_turn(rig, name):
    """A turn stops with one sentence, or goes through: it needs no call index, and the turn index is made anew. After a rebuild it is
    finished and all agrees."""
    count = len(rig.app.turn_index.rows())
    aged(rig, name)
    key = rig.start("which desk?")
    if name == "research_index":
        with pytest.raises(StoreError, match=r"research_index\.duckdb: index version 0, expected \d+$"):
            rig.run(key)
    else:
        rig.run(key)
        assert rig.turn(key).manifest.state == "saved"
    rig.app.indexes.rebuild()
    if name == "research_index":
        rig.run(key)
    assert rig.turn(key).manifest.state == "saved"
    assert len(rig.app.turn_index.rows()) == count + 1
    assert rig.app.indexes.verify() == ()
