"""Role `retrieval`: which sources matter, by their headers."""

import json

import pytest

from pandora_dagster.contracts.phase_outputs import RetrievalPlan
from tests.runtime.extractive.packs import summary_line

TURNS = [
    summary_line(11, "Compared gaming laptops under $1000.", "laptop", "gaming"),
    summary_line(12, "Talked about the weather in Oslo.", "weather", "oslo"),
    summary_line(13, "Chose a charger.", "charger", session="s2"),
    summary_line(20, "Planned a birthday party with cake.", "birthday", "party"),
]
MEMORY = [
    {"key": "budget", "value_preview": "$500-800", "last_updated": "2026-01-01", "kind": "preference"},
    {"key": "favorite_hamster", "value_preview": "Syrian", "last_updated": "2026-01-01", "kind": "preference"},
    {"key": "location", "value_preview": "California", "last_updated": "2026-01-01", "kind": "preference"},
]
NOTES = [
    {"note": "russian_information_warfare_history.md", "title": "Russian information warfare", "tags": ["troll", "farms"]},
    {"note": "budget_gaming_laptops.md", "title": "Budget gaming laptops", "tags": ["laptop"]},
]


def lines(values: list[dict[str, object]]) -> str:
    return "\n".join(json.dumps(v) for v in values)


@pytest.mark.parametrize("turned", [False, True])
def test_turns_by_shared_words_whatever_their_order(ask, turned: bool) -> None:
    """Where the index was not asked, the turn that shares words with the query is chosen, with a reason."""
    offered = "\n".join(TURNS[::-1] if turned else TURNS)
    plan = ask("retrieval", "which laptops for gaming?", {"turn_summaries": offered})
    assert plan["relevant_turns"] == [11]
    assert plan["turn_relevance"]["11"]["relevance"] == "high" and plan["turn_relevance"]["11"]["reason"]
    RetrievalPlan.model_validate(plan)


def test_the_match_of_the_index_decides_where_it_was_asked(ask) -> None:
    """A turn whose summary shares no word with the query is chosen by its match, before a weaker one; one that hardly matches is not."""
    offered = [
        json.loads(summary_line(n, text)) | {"match": match}
        for n, text, match in ((3, "Roses.", 1.0), (4, "Lamps.", 0.4), (5, "Tea.", 0.01))
    ]
    plan = ask("retrieval", "which lamp?", {"turn_summaries": lines(offered)})
    assert plan["relevant_turns"] == [3, 4] and plan["turn_relevance"]["3"]["relevance"] == "high"


def test_the_referred_turn_is_high(ask) -> None:
    """A turn that the analysis names is highly relevant though it shares no word with the query."""
    analysis = json.dumps({"content_reference": {"title": "charger", "source_turn": 13}}, indent=2)
    plan = ask("retrieval", "is it blue?", {"turn_summaries": "\n".join(TURNS), "query_analysis.json": analysis})
    assert plan["relevant_turns"][0] == 13
    assert plan["turn_relevance"]["13"]["relevance"] == "high"


@pytest.mark.parametrize(
    ("query", "keys", "notes"),
    [
        ("Cheap laptops", ["budget", "location"], ["budget_gaming_laptops.md"]),
        ("Russian troll farms", [], ["russian_information_warfare_history.md"]),
        ("Syrian hamsters", ["favorite_hamster"], []),
        ("what is my favorite laptop?", [], ["budget_gaming_laptops.md"]),
        ("what are my preferences?", ["budget", "favorite_hamster", "location"], []),
        ("hello", [], []),
    ],
)
def test_relevance_filter(ask, query: str, keys: list[str], notes: list[str]) -> None:
    """004 section 13.2's table: what does not bear on the query is not loaded."""
    plan = ask("retrieval", query, {"memory_headers": lines(MEMORY), "note_headers": lines(NOTES)})
    assert (plan["relevant_memory_keys"], plan["relevant_notes"]) == (keys, notes)


@pytest.mark.parametrize(
    ("age", "quality", "reuse"),
    [(1.2, 0.88, "full"), (12, 0.88, "partial"), (1, 0.6, "partial"), (90, 0.9, "refresh"), (1, 0.2, "refresh")],
)
def test_cached_research_by_freshness(ask, age: float, quality: float, reuse: str) -> None:
    """A cache that matches the topic is recommended as far as its age and quality allow."""
    headers = lines(
        [
            {"topic": "commerce.laptop", "age_hours": age, "quality_score": quality},
            {"topic": "garden.roses", "age_hours": 1, "quality_score": 1},
        ]
    )
    match = ask("retrieval", "cheap laptops", {"research_headers": headers})["research_cache_match"]
    assert (match["matched"], match["topic"], match["reuse_recommendation"]) == (True, "commerce.laptop", reuse)
    assert match["freshness"] == f"{age} hours"


def test_nothing_found_is_no_error(ask) -> None:
    """Where no source matches, the plan is empty and its confidence still passes the gate."""
    plan = ask("retrieval", "zebra crossings", {"turn_summaries": "\n".join(TURNS), "memory_headers": lines(MEMORY)})
    assert (plan["relevant_turns"], plan["relevant_memory_keys"], plan["research_cache_match"]["matched"]) == ([], [], False)
    assert plan["confidence"] >= 0.7


def test_visits_by_the_words_of_their_address(ask) -> None:
    """A visited page is named where its address speaks of the query's matter."""
    headers = lines(
        [{"visit_id": "v1", "url": "https://www.shop.example/lenovo-loq-15"}, {"visit_id": "v2", "url": "https://roses.example/"}]
    )
    assert ask("retrieval", "specs of the Lenovo", {"visit_headers": headers})["webpage_cache_needed"] == ["v1"]


def test_the_weakest_turns_are_left_out_first(ask) -> None:
    """Sixty matching turns do not make the answer longer than allowed; the best one stays."""
    offered = "\n".join(
        [summary_line(n, f"Talked about laptops, part {n}") for n in range(1, 60)] + [summary_line(99, "gaming laptops chosen")]
    )
    plan = ask("retrieval", "gaming laptops", {"turn_summaries": offered}, limit=300)
    assert plan["relevant_turns"][0] == 99 and 1 < len(plan["relevant_turns"]) < 30


def test_a_look_back_without_matter_takes_the_newest(ask) -> None:
    """`what did we talk about last time?` names no matter: the newest turns are read."""
    assert ask("retrieval", "what did we talk about last time?", {"turn_summaries": "\n".join(TURNS)})["relevant_turns"] == [20, 13, 12]


@pytest.mark.parametrize(("more", "reuse"), [({}, "full"), ({"expired": True}, "refresh"), ({"age_hours": 12}, "partial")])
def test_research_that_is_past_its_time_is_to_be_refreshed(ask, more, reuse) -> None:
    """However young and good it is: its own time is over."""
    header = {"topic": "commerce.camera", "cache_key": "cameras", "age_hours": 1.0, "quality_score": 0.9, **more}
    match = ask("retrieval", "Which camera?", {"research_headers": json.dumps(header)})["research_cache_match"]
    assert (match["topic"], match["reuse_recommendation"]) == ("commerce.camera", reuse)
