"""Role `context_synthesis`: facts of the chosen documents, verbatim and bound."""

import json

import pytest

from pandora_dagster.contracts.model_calls import Source
from pandora_dagster.contracts.phase_outputs import GatheredContext
from tests.runtime.extractive.packs import source

BOOKING = json.dumps(
    {
        "booking_id": "QX7TTA",
        "guest": "ida_holm_12",
        "town": "Bergen",
        "nights": [{"room_number": "R12", "date": "2025-03-02", "price": 140}, {"room_number": "R14", "date": "2025-03-03", "price": 155}],
        "payments": [{"payment_id": "card_991", "amount": 295}],
        "breakfast": "no",
    }
)
PRIOR = f"""===== PRIOR TURN 7 (2025-03-01) [1] =====
0. User Query: Please book the rooms in Bergen.

4. Tool Execution: Result 1: book_rooms
Arguments: {{"town": "Bergen"}}

Result:
```
{BOOKING}
```

5. Synthesis: Your booking QX7TTA is done [2]. The ferry leaves at 7 am. Enjoy your stay!

===== PRIOR TURN 9 (2025-03-05) [2] =====
0. User Query: The cat sat on the mat.

5. Synthesis: It did indeed.
"""
SOURCES = [source("1", 7), source("2", 9), Source("3", "preferences.md", "Stored user preferences")]


def test_facts_are_bound_to_their_subject(ask) -> None:
    """Prices and amounts stand with the id, room and payment that they belong to; unrelated turns are left out."""
    found = GatheredContext.model_validate(
        ask("context_synthesis", "which booking did we talk about, and what did it cost?", {"prior_turns": PRIOR}, sources=SOURCES)
    )
    facts = [found.prior_turns[0].summary, *found.prior_turns[0].key_facts]
    record = next(f for f in facts if "QX7TTA" in f and "R12" in f)
    for bound in ("R12 2025-03-02 140", "R14 2025-03-03 155", "card_991 295"):
        assert bound in record
    assert [t.turn for t in found.prior_turns] == [7]
    assert found.source_references == ("[1] turns/turn_000007/context.md",)


def test_citations_of_an_earlier_turn_are_not_ours(ask) -> None:
    """`[2]` inside a quoted turn led to that turn's sources: it is not repeated as if it were a source of this one."""
    answer = ask("context_synthesis", "is my booking QX7TTA done?", {"prior_turns": PRIOR}, sources=SOURCES)
    assert "Your booking QX7TTA is done." in json.dumps(answer)
    assert "[2]" not in json.dumps(answer["prior_turns"])


def test_a_time_question_keeps_the_turns_date(ask) -> None:
    """Asked when, a fact carries the date of the turn in which it was said."""
    answer = ask("context_synthesis", "when does the ferry leave?", {"prior_turns": PRIOR}, sources=SOURCES)
    assert answer["prior_turns"][0]["summary"] == "(2025-03-01) The ferry leaves at 7 am."


@pytest.mark.parametrize(
    ("query", "kept"),
    [("Cheap laptops", {"budget": "$500-800"}), ("Syrian hamsters", {"favorite_hamster": "Syrian"}), ("Russian troll farms", {})],
)
def test_preferences_only_where_they_bear(ask, query: str, kept: dict[str, str]) -> None:
    """004 section 13.2: a preference that has nothing to do with the query does not enter section 2."""
    stored = (
        "===== STORED USER PREFERENCES =====\n- budget: $500-800 (confidence 0.90, turn 808)\n"
        "- favorite_hamster: Syrian (confidence 0.80, turn 3)"
    )
    answer = ask("context_synthesis", query, {"stored_preferences": stored}, sources=SOURCES)
    assert answer["session_preferences"] == kept
    assert answer["source_references"] == (["[3] preferences.md"] if kept else [])


