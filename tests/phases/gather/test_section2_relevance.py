"""The relevance rule of 004 section 13.2 and visit reuse of section 6.1, on the embedded runtime over real stores."""

import pytest

from pandora_dagster.contracts.ids import SessionId, user_id
from pandora_dagster.contracts.user.user_memory import NotableFact
from pandora_dagster.documents.citations import cited_labels, source_references
from pandora_dagster.documents.meta import subsection_metas

RUSSIAN = "# Russian information warfare\n\nRussian troll farms were run from St. Petersburg by the Internet Research Agency."
GAMING = "---\ntags: [laptop]\n---\nA budget gaming laptop with an RTX 4060 costs about $799."


@pytest.fixture
def stocked(anna):
    """Everything of 004's table, beside other things on the same shelves."""
    anna.remember("favorite_hamster", "Syrian")
    anna.remember("budget", "$500-800")
    anna.note("Knowledge/Research/russian_information_warfare_history.md", RUSSIAN)
    anna.note("Knowledge/Products/rtx_4060_budget_gaming_laptops.md", GAMING)
    anna.research()
    anna.visit()
    return anna


RUSSIAN_NOTE = "Knowledge/Research/russian_information_warfare_history.md"
GAMING_NOTE = "Knowledge/Products/rtx_4060_budget_gaming_laptops.md"
TABLE = {
    "Russian troll farms": ({RUSSIAN_NOTE}, set(), False, False),
    "Syrian hamsters": (set(), {"favorite_hamster"}, False, False),
    "Cheap laptops": ({GAMING_NOTE}, {"budget"}, True, False),
    "What were the specs of the Lenovo LOQ 15?": (set(), set(), None, True),
    "How do I water orchids?": (set(), set(), False, False),
}
"""Query -> notes, preferences, cached research, visits: 004's three rows, one where the page is meant, one where nothing is.
None: either is right (the research speaks of that laptop too)."""


@pytest.mark.parametrize("query", TABLE)
def test_only_what_bears_on_the_query_enters_section_2(stocked, query):
    """What does not bear on it is omitted entirely: no heading, no source (004 section 13.2)."""
    notes, keys, research, visits = TABLE[query]
    key = stocked.ask(query)
    found, section = stocked.gathered(key), stocked.section(key, 2)
    assert {k["note"] for k in found["forever_knowledge"]} == notes and set(found["session_preferences"]) == keys
    assert research is None or bool(found["cached_research"]) == research
    assert bool(found["visit_data"]) == visits
    assert ("### Forever Memory Knowledge" in section) == bool(notes) and ("### Session Preferences" in section) == bool(keys)
    assert ("### Visit Record Data" in section) == visits
    paths = {s.path for s in source_references(section)}
    assert {p.removeprefix("notes/") for p in paths if p.startswith("notes/")} == notes and ("preferences.md" in paths) == bool(keys)


def test_what_is_gathered_is_verbatim_and_cited(stocked):
    """The answer's sentence stands in the note, under the note's label."""
    key = stocked.ask("Who ran the Russian troll farms?")
    answer, known = stocked.section(key, 5), {s.label: s.path for s in source_references(stocked.section(key, 2))}
    assert "Russian troll farms were run from St. Petersburg by the Internet Research Agency." in answer
    assert f"notes/{RUSSIAN_NOTE}" in {known[label] for label in cited_labels(answer)}
    assert stocked.app.answer_of(key).citations[0]["path"].endswith(RUSSIAN_NOTE)


def test_section_2_reads_back_as_the_planner_reads_it(stocked):
    """004 section 5.3: quality_score and age_hours in Cached Research, gaps and context quality in the assessment."""
    key = stocked.ask("Cheap laptops")
    blocks = subsection_metas(stocked.section(key, 2))
    cached = blocks["Cached Research Intelligence"]
    assert (cached["topic"], cached["quality_score"], cached["age_hours"], cached["expires_hours"]) == ("commerce.laptop", 0.88, 1.0, 5.0)
    assert (cached["freshness_score"], cached["source_count"], "stale" in cached) == (0.83, 2, False)
    planned = next(p.report for p in stocked.app.turns.load(key).manifest.phases if p.phase == "task_plan")["facts"]
    assert (planned["quality_score"], planned["age_hours"]) == (0.88, 1.0) and planned["context_quality"] == 0.5
    assert blocks["Context Assessment"]["gaps_identified"] == ["nothing about: Cheap"]


