"""What stands in section 2 leads to the record that says it: the right visit of a page, and no other source."""

import json
import re
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.user.sources import Provenance
from pandora_dagster.contracts.user.user_memory import MemoryEntry
from pandora_dagster.documents.citations import cited_labels, source_references
from pandora_dagster.documents.meta import subsection_metas
from pandora_dagster.phases.core.phase_context import json_line
from pandora_dagster.phases.gather.source_text import MAX_OFFERED_HEADERS
from pandora_dagster.runtime.extractive.evidence.header_lines import json_lines
from tests.phases.gather.test_source_documents import chosen, gathered, lines, report, write_note
from tests.phases.rig import ANALYSIS, SUMMARY
from tests.stores.user.test_source_files import research, visit

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
        rig.app.dependencies.sources.put(ANNA, found)
    return rig


def seen(visit_id, **changed):
    return {"visit_id": visit_id, "url": PAGE, "extracted": {"price": PRICES[visit_id]}, **changed}


@pytest.mark.parametrize("order", [(OLD, NEW), (NEW, OLD)])
def test_two_visits_of_one_page_are_each_cited_as_themselves(twice, order):
    """Each price under its own label and age; the old one alone is to be looked at again, once; both ages make the mean."""
    twice.say(retrieval=chosen(visits=order), context_synthesis=gathered(visits=[seen(v) for v in (NEW, OLD)]))
    key = twice.ask()
    section = twice.section(key, 2)
    label = {s.path.removeprefix("webpage_cache/").removesuffix(".json"): s.label for s in source_references(section)}
    for visit_id in order:
        assert f"| shop.example/kettle [{label[visit_id]}] | price | {PRICES[visit_id]} | {AGES[visit_id]}.0h |" in section
    meta = subsection_metas(section)["Visit Record Data"]
    assert (meta["freshness_avg"], meta["verify"]) == (25.5, [OLD])
    assert subsection_metas(section)["Context Assessment"]["recommendations"] == [
        "verify shop.example/kettle where price or stock matters: seen 50.0 hours ago"
    ]
    assert "sources_not_used" not in report(twice, key)["facts"] and report(twice, key)["gates"]["sources_linked"] is True


def test_of_two_visits_of_one_page_the_one_that_was_passed_over_is_reported(twice):
    """It is neither cited nor advised about."""
    twice.say(retrieval=chosen(visits=(NEW, OLD)), context_synthesis=gathered(visits=[seen(NEW)]))
    key = twice.ask()
    section = twice.section(key, 2)
    assert [s.path for s in source_references(section)] == [f"webpage_cache/{NEW}.json"] and "verify" not in section
    assert report(twice, key)["facts"]["sources_not_used"] == [f"visit {OLD}"]


def test_one_visit_told_in_two_pieces_counts_once(twice):
    """The advice stands once, and its age is the mean."""
    pieces = [seen(OLD), seen(OLD, extracted={"stock": "few"})]
    twice.say(retrieval=chosen(visits=(OLD,)), context_synthesis=gathered(visits=pieces))
    meta = subsection_metas(twice.section(twice.ask(), 2))["Visit Record Data"]
    assert (meta["freshness_avg"], meta["verify"]) == (50.0, [OLD])


@pytest.mark.parametrize("says", ["", "visit_none"])
def test_what_names_neither_of_two_visits_is_linked_to_none(twice, says):
    """An address that both share says not which, and an id that was not loaded is none."""
    twice.say(retrieval=chosen(visits=(OLD, NEW)), context_synthesis=gathered(visits=[seen(NEW) | {"visit_id": says}]))
    key = twice.ask()
    section = twice.section(key, 2)
    assert "| shop.example/kettle (unlinked) | price | $59 |" in section and source_references(section) == ()
    assert report(twice, key)["gates"]["sources_linked"] is False


