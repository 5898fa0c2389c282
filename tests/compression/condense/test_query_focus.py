"""Text around a question, and the spans it stands in."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.compression.compressor import compress
from pandora_dagster.compression.condense.budget_selection import best_spans
from pandora_dagster.compression.condense.query_focus import condense_for
from pandora_dagster.contracts.compression_results import CompressionRequest
from pandora_dagster.documents.token_counter import TokenCounter


def test_the_stretch_that_answers_is_kept_whole(counter: TokenCounter) -> None:
    """Neighbours of the words that were asked for come along, verbatim."""
    topics = ("garden fence and roses", "battery of the remote control", "holiday in the mountains")
    lines = [f"Speaker {n % 3}: remark {n} about the {topics[n // 20]} today." for n in range(60)]
    out = condense_for("\n".join(lines), 220, counter, "What did they say about the battery?")
    kept = [line for line in out.split("\n") if line]
    assert set(kept) <= set(lines)
    assert sum("battery" in line for line in kept) >= len(kept) - 1


@given(st.lists(st.tuples(st.floats(0, 9), st.integers(1, 30)), max_size=60), st.integers(0, 300))
@settings(max_examples=60, deadline=None)
def test_spans_never_cost_more_than_the_budget(units: list[tuple[float, int]], budget: int) -> None:
    """Whatever the scores, the chosen units fit."""
    scores, costs = [s for s, _ in units], [c for _, c in units]
    assert sum(costs[i] for i in best_spans(scores, costs, budget, 3.0)) <= budget


@pytest.mark.parametrize("edge", [0, 1])
def test_of_two_stretches_alike_the_one_off_the_edges_is_kept(counter: TokenCounter, edge: int) -> None:
    """Greetings and goodbyes name many things: where the first lines say as much as the middle, the middle counts."""
    lines = [f"Remark {n} was about the garden fence and the roses today." for n in range(401)]
    lines[edge] = "Ann spoke of the battery of the old remote control."
    lines[200] = "Ben spoke of the battery of the old remote control."
    assert condense_for("\n".join(lines), 14, counter, "what about the battery?") == lines[200]


def test_a_short_text_is_read_sentence_by_sentence(counter: TokenCounter) -> None:
    """The answer at the very beginning of a long line is found, and what is left out is called missing, not dropped."""
    claim = "The bridge is safe for 40 tonnes. A later inspection found 12 tonnes only. Nobody signed it."
    text = "\n".join((claim, *(f"Pillar {n} was painted in {1950 + n} by crew {n}." for n in range(50))))
    made = compress(CompressionRequest(text, query="How many tonnes is the bridge safe for?", target=40), counter)
    assert made.text
    assert "12 tonnes" in made.text
    assert made.counts["dropped_by_rule"] == 0
    assert made.counts["missing"] > 50


def test_a_small_word_can_set_the_answer_off(counter: TokenCounter) -> None:
    """Where every line names what is asked about, the verb of the question decides."""
    talk = [f"User: What about option {n}?\nAssistant: Option {n} costs {300 + 5 * n} euros." for n in range(30)]
    out = condense_for("\n".join((*talk, "User: OK, take option 7 please.")), 60, counter, "Which option did the user take?")
    assert "take option 7" in out


def test_a_table_keeps_its_head_and_counts_what_it_left_out(counter: TokenCounter) -> None:
    """A row stands under the names of its columns."""
    rows = [f"| Town{n} | {n} EUR |" for n in range(60)]
    out = condense_for("\n".join(("| city | price |", "|---|---|", *rows)), 60, counter, "What is the price in Town33?").split("\n")
    assert out[:2] == ["| city | price |", "|---|---|"]
    assert rows[33] in out
    assert out[-1] == f"({60 - sum(row in out for row in rows)} more rows left out)"


def test_rows_that_match_the_question_come_first(counter: TokenCounter) -> None:
    """All delayed flights stand before any other."""
    flights = [{"flight": f"HAT{100 + n}", "status": "delayed" if n % 10 == 0 else "available", "price": 120 + n} for n in range(50)]
    made = compress(CompressionRequest(json.dumps(flights), query="Which flights are delayed?", target=80), counter)
    assert made.text
    assert [n for n in range(50) if f"HAT{100 + n}|delayed" in made.text] == [0, 10, 20, 30, 40]


STAMPED = "\n".join(
    f"**{name}** [09:{n:02}]: {text}"
    for n, (name, text) in enumerate(
        [
            ("Mara Vogt (agent)", "Hello, what can I do? You reach the night shift."),
            ("Timo Rau", "My line is dead. The modem blinks red since Tuesday."),
            ("Mara Vogt (agent)", "I see a fault. A new modem costs 45 euros. It ships today."),
            ("Timo Rau", "That is dear. I pay 20 euros at most."),
            ("Mara Vogt (agent)", "Then 20 euros. The modem arrives on Friday."),
            ("Timo Rau", "Good. Please ring twice. The bell is weak."),
        ]
    )
)


@pytest.mark.parametrize("target", [40, 70, 100, 140])
def test_every_passage_of_stamped_talk_has_its_own_speaker(target: int, counter: TokenCounter) -> None:
    out = condense_for(STAMPED, target, counter, "What does the modem cost?")
    whole = {line.partition("]: ")[2]: line.partition("]: ")[0] for line in STAMPED.split("\n")}
    for line in filter(None, out.split("\n")):
        name, _, text = line.partition("]: ")
        source = next(said for said in whole if text.split(". ")[0].rstrip(".") in said)
        assert name == whole[source], line
    assert "euros" in out


def test_a_line_that_goes_on_stands_behind_its_speaker(counter: TokenCounter) -> None:
    talk = "Ann: I went to the market.\nThe cheese there costs 9 euros.\nBen: I was at home.\nIt rained.\nAnn: Poor you.\nBen: Well.\n" * 2
    out = condense_for(talk, 20, counter, "What does the cheese cost?")
    assert "Ann: The cheese there costs 9 euros." in out