def test_expired_research_is_marked_with_a_recommendation(anna):
    """004 section 10: stale, and the advice to refresh; the turn goes on."""
    anna.research(hours=10)
    section = anna.section(anna.ask("Cheap laptops"), 2)
    blocks = subsection_metas(section)
    cached, assessment = blocks["Cached Research Intelligence"], blocks["Context Assessment"]
    assert (cached["stale"], cached["recommendation"], cached["freshness_score"]) == (True, "refresh", 0.0)
    assert assessment["recommendations"] == ["refresh the research on commerce.laptop"] and "**Expired:** 4.0 hours ago" in section


@pytest.fixture
def shopping(anna):
    """A turn that looked at a laptop, and a page it visited."""
    first = anna.ask("Which Lenovo laptop with an RTX 4050 should I buy?")
    specs = {"gpu": "NVIDIA RTX 4050", "ram": "16GB DDR5"}
    data = {"title": "Lenovo LOQ 15 Gaming Laptop", "price": "$697.00", "specs": specs, "availability": "In Stock"}
    anna.visit(turn=first.number, hours=8, extracted_data=data)
    anna.visit(visit_id="visit_rose", url="https://roses.example/red", extracted_data={"title": "Red roses", "height": "90 cm"})
    return anna


REUSE = {
    "Tell me more about that Lenovo": True,
    "Is it still in stock?": True,
    "Find me a different laptop": False,
    "Compare the specs": True,
}
"""004 section 6.1. The page calls itself a laptop, as in section 3.6: only that something different is wanted keeps it out."""


@pytest.mark.parametrize("query", REUSE)
def test_visit_records_are_reused_where_the_user_refers_to_them(shopping, query):
    """Each row of 004 section 6.1; a page on another matter never comes along."""
    key = shopping.ask(query)
    assert shopping.plan(key)["webpage_cache_needed"] == (["visit_abc123"] if REUSE[query] else [])
    section = shopping.section(key, 2)
    assert ("bestbuy.com/site/lenovo-loq-15" in section) == REUSE[query] and "roses" not in section


def test_a_cached_page_is_to_be_verified_where_it_is_old(shopping):
    """`Yes, then verify`: the stock stands there with its age, and the advice to look again."""
    blocks = subsection_metas(shopping.section(shopping.ask("Is it still in stock?"), 2))
    assert blocks["Visit Record Data"]["freshness_avg"] == 8.0 and blocks["Visit Record Data"]["verify"] == ["visit_abc123"]
    assert blocks["Context Assessment"]["recommendations"][0].startswith("verify bestbuy.com/site/lenovo-loq-15")


def test_two_preferences_with_one_key_keep_both_dates(anna):
    """The newer one is current; the older one stands beside it."""
    anna.remember("budget", "$500-800", at="2026-01-04T14:30:00Z")
    anna.remember("budget", "$900", at="2026-02-01T10:00:00Z")
    section = anna.section(anna.ask("Cheap laptops"), 2)
    assert "| budget | $900 (current, since 2026-02-01) |" in section and "| budget (earlier) | $500-800 (2026-01-04) |" in section


def test_a_note_is_found_by_its_body_alone(stocked):
    """Neither its name nor its title says a word of the question; a note that shares one word of two stays out."""
    stocked.note("House.md", "# House\n\n## Heating\n\nThe boiler is a Viessmann; its service is due in May.")
    stocked.note("War.md", "# War\n\nRussia fought in the Syrian war.")
    key = stocked.ask("When is the service of the boiler due?")
    assert [k["note"] for k in stocked.gathered(key)["forever_knowledge"]] == ["House.md"] and "May" in stocked.section(key, 5)
    assert not stocked.gathered(stocked.ask("Syrian hamsters"))["forever_knowledge"]


def _notes(anna) -> None:
    anna.note("Home/furniture.md", "# Furniture\n\nThe dining table is made of walnut wood.")
    anna.note("Food/places.md", "# Places to eat\n\nLuigi keeps us a table by the window on Fridays.")