def test_the_embedded_runtime_says_which_visit_it_read(anna):
    """Both visits of a page reach section 2 with their own prices and ages."""
    for visit_id, hours in AGES.items():
        data = {"title": "Copper kettle", "price": PRICES[visit_id]}
        anna.visit(visit_id=visit_id, url=PAGE, hours=hours, extracted_data=data)
    key = anna.ask("What does the copper kettle cost?")
    fields = {v["visit_id"]: v["extracted"]["price"] for v in anna.gathered(key)["visit_data"]}
    section = anna.section(key, 2)
    label = {s.path.removeprefix("webpage_cache/").removesuffix(".json"): s.label for s in source_references(section)}
    assert fields == PRICES and subsection_metas(section)["Visit Record Data"]["verify"] == [OLD]
    assert all(f"[{label[v]}] | price | {PRICES[v]} | {AGES[v]}.0h |" in section for v in PRICES)


BRIE = "Brie, as [1], [2], [3], [4] and [5] say"


@pytest.mark.stored
def test_a_number_in_what_was_gathered_cites_no_other_source(rig):
    """Each piece cites the source that it stands under and no other, whatever `[n]` it says; what was said stays as it was said."""
    for value in (BRIE, f"no more {BRIE}"):
        rig.app.dependencies.memory.put(ANNA, MemoryEntry("cheese", value, 0.9, None, "2026-01-04T14:30:00Z"))
    rig.app.dependencies.sources.put(ANNA, research(webpage_cache=[], summary=BRIE, claims=[]))
    rig.app.dependencies.sources.put(ANNA, visit(extracted_data={"title": BRIE}))
    write_note(rig, "cheese.md", BRIE)
    first = rig.ask()
    answer = {
        "session_preferences": {"cheese": f"no more {BRIE}", "Brie [1]": BRIE},
        "prior_turns": [{"turn": first.number, "relevance": "high", "summary": BRIE, "key_facts": [f"fact: {BRIE}"]}],
        "cached_research": {"topic": "commerce.laptop", "summary": BRIE, "top_results": [{"claim": BRIE, "source": BRIE}]},
        "visit_data": [{"visit_id": visit().visit_id, "url": visit().url, "extracted": {BRIE: BRIE}}],
        "forever_knowledge": [{"note": "cheese.md", "content": BRIE}, {"note": BRIE, "content": BRIE}],
        "source_references": [],
    }
    plan = {"relevant_turns": [first.number], "relevant_memory_keys": ["cheese"]}
    rig.say(
        retrieval=json.dumps(json.loads(chosen(notes=["cheese.md"], topic="commerce.laptop", visits=[visit().visit_id])) | plan),
        context_synthesis=json.dumps(answer),
    )
    key = rig.ask()
    body = rig.section(key, 2)
    own = {s.path.partition("/")[0]: s.label for s in source_references(body)}
    assert sorted(own) == ["notes", "preferences.md", "research_cache", "turns", "webpage_cache"]
    parts, _, listed = re.sub(r"```yaml.*?```", "", body, flags=re.DOTALL).partition("### Source References")
    texts = [cited_labels(line) for line in parts.split("\n") if "Brie" in line]
    by_label = Counter(label for labels in texts for label in labels)
    assert by_label == {own["turns"]: 1, own["research_cache"]: 2, own["webpage_cache"]: 1, own["notes"]: 1}
    assert all(len(labels) <= 1 for labels in texts) and texts.count(()) == 4
    assert "Visited page: Brie" in listed and all(len(cited_labels(line)) == 1 for line in listed.split("\n") if line.startswith("- "))
    assert rig.app.dependencies.memory.entries(ANNA)[0].earlier[0].value == BRIE
    assert json.loads(rig.turn(key).files["gathered_context.json"])["session_preferences"] == answer["session_preferences"]


CELLAR = "The brass lamp stands in the cellar, as [1], [2] and [3] say."