def test_forever_memory_and_research_only_where_they_bear(ask) -> None:
    """A note and a research cache on the matter are taken over with their own sentences; on another query both are omitted."""
    documents = {
        "forever_memory": "===== FOREVER MEMORY (Persistent Knowledge) =====\n===== NOTE Knowledge/troll_farms.md [4] =====\n"
        "# Origins\nTroll farms in Russia began in 2013.\n\n"
        "===== NOTE roses.md [5] =====\nRoses need sun.",
        "cached_intelligence": "===== CACHED INTELLIGENCE (Phase 1) =====\n"
        + json.dumps(
            {
                "topic": "politics.troll_farms",
                "quality_score": 0.8,
                "age_hours": 2,
                "summary": "Three farms found",
                "claims": [{"claim": "One in Omsk"}],
            }
        ),
    }
    answer = ask("context_synthesis", "Russian troll farms", documents)
    assert answer["forever_knowledge"] == [{"note": "Knowledge/troll_farms.md", "content": "Troll farms in Russia began in 2013."}]
    assert answer["cached_research"]["top_results"] == [{"claim": "One in Omsk"}]
    other = ask("context_synthesis", "chess openings", documents)
    assert (other["forever_knowledge"], other["cached_research"]) == ([], None)


def test_visit_records_on_one_level(ask) -> None:
    """A page record's fields are taken over with their values unchanged."""
    record = json.dumps(
        {"visit_id": "v1", "url": "https://shop.example/loq", "extracted_data": {"price": "$697.00", "specs": {"ram": "16GB"}}}
    )
    answer = ask("context_synthesis", "price of the loq?", {"visit_records": record})
    assert answer["visit_data"] == [{"visit_id": "v1", "url": "https://shop.example/loq", "extracted": {"price": "$697.00", "ram": "16GB"}}]


def test_the_weakest_facts_are_left_out_first(ask) -> None:
    """Hundreds of matching sentences fit the answer's limit, each of them whole."""
    said = "\n\n".join(f"The jam jar number {n} stands on shelf {n * 3}." for n in range(300))
    answer = ask(
        "context_synthesis",
        "where is jam jar number 77?",
        {"prior_turns": f"===== PRIOR TURN 7 (2025-03-01) [1] =====\n{said}"},
        sources=SOURCES,
        limit=400,
    )
    turn = answer["prior_turns"][0]
    assert turn["summary"] == "(2025-03-01) The jam jar number 77 stands on shelf 231."
    assert all(f.startswith("(2025-03-01) The jam jar number") and f.endswith(".") for f in turn["key_facts"])


def test_a_summary_speaks_where_no_turn_itself_does(ask):
    """The words of a turn are quoted before those of a summary; the summary's mark is no part of its date."""
    summary = "===== PRIOR TURN 3 (2025-02-01, summary) [1] =====\nThe person asked when the ferry leaves; it leaves at 7 am."
    whole = "===== PRIOR TURN 7 (2025-03-01) [2] =====\nThe ferry leaves at 8 am."
    both = ask("context_synthesis", "when does the ferry leave?", {"prior_turns": f"{whole}\n\n{summary}"}, sources=SOURCES)
    alone = ask("context_synthesis", "when does the ferry leave?", {"prior_turns": summary}, sources=SOURCES)
    assert [t["turn"] for t in both["prior_turns"]] == [7] and [t["turn"] for t in alone["prior_turns"]] == [3]
    assert alone["prior_turns"][0]["summary"].startswith("(2025-02-01) ")


def test_a_value_over_the_room_leaves_it_to_the_others(ask) -> None:
    """Whole things by priority: the first page has no room and is passed over, what stands behind it goes in whole."""
    pages = [("https://a.example/one", "kettle " * 4_000), ("https://a.example/two", "The copper kettle costs $59.")]
    records = [{"label": str(at), "url": url, "extracted_data": {"title": text}} for at, (url, text) in enumerate(pages, 1)]
    documents = {
        "visit_records": "\n".join(map(json.dumps, records)),
        "stored_preferences": "===== STORED USER PREFERENCES =====\n- favorite_kettle: copper (confidence 0.90, turn 808)",
        "prior_turns": "===== PRIOR TURN 7 (2025-03-01) [3] =====\n0. User Query: The copper kettle is for Ida.",
    }
    sources = [Source("1", "webpage_cache/visit_one.json", "one"), Source("2", "webpage_cache/visit_two.json", "two"), source("3", 7)]
    found = GatheredContext.model_validate(ask("context_synthesis", "What about the copper kettle?", documents, sources=sources))
    assert [(v.url, v.extracted) for v in found.visit_data] == [(pages[1][0], {"title": pages[1][1]})]
    assert found.session_preferences == {"favorite_kettle": "copper"}
    assert [t.summary for t in found.prior_turns] == ["(2025-03-01) The copper kettle is for Ida."]