def _research(anna) -> None:
    claim = {"claim": "Hotel Alfama in Lisbon costs 90 EUR a night", "confidence": 0.9, "source": "https://stay.example/lisbon"}
    anna.research(topic="travel.lisbon", cache_key="hotel_lisbon", claims=[claim], summary="Hotels in Lisbon")
    other = {"claim": "Hotel Ribeira in Porto costs 80 EUR a night", "confidence": 0.9, "source": "https://stay.example/porto"}
    anna.research(topic="travel.porto", cache_key="hotel_porto", claims=[other], summary="Hotels in Porto")


def _visits(anna) -> None:
    anna.visit(visit_id="visit_kettle", url="https://shop.example/kettle", extracted_data={"title": "Copper kettle", "price": "$59"})
    anna.visit(visit_id="visit_pan", url="https://shop.example/pan", extracted_data={"title": "Copper pan", "price": "$89"})


def _memory(anna) -> None:
    anna.remember("favorite_tea", "jasmine")
    anna.remember("favorite_airline", "TAP")


def _facts(anna) -> None:
    anna.remember("shoe_size", "43 in Italian sizes", kind="fact")
    anna.remember("own_bicycle", "a red Gazelle", kind="fact")


def _session(anna) -> None:
    """Facts alone: the turn in which they were stated says none of them any more."""
    first = anna.ask("Hello!")
    for id, fact in (("f1", "My dentist is Dr Weiss."), ("f2", "My landlord is Mr Braun.")):
        stated = NotableFact(id=id, category="People", fact=fact, turn=first.number, stated_at="2026-01-04T14:30:00Z")
        changed = lambda ledger, fact=stated: (ledger.model_copy(update={"facts": (*ledger.facts, fact)}), ())  # noqa: E731
        anna.app.dependencies.facts.change_session(user_id("anna"), SessionId("s1"), changed)


def _turns(anna) -> None:
    anna.ask("The orchids got water on Sunday.", session="plants")
    anna.ask("The tomatoes got compost in spring.", session="garden")


ROWS = {
    "notes": (_notes, "What wood is the dining table made of?", "walnut", "Luigi"),
    "research": (_research, "What does a hotel in Lisbon cost?", "Alfama", "Ribeira"),
    "visits": (_visits, "What was the price of the copper kettle?", "$59", "$89"),
    "preferences": (_memory, "What is my favorite tea?", "jasmine", "TAP"),
    "facts": (_facts, "What size of shoe do I own?", "43 in Italian", "Gazelle"),
    "session memory": (_session, "Who is my dentist?", "Dr Weiss", "Braun"),
    "prior turns": (_turns, "When was it that the orchids got water?", "Sunday", "compost"),
}
"""Source -> what fills it, a query, words of what bears on it, words of a near miss that shares a word with the query."""


@pytest.mark.parametrize("source", ROWS)
def test_of_each_source_what_bears_enters_and_a_near_miss_stays_out(anna, source):
    """A row of one's own for every source of 004 section 13.2's table."""
    fill, query, bears, misses = ROWS[source]
    fill(anna)
    key = anna.ask(query)
    section = anna.section(key, 2)
    assert bears in section and misses not in section


SECTIONS = {
    "notes": ("forever_memory", "Forever Memory Knowledge"),
    "research": ("cached_intelligence", "Cached Research Intelligence"),
    "visits": ("visit_records", "Visit Record Data"),
    "preferences": ("stored_preferences", "Session Preferences"),
    "facts": ("stored_preferences", "Session Preferences"),
    "session memory": ("session_memory", "Relevant Prior Turns"),
    "prior turns": ("prior_turns", "Relevant Prior Turns"),
}
"""Source -> the document that carries it to SYNTHESIS, and where it stands in section 2."""


@pytest.mark.parametrize("source", ROWS)
def test_each_row_speaks_of_its_own_source(anna, source):
    """What bears comes from that document alone, and stands under its heading; where nothing bears, there is no heading."""
    fill, query, bears, _ = ROWS[source]
    fill(anna)
    document, heading = SECTIONS[source]
    section = anna.section(anna.ask(query), 2)
    pack = next(p for p in anna.runtime.packs[::-1] if p.role == "context_synthesis")
    carrying = {part.name for part in pack.parts if part.kind == "document" and bears in part.text}
    assert carrying - {"query_analysis.json"} == {document}
    assert bears in section.split(f"### {heading}", 1)[1].split("### ", 1)[0]
    assert f"### {heading}" not in anna.section(anna.ask("Why do volcanoes erupt?", session="elsewhere"), 2)
