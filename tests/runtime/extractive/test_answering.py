"""Role `synthesizer`: verbatim spans with citations, most relevant first."""

import pytest

from pandora_dagster.contracts.calls import Source
from pandora_dagster.text.citations import cited
from tests.runtime.extractive.packs import context, section2, source

LAMPS = section2(
    (
        3,
        "1",
        "Compared lamps for the hall",
        "The Nordlys lamp cost $41; Ida chose the Nordlys lamp on 2025-02-03; The hall is painted green",
    ),
    (8, "2", "Talked about kettles", "The Brunswick kettle whistles; It holds 2 litres"),
)
LISTED = "### Source References\n\n- [3] `turns/turn_000012/context.md` - Trees"
FOUND = f"""### Result 1: doc.search

**Status:** success [3]
**Arguments:** `{{"query": "when did we plant the apple trees?"}}`

[3] Turn 12 (2025-04-01):
0. User Query: We planted the apple trees in October [7].

{LISTED}"""


@pytest.mark.parametrize(
    ("query", "first", "label"),
    [
        ("what did the Nordlys lamp cost?", "The Nordlys lamp cost $41", "1"),
        ("when did Ida choose the lamp?", "Ida chose the Nordlys lamp on 2025-02-03", "1"),
        ("which kettle whistles?", "The Brunswick kettle whistles", "2"),
    ],
)
def test_the_best_span_comes_first_with_its_citation(ask, query: str, first: str, label: str) -> None:
    """What was asked for (money, time, the thing) leads, cited under the turn it comes from."""
    answer = ask("synthesizer", query, {"context.md": context(query, s2=LAMPS)}, sources=[source("1", 3), source("2", 8)])
    assert answer.splitlines()[0].removeprefix("- ") == f"{first} [{label}]"
    assert len(answer.split()) <= 130


def test_a_quoted_turn_is_cited_under_its_own_label(ask) -> None:
    """What doc.search found is cited as [3]; the found text's own [7] and the tool's arguments are not repeated."""
    query = "when did we plant the apple trees?"
    answer = ask(
        "synthesizer", query, {"context.md": context(query, s2=LAMPS, s4=FOUND)}, sources=[source("1", 3), source("2", 8), source("3", 12)]
    )
    assert answer.splitlines()[0].removeprefix("- ") == "We planted the apple trees in October. [3]"
    assert "7" not in cited(answer) and "query" not in answer


@pytest.mark.parametrize("given", [(), (Source("1", "turns/turn_000003/context.md"),)])
def test_nothing_found_is_said(ask, given: tuple[Source, ...]) -> None:
    """Without a relevant span the fixed sentence stands, with the sources that were looked at."""
    body = LAMPS if given else ""
    answer = ask("synthesizer", "zebra crossings?", {"context.md": context("zebra crossings?", s2=body)}, sources=given)
    assert answer.startswith("I found nothing about this in the documents")
    assert bool(cited(answer)) == bool(given)


def test_greeting(ask) -> None:
    """A greeting gets the fixed greeting."""
    assert ask("synthesizer", "hello!", {"context.md": context("hello!")}) == "Hello! What would you like to know?"


@pytest.mark.parametrize(("status", "opening"), [("success [1]", "I have stored this:"), ("error", "I could not store this:")])
def test_a_stored_preference_is_confirmed_in_the_persons_words(ask, status: str, opening: str) -> None:
    """The confirmation quotes what was stored and cites where; a failure is told as one."""
    query = "remember that I prefer aisle seats"
    listed = "### Source References\n\n- [1] `preferences.md` - Memory"
    stored = f"### Result 1: memory.create\n\n**Status:** {status}\n**Arguments:** `{{}}`\n\ntext\n\n{listed}"
    answer = ask("synthesizer", query, {"context.md": context(query, s4=stored)}, sources=[Source("1", "preferences.md")])
    assert answer == f'{opening} "I prefer aisle seats" [1]'


def test_json_becomes_bound_fields(ask) -> None:
    """A tool's JSON is told as `key: value` with the id and the money of one thing on one line."""
    raw = '[{"order_id": "A17", "item": "lamp", "price": 41.50}, {"order_id": "B20", "item": "kettle", "price": 30}]'
    body = f"### Result 1: orders.find\n\n**Status:** success [3]\n**Arguments:** `{{}}`\n\n{raw}\n\n{LISTED}"
    answer = ask("synthesizer", "what did the lamp cost?", {"context.md": context("q", s4=body)}, sources=[source("3", 12)])
    assert answer.splitlines()[0].removeprefix("- ") == "order_id: A17, item: lamp, price: 41.50 [3]"


def test_code_stays_whole_in_code_mode(ask) -> None:
    """A fenced block is quoted byte for byte, its citation beneath it."""
    block = "```python\ndef parse_price(text):\n    return float(text[1:])\n```"
    body = f"### Result 1: doc.search\n\n**Status:** success [3]\n**Arguments:** `{{}}`\n\n[3] Turn 12 (2025-04-01):\n{block}\n\n{LISTED}"
    answer = ask("synthesizer", "show parse_price", {"context.md": context("q", s4=body)}, sources=[source("3", 12)], mode="code")
    assert answer == f"{block}\n[3]"


def test_marks_that_lead_nowhere_are_not_quoted(ask) -> None:
    """A span that holds `[9]` of an unknown source is left out: it would be a citation that does not resolve."""
    rows = section2((3, "1", "Lamps", "The lamp list[9] is long; The lamp is red"))
    answer = ask("synthesizer", "which lamp?", {"context.md": context("which lamp?", s2=rows)}, sources=[source("1", 3)])
    assert cited(answer) == ("1",)


def test_raw_results_only_as_far_as_validation_can_confirm(ask) -> None:
    """A number that stands in toolresults.md alone is not said; what the sections bear out is."""
    found = "The tower weighs 93 tons and stands in Oslo.\n\nThe tower stands in Oslo."
    documents = {"context.md": context("where does the tower stand?", s4=f"The tower is tall.\n\n{LISTED}"), "toolresults.md": found}
    answer = ask("synthesizer", "where does the tower stand?", documents, sources=[source("3", 12)])
    assert "93" not in answer and "The tower stands in Oslo. [3]" in answer


def test_fewer_spans_where_little_may_be_written(ask) -> None:
    """A small limit gives fewer spans, each whole."""
    answer = ask(
        "synthesizer", "what did the Nordlys lamp cost?", {"context.md": context("q", s2=LAMPS)}, sources=[source("1", 3)], limit=14
    )
    assert answer == "The Nordlys lamp cost $41 [1]"
