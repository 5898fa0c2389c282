"""Role `synthesizer`: verbatim spans with citations, most relevant first."""

import json

import pytest

from pandora_dagster.contracts.model_calls import Source
from pandora_dagster.documents.citations import cited_labels
from tests.runtime.extractive.packs import bundle, context, section2, source

LAMPS = section2(
    (
        3,
        "1",
        "The Nordlys lamp cost $41",
        "Ida chose the Nordlys lamp on 2025-02-03; The hall is painted green",
    ),
    (8, "2", "The Brunswick kettle whistles", "It holds 2 litres"),
)
LISTED = "### Source References\n\n- [3] `turns/turn_000012/context.md` - Trees"
FOUND = f"""### Result 1: doc.search

**Status:** success [3]
**Arguments:** `{{"query": "when did we plant the apple trees?"}}`

[3] Turn 12 (2025-04-01):
0. User Query: We planted the apple trees in October [7].

{LISTED}"""


def test_section_2_is_told_in_its_order_each_with_its_citation(ask) -> None:
    """Section 2 holds the best passage first; each is cited under the turn it comes from, and no text is cut."""
    query = "what did the Nordlys lamp cost?"
    answer = ask("synthesizer", query, {"context.md": context(query, s2=LAMPS)}, sources=[source("1", 3), source("2", 8)])
    first, second, *rest = answer.splitlines()
    assert (first, second) == ("- The Nordlys lamp cost $41 [1]", "- Ida chose the Nordlys lamp on 2025-02-03 [1]")
    assert rest[-1] == "- It holds 2 litres [2]" and len(answer.split()) <= 130


def test_a_quoted_turn_is_cited_under_its_own_label(ask) -> None:
    """What doc.search found is cited as [3]; the found text's own [7] and the tool's arguments are not repeated."""
    query = "when did we plant the apple trees?"
    answer = ask(
        "synthesizer", query, {"context.md": context(query, s2=LAMPS, s4=FOUND)}, sources=[source("1", 3), source("2", 8), source("3", 12)]
    )
    assert answer.splitlines()[0].removeprefix("- ") == "(2025-04-01) We planted the apple trees in October. [3]"
    assert "7" not in cited_labels(answer) and "query" not in answer


@pytest.mark.parametrize("given", [(), (Source("1", "turns/turn_000003/context.md"),)])
@pytest.mark.parametrize(
    ("query", "said"),
    [("zebra crossings?", "I found nothing about this."), ("Wo steht der Zebrastreifen?", "Ich habe dazu nichts gefunden.")],
)
def test_nothing_found_is_said_in_the_language_of_the_question(ask, given: tuple[Source, ...], query: str, said: str) -> None:
    """Where no passage holds a word of the question, one fixed sentence is the answer; it claims and cites nothing."""
    assert ask("synthesizer", query, {"context.md": context(query, s2=LAMPS if given else "")}, sources=given) == said


@pytest.mark.parametrize("given", [(), (source("1", 3),)])
def test_greeting(ask, given: tuple[Source, ...]) -> None:
    """A greeting gets the fixed greeting; it claims nothing and cites nothing."""
    assert ask("synthesizer", "hello!", {"context.md": context("hello!", s2=LAMPS)}, sources=given) == "Hello! What would you like to know?"


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
    assert cited_labels(answer) == ("1",)


ASKED = {"query": "where does the tower stand?"}
STATUS = "### Result 1: doc.search\n\n**Status:** success [3]\n**Arguments:** `{}`\n\nThe tower is tall.\n\n" + LISTED


def test_raw_results_only_as_far_as_validation_can_confirm(ask) -> None:
    """A number that stands in toolresults.md alone is not said; what the sections bear out is, under its own turn."""
    text = "The tower weighs 93 tons and stands in Oslo.\n\nThe tower stands in Oslo."
    raw = json.dumps([{"turn_id": "turn_000012", "score": 1.0, "text": text, "left_out": []}], indent=1)
    documents = {"context.md": context(ASKED["query"], s4=STATUS), "toolresults.md": bundle(("doc.search", ASKED, raw))}
    answer = ask("synthesizer", ASKED["query"], documents, sources=[source("3", 12)])
    assert "93" not in answer and "The tower stands in Oslo. [3]" in answer


