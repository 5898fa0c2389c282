"""What stands in section 2 leads to the record that says it: the right visit of a page, and no other source."""

from datetime import UTC, datetime, timedelta

import pytest

from pandora_dagster.contracts.ids import user_id
from pandora_dagster.text.citations import references
from pandora_dagster.text.meta import metas
from tests.phases.test_sources import chosen, gathered, report
from tests.stores.test_sources import visit

ANNA = user_id("anna")
PAGE = "https://shop.example/kettle"
OLD, NEW = "visit_old", "visit_new"
AGES, PRICES = {OLD: 50, NEW: 1}, {OLD: "$49", NEW: "$59"}


@pytest.fixture
def twice(rig):
    """One page that was visited 50 hours and one hour ago, at two prices."""
    for visit_id, hours in AGES.items():
        seen = (datetime.now(UTC) - timedelta(hours=hours)).isoformat()
        found = visit(visit_id=visit_id, url=PAGE, visited_at=seen, extracted_data={"price": PRICES[visit_id]})
        rig.house.kit.sources.put_visit(ANNA, found)
    return rig


def seen(visit_id, **changed):
    return {"visit_id": visit_id, "url": PAGE, "extracted": {"price": PRICES[visit_id]}, **changed}


@pytest.mark.parametrize("order", [(OLD, NEW), (NEW, OLD)])
def test_two_visits_of_one_page_are_each_cited_as_themselves(twice, order):
    """Each price under its own label and age; the old one alone is to be looked at again, once; both ages make the mean."""
    twice.say(retrieval=chosen(visits=order), context_synthesis=gathered(visits=[seen(v) for v in (NEW, OLD)]))
    key = twice.ask()
    section = twice.section(key, 2)
    label = {s.path.removeprefix("webpage_cache/").removesuffix(".json"): s.label for s in references(section)}
    for visit_id in order:
        assert f"| shop.example/kettle [{label[visit_id]}] | price | {PRICES[visit_id]} | {AGES[visit_id]}.0h |" in section
    meta = metas(section)["Visit Record Data"]
    assert (meta["freshness_avg"], meta["verify"]) == (25.5, [OLD])
    assert metas(section)["Context Assessment"]["recommendations"] == [
        "verify shop.example/kettle where price or stock matters: seen 50.0 hours ago"
    ]
    assert "sources_not_used" not in report(twice, key)["facts"] and report(twice, key)["gates"]["sources_linked"] is True


def test_of_two_visits_of_one_page_the_one_that_was_passed_over_is_told(twice):
    """It is neither cited nor advised about."""
    twice.say(retrieval=chosen(visits=(NEW, OLD)), context_synthesis=gathered(visits=[seen(NEW)]))
    key = twice.ask()
    section = twice.section(key, 2)
    assert [s.path for s in references(section)] == [f"webpage_cache/{NEW}.json"] and "verify" not in section
    assert report(twice, key)["facts"]["sources_not_used"] == [f"visit {OLD}"]


def test_one_visit_told_in_two_pieces_counts_once(twice):
    """The advice stands once, and its age is the mean."""
    pieces = [seen(OLD), seen(OLD, extracted={"stock": "few"})]
    twice.say(retrieval=chosen(visits=(OLD,)), context_synthesis=gathered(visits=pieces))
    meta = metas(twice.section(twice.ask(), 2))["Visit Record Data"]
    assert (meta["freshness_avg"], meta["verify"]) == (50.0, [OLD])


@pytest.mark.parametrize("says", ["", "visit_none"])
def test_what_names_neither_of_two_visits_is_linked_to_none(twice, says):
    """An address that both share says not which, and an id that was not loaded is none."""
    twice.say(retrieval=chosen(visits=(OLD, NEW)), context_synthesis=gathered(visits=[seen(NEW) | {"visit_id": says}]))
    key = twice.ask()
    section = twice.section(key, 2)
    assert "| shop.example/kettle (unlinked) | price | $59 |" in section and references(section) == ()
    assert report(twice, key)["gates"]["sources_linked"] is False


def test_the_embedded_runtime_says_which_visit_it_read(anna):
    """Both visits of a page reach section 2 with their own prices and ages."""
    for visit_id, hours in AGES.items():
        data = {"title": "Copper kettle", "price": PRICES[visit_id]}
        anna.visit(visit_id=visit_id, url=PAGE, hours=hours, extracted_data=data)
    key = anna.ask("What does the copper kettle cost?")
    told = {v["visit_id"]: v["extracted"]["price"] for v in anna.gathered(key)["visit_data"]}
    section = anna.section(key, 2)
    label = {s.path.removeprefix("webpage_cache/").removesuffix(".json"): s.label for s in references(section)}
    assert told == PRICES and metas(section)["Visit Record Data"]["verify"] == [OLD]
    assert all(f"[{label[v]}] | price | {PRICES[v]} | {AGES[v]}.0h |" in section for v in PRICES)