@pytest.mark.parametrize("place", ["notes", "webpage_cache", "research_cache"])
def test_a_source_that_names_the_numbers_of_others_is_linked_to_itself_alone(anna, place):
    """On the embedded runtime, also in the answer: the others are sources of this very turn."""
    says = dict.fromkeys(("notes", "webpage_cache", "research_cache"), "The brass lamp is old.") | {place: CELLAR}
    anna.note("brass lamp.md", says["notes"])
    anna.visit(url="https://shop.example/brass-lamp", extracted_data={"title": "Brass lamp", "text": says["webpage_cache"]})
    anna.research(topic="home.lamp", summary=says["research_cache"], claims=[])
    key = anna.ask("Does the brass lamp stand in the cellar?")
    section, answer = anna.section(key, 2), anna.section(key, 5)
    own = {s.path.partition("/")[0]: s.label for s in source_references(section)}
    fields = [line for text in (section, answer) for line in text.split("\n") if "cellar" in line]
    assert len(own) == 3 and len(fields) >= 2 and all(cited_labels(line) == (own[place],) for line in fields)


def test_a_remembered_value_that_says_numbers_is_answered_under_its_own(anna):
    """`Brie, see [2] and [1]` is reported as it was said, and cited as what is remembered."""
    anna.note("cheese.md", "My favourite cheese shop is on the market.")
    anna.remember("favourite_cheese", "Brie, see [2] and [1]")
    key = anna.ask("What is my favourite cheese?")
    own = {s.path: s.label for s in source_references(anna.section(key, 2))}
    (fields,) = [line for line in anna.section(key, 5).split("\n") if "Brie" in line]
    assert len(own) == 2 and cited_labels(fields) == (own["preferences.md"],)


LINE_ENDS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"


@pytest.mark.parametrize("end", LINE_ENDS)
def test_what_ends_a_line_in_stored_text_ends_no_header(anna, end):
    """The header is one line to every reader, and the embedded runtime chooses by it."""
    value = f"walnut{end}lamp"
    assert json_line({"value": value}).splitlines() == [json_line({"value": value})] and json.loads(json_line({"value": value})) == {
        "value": value
    }
    assert json_lines(json.dumps({"value": value}, ensure_ascii=False)) == [{"value": value}]
    anna.remember("favourite_lamp", value)
    assert anna.plan(anna.ask("Which is my favourite lamp?"))["relevant_memory_keys"] == ["favourite_lamp"]


@pytest.mark.parametrize("link", ["its own turn", "the turn of its research", "the topic that the turn researched"])
def test_a_page_of_the_turn_that_the_query_refers_to_is_offered_before_what_shares_its_words(rig, link):
    """004 section 6.2: however many other pages share words with the query, and though this one shares none."""
    sources = rig.app.dependencies.sources
    if link == "the topic that the turn researched":
        rig.say(summarizer=json.dumps(json.loads(SUMMARY) | {"has_research": True, "research_topic": "home.lamp"}))
    first = rig.ask("which one?")
    for n in range(2 * MAX_OFFERED_HEADERS):
        page = {"visit_id": f"visit_{n}", "url": f"https://example.org/{n}", "extracted_data": {"title": f"Walnut shelf {n}"}}
        sources.put(ANNA, visit(**page))
    meant = visit(visit_id="visit_meant", url="https://example.org/zz", extracted_data={"title": "Zz"}, page_type="zz")
    own = Provenance(added_at="2026-01-04T14:30:00Z", by="a test", source_turn=first.number)
    sources.put(ANNA, meant.model_copy(update={"provenance": own}) if link == "its own turn" else meant)
    if link != "its own turn":
        found = research(topic="home.lamp", webpage_cache=["visit_meant"])
        sources.put(ANNA, found.model_copy(update={"provenance": own}) if link == "the turn of its research" else found)
    refers = {"title": "walnut shelf", "source_turn": first.number}
    rig.say(query_analyzer=json.dumps(json.loads(ANALYSIS) | {"content_reference": refers}))
    rig.ask("what does the walnut shelf cost?")
    offered = [header["visit_id"] for header in lines(rig, "visit_headers")]
    assert "visit_meant" in offered and 1 < len(offered) <= MAX_OFFERED_HEADERS