FRAMED = (
    '4. Tool Execution: Result 1: claims.open\nArguments: {"tower": "stands"}\n'
    'Result:\n```\n{"place": "tower hill"}\n```\n\n5. Synthesis: It stands by the fjord tower.'
)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (
            json.dumps([{"turn_id": "turn_000012", "score": 1.0, "text": FRAMED, "left_out": []}], indent=1),
            "It stands by the fjord tower. [3]",
        ),
        (json.dumps([{"turn_id": "turn_000077", "score": 1.0, "text": "The tower stands in Rome.", "left_out": []}]), ""),
        (json.dumps([{"key": "tower", "value": "stands in Oslo", "kind": "fact"}]), "tower: stands in Oslo [3]"),
        ("# The tower stands\n\nPlain words: the tower stands in Bergen.", "the tower stands in Bergen. [3]"),
        ("[]", ""),
        (json.dumps({"error": "the tower stands nowhere"}), "the tower stands nowhere [3]"),
    ],
)
def test_a_tools_raw_result_is_read_and_not_what_it_was_asked(ask, raw: str, said: str) -> None:
    """Of toolresults.md the results are told, each under the source it came from; arguments, headings and fences never."""
    documents = {"context.md": context(ASKED["query"], s4=STATUS), "toolresults.md": bundle(("doc.search", ASKED, raw))}
    answer = ask("synthesizer", ASKED["query"], documents, sources=[source("3", 12)])
    assert said in answer and "Rome" not in answer
    assert not any(sign in answer for sign in ("query:", "where does", "Arguments", "Result", "```", "score", "turn_0", "# "))


@pytest.mark.parametrize("raw", ["[]", json.dumps({"error": "no"})])
def test_a_question_is_never_its_own_answer(ask, raw: str) -> None:
    """A search that found nothing leaves its arguments behind."""
    query = "what is the capital of France?"
    status = f"### Result 1: doc.search\n\n**Status:** success\n**Arguments:** `{json.dumps({'query': query})}`\n\nNothing was found."
    documents = {"context.md": context(query, s4=status), "toolresults.md": bundle(("doc.search", {"query": query}, raw))}
    assert ask("synthesizer", query, documents) == "I found nothing about this."


def test_what_failed_is_no_evidence(ask) -> None:
    """The raw error of a failed call is not told as a find."""
    status = "### Result 1: doc.search\n\n**Status:** error\n**Arguments:** `{}`\n\n**Error:** broken\n\n" + LISTED
    documents = {"context.md": context("the tower?", s4=status), "toolresults.md": bundle(("doc.search", ASKED, '{"tower": "fell over"}'))}
    assert "fell over" not in ask("synthesizer", "where did the tower stand?", documents, sources=[source("3", 12)])


def test_fewer_spans_where_little_may_be_written(ask) -> None:
    """A small limit gives fewer spans, each whole."""
    answer = ask(
        "synthesizer", "what did the Nordlys lamp cost?", {"context.md": context("q", s2=LAMPS)}, sources=[source("1", 3)], limit=14
    )
    assert answer == "The Nordlys lamp cost $41 [1]"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Actually, my limit is now 1100 euros instead of 900.", "Noted: Actually, my limit is now 1100 euros instead of 900."),
        ("Thanks a lot! My budget is 900 euros.", "Noted: My budget is 900 euros."),
        ("Thank you, that helps.", "You are welcome."),
    ],
)
def test_what_asks_nothing_is_acknowledged(ask, query: str, expected: str) -> None:
    """The fixed words and the person's own: nothing is claimed of a document, so none is looked up."""
    assert ask("synthesizer", query, {"context.md": context(query, s2="")}) == expected


@pytest.mark.parametrize(
    "query", ["Thank you, that helps. What does the lamp cost?", "I need a lamp under 300 euros.", "My limit is 50. Find the lamp."]
)
def test_what_asks_for_anything_is_answered(ask, query: str) -> None:
    """Thanks or a statement beside a question or request is not all there is to say."""
    answer = ask("synthesizer", query, {"context.md": context(query, s2=LAMPS)}, sources=[source("1", 3), source("2", 8)])
    assert "Nordlys lamp cost $41 [1]" in answer and "Noted" not in answer
