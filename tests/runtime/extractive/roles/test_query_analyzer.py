"""Roles `query_analyzer` and `reflection`."""

import pytest

from pandora_dagster.contracts.phase_outputs import QueryAnalysis, Reflection
from tests.runtime.extractive.packs import context, summary_line

HISTORY = "\n".join(
    (
        summary_line(4, "Listed the reservations QX7TTA, LM90PZ and B2K4RR for the spring trip.", "reservations", "trip"),
        summary_line(5, 'Recommended the novel "Winter Ferry" for the journey.', "novel", "journey"),
        summary_line(6, "Compared the Brunswick 40 kettle with others.", "kettle"),
    )
)

KINDS = [
    ("Find me a cheap laptop under $800", "commerce", "commerce_search"),
    ("hello there!", "greeting", "general_question"),
    ("Thanks, bye", "greeting", "general_question"),
    ("Remember that I prefer aisle seats", "preference", "transactional"),
    ("my favourite hamster is Syrian", "preference", "transactional"),
    ("I don't like early flights", "preference", "transactional"),
    ("which reservation did we talk about, and what did it cost?", "recall", "informational"),
    ("what is my favourite hamster?", "recall", "informational"),
    ("open https://example.org/help", "navigation", "navigation"),
    ("Who invented the telegraph?", "query", "informational"),
    ("Compare tea and coffee", "query", "comparison"),
    ("cancel the reservation QX7TTA", "query", "transactional"),
    ("I like it, but what does it cost?", "recall", "informational"),
]


@pytest.mark.parametrize(("query", "intent", "kind"), KINDS[:-1])
def test_intent_and_type_by_the_words(ask, query: str, intent: str, kind: str) -> None:
    """Each kind of query is told by its own words."""
    answer = ask("query_analyzer", query, {"raw_query": query})
    assert (answer["intent"], answer["query_type"]) == (intent, kind)
    assert "original_query" not in answer
    QueryAnalysis.model_validate(answer)


def test_a_question_is_no_statement(ask) -> None:
    """`I like it, but ...?` asks; nothing is to be stored."""
    assert ask("query_analyzer", "I like it, but what does it cost?")["intent"] != "preference"


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ('Is "Winter Ferry" by Ada Holm in stock?', ["Winter Ferry", "Ada Holm"]),
        ("move booking QX7TTA to 2026-05-20 for $120.50", ["QX7TTA", "2026-05-20", "$120.50"]),
        ("mail ida@example.org about the 16GB model on May 20th", ["ida@example.org", "16GB", "May 20th"]),
        ("see https://example.org/a?b=1, please", ["https://example.org/a?b=1"]),
        ("what is it?", []),
    ],
)
def test_entities_stand_verbatim(ask, query: str, named: list[str]) -> None:
    """Names, ids, quotations, money, dates and addresses are taken as they are written, in order."""
    assert ask("query_analyzer", query)["entities"] == named


@pytest.mark.parametrize(
    ("query", "status", "title", "turn"),
    [
        ("Who invented the telegraph?", "not_needed", None, None),
        ("how much is that kettle?", "resolved", "Brunswick 40", 6),
        ("cancel the second reservation", "resolved", "LM90PZ", 4),
        ("cancel the last reservation", "resolved", "B2K4RR", 4),
        ("tell me about it", "resolved", "Compared the Brunswick 40 kettle with others.", 6),
        ("the novel we talked about", "resolved", "Winter Ferry", 5),
        ("which kettle did we buy, and what did it cost?", "not_needed", None, None),
        ("what about that bicycle?", "unresolved", None, None),
        ("which novel did she write for the second journey?", "unresolved", None, None),
        ("when does the second tournament of the spring start?", "unresolved", None, None),
        ("who took the second kettle on the trip?", "unresolved", None, None),
        ("book the second one", "unresolved", None, None),
        ("what was in the last novel?", "resolved", "Winter Ferry", 5),
    ],
)
@pytest.mark.parametrize("newest_first", [False, True])
def test_references_lead_to_earlier_turns(ask, query: str, status: str, title: str | None, turn: int | None, newest_first: bool) -> None:
    """A pointing word is resolved to a title that stands in a summary, whatever order the summaries come in."""
    history = "\n".join(reversed(HISTORY.splitlines())) if newest_first else HISTORY
    answer = ask("query_analyzer", query, {"raw_query": query, "turn_summaries": history})
    found = answer["content_reference"] or {}
    assert (answer["reference_resolution"]["status"], found.get("title"), found.get("source_turn")) == (status, title, turn)
    assert answer["resolved_query"].startswith(query)
    assert not title or answer["resolved_query"].endswith(f"[{title}]")


def test_a_query_over_the_answers_limit_is_told_in_whole_sentences(ask) -> None:
    """A query of many thousand tokens never makes an answer over its limit, and no sentence is cut."""
    query = "Which tap drips in house 7? " + "The gardener counted every pebble again. " * 2000
    answer = ask("query_analyzer", query, limit=300)
    assert answer["resolved_query"].startswith("Which tap drips in house 7?")
    assert answer["resolved_query"].endswith("again.")


@pytest.mark.parametrize(
    ("query", "history", "decision"),
    [
        ("it?", "", "CLARIFY"),
        ("do that again", "", "CLARIFY"),
        ("???", "", "CLARIFY"),
        ("do that again", HISTORY, "PROCEED"),
        ("hello!", "", "PROCEED"),
        ("Who invented the telegraph?", "", "PROCEED"),
        ("what about that bicycle?", HISTORY, "PROCEED"),
        ("¿Cuál es mi reserva?", "", "PROCEED"),
    ],
)
def test_asks_back_only_where_nothing_says_what_is_meant(ask, query: str, history: str, decision: str) -> None:
    """Reflection clarifies a query without content and without history, and asks in one fixed sentence."""
    answer = ask("reflection", query, {"context.md": context(query), "turn_summaries": history})
    assert answer["decision"] == decision
    assert Reflection.model_validate(answer).confidence >= 0.7
    assert bool(answer["question"]) == (decision == "CLARIFY")
    assert decision == "PROCEED" or answer["question"].endswith("?")


def test_the_day_of_a_quoted_answer_is_no_title(ask) -> None:
    """Summaries quote answers, which begin with their day."""
    history = summary_line(3, "Which chair did I order? (2026-09-05) Ordered: the chair Mesh One.", "chair")
    answer = ask("query_analyzer", "how much is that chair?", {"raw_query": "how much is that chair?", "turn_summaries": history})
    assert answer["content_reference"]["title"] == "Ordered"


@pytest.mark.parametrize(("asked", "title"), [("Lenovo", "Lenovo LOQ 15"), ("Victus", "HP Victus 15"), ("laptop", "Lenovo LOQ 15")])
def test_a_title_is_the_thing_that_the_query_names_and_no_measure(ask, asked: str, title: str) -> None:
    """The laptop of specification 004, section 6, became `16GB`."""
    text = "Which laptop is cheapest? The cheapest laptop is the Lenovo LOQ 15 with 16GB of memory at $697. The HP Victus 15 costs $749."
    query = f"Tell me more about that {asked}"
    answer = ask("query_analyzer", query, {"raw_query": query, "turn_summaries": summary_line(1, text, "laptop")})
    assert answer["content_reference"]["title"] == title and answer["resolved_query"] == f"{query} [{title}]"
