"""What a question is about: names, and nouns that another noun tells apart; which spans speak of another such thing."""

import pytest

from pandora_dagster.runtime.extractive.spans.document_spans import Span
from pandora_dagster.runtime.extractive.spans.question_subject import aboutness, things, undone
from pandora_dagster.runtime.extractive.words.query_intent import question
from pandora_dagster.runtime.extractive.words.word_matching import terms
from tests.runtime.extractive.packs import context, section2, source


def _spans(*lines: str) -> list[Span]:
    return [Span(line, str(place), place, frozenset(terms(line))) for place, line in enumerate(lines)]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("How long does the tomato soup take?", {"tomato soup"}),
        ("What is my limit for hotels?", {"limit for hotels"}),
        ("What does Hotel Belvedere cost?", {"Hotel Belvedere"}),
        ("Is the Nordlys lamp in stock?", {"Nordlys"}),
        ("When is the release deadline?", {"release deadline"}),
        ("Who came to my daughter's party?", {"daughter's party"}),
        ("What happens in March 2026?", set()),
        ("What is the name of my landlord?", set()),
        ("I like tomato soup.", set()),
        ("Wann hat die Bahn in Köln gestreikt?", {"Bahn", "Köln"}),
        ("Wie viel kostete die Wohnung?", {"Wohnung"}),
    ],
)
def test_the_things_of_a_question(text, named):
    """A verb at the end, a month, and a statement name none."""
    assert {t.words for t in things(question(text))} == named


@pytest.mark.parametrize(
    ("text", "lines", "others", "unmet"),
    [
        ("How long does the tomato soup take?", ["The lentil soup needs 40 minutes."], {0}, {"tomato soup"}),
        ("How long does the lentil soup take?", ["The lentil soup needs 40 minutes.", "The onion soup needs 20."], {1}, set()),
        ("What is my limit for hotels?", ["My limit for flights is 400.", "My limit for hotels is 90."], {0}, set()),
        ("What is my limit for hotels?", ["My limit for flights is 400.", "Hotels are full."], {0}, {"limit for hotels"}),
        ("What does Hotel Belvedere cost?", ["Hotel Astoria costs 129 euros."], set(), {"Hotel Belvedere"}),
        ("What does Hotel Astoria cost?", ["Hotel Astoria costs 129 euros.", "Hotel Plaza costs 90 euros."], {1}, set()),
        ("Who came to my daughter's party?", ["Ida came to the party of my daughter."], set(), set()),
        ("What does the Lenovo LOQ 17 cost?", ["Lenovo LOQ 15 @ $697"], set(), {"Lenovo LOQ 17"}),
        ("What does Hotel Belvedere cost?", ["What does Hotel Belvedere cost?", "Hotel Astoria costs 129."], set(), {"Hotel Belvedere"}),
    ],
)
def test_what_speaks_of_another_thing(text, lines, others, unmet):
    """A thing of the same kind with another name is another thing; what was only asked is not told."""
    found = aboutness(question(text), _spans(*lines))
    assert (set(found.others), {t.words for t in found.unmet}) == (others, unmet)


@pytest.mark.parametrize(
    ("line", "is_undone"),
    [("I booked the Astoria.", False), ("The Astoria has a sauna.", True), ("Which hotel did I book?", True), ("I wrote a list.", True)],
)
def test_a_deed_is_told_or_not(line, is_undone):
    """Only a text that says the verb in one of its forms tells the deed."""
    assert undone(question("Which hotel did I book?"), _spans(line)) == is_undone
    assert not undone(question("What did I write?"), _spans("I wrote a list."))


SOUPS = section2((3, "1", "(2025-02-01) The lentil soup needs 40 minutes on low heat.", ""))


def test_what_is_not_told_is_said_and_what_comes_nearest(ask) -> None:
    """An answer on another thing opens by saying so."""
    query = "how long does the tomato soup take?"
    answer = ask("synthesizer", query, {"context.md": context(query, s2=SOUPS)}, sources=[source("1", 3)])
    nearest = "(2025-02-01) The lentil soup needs 40 minutes on low heat. [1]"
    assert answer == f'I found nothing about "tomato soup". What comes nearest:\n{nearest}'


def test_a_deed_that_nothing_tells_is_said_and_nothing_near_it_is_quoted(ask) -> None:
    """`did I order` is not answered with a soup that nobody ordered."""
    query = "Which soup did I order?"
    answer = ask("synthesizer", query, {"context.md": context(query, s2=SOUPS)}, sources=[source("1", 3)])
    assert answer == f'I found nothing that tells this: "{query}" I looked at: [1]'


BUDGETS = """===== PRIOR TURN 3 (2025-02-01) [1] =====
0. User Query: My budget for the trip is 500 euros.

===== PRIOR TURN 4 (2025-02-02) [2] =====
0. User Query: My budget for hotels is 90 euros a night.

===== PRIOR TURN 8 (2025-03-01) [3] =====
0. User Query: Actually, my budget for the trip is 650 euros."""


def test_the_newer_of_two_values_is_current_and_the_older_keeps_its_date(ask) -> None:
    """Both stand in what SYNTHESIS hands on; another thing's value is left alone; the answer tells the current one first."""
    query, sources = "what is my budget for the trip?", [source("1", 3), source("2", 4), source("3", 8)]
    turns = ask("context_synthesis", query, {"prior_turns": BUDGETS}, sources=sources)["prior_turns"]
    told = {line for t in turns for line in (t["summary"], *t["key_facts"])}
    assert "(2025-03-01) Actually, my budget for the trip is 650 euros." in told
    assert "(2025-02-01, no longer current) My budget for the trip is 500 euros." in told
    assert not any("hotels" in line and "no longer" in line for line in told)
    rows = [(t["turn"], str(n), t["summary"], "; ".join(t["key_facts"])) for n, t in zip((3, 1, 2), turns, strict=False)]
    labels = {3: "1", 4: "2", 8: "3"}
    body = section2(*((turn, labels[turn], summary, facts) for turn, _, summary, facts in rows))
    lines = ask("synthesizer", query, {"context.md": context(query, s2=body)}, sources=sources).splitlines()
    assert lines == [
        "- (2025-03-01) Actually, my budget for the trip is 650 euros. [3]",
        "- (2025-02-01, no longer current) My budget for the trip is 500 euros. [1]",
    ]


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        (
            "When does the warranty of the Silento 70 end?",
            'I found nothing about "Silento 70". I looked at: [1]',
        ),
        ("Who gives a warranty?", "I found nothing about this in the documents that I looked at: [1]"),
        ("Which question did I ask about the warranty?", "(2025-02-01) How long is the warranty of the Silento 60? [1]"),
    ],
)
def test_an_earlier_question_comes_near_to_nothing(ask, query, answer) -> None:
    """A person's own question tells nothing, neither as an answer nor as what comes nearest, unless questions are asked for."""
    body = section2((3, "1", "(2025-02-01) How long is the warranty of the Silento 60?", ""))
    assert ask("synthesizer", query, {"context.md": context(query, s2=body)}, sources=[source("1", 3)]) == answer
