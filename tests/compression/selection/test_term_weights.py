"""The rows of records that a talk is about come first."""

import json
from dataclasses import replace

from pandora_dagster.compression.salience.text_reading import read_text
from pandora_dagster.compression.selection.term_weights import is_assistant, is_tool, mandatory_terms, mentions, weighted_terms

_PARTS = [{"part": f"P-{n}01", "order": order, "price": 10.5 + n} for order in ("K-771", "K-882") for n in range(4)]
_TALK = "\n".join(
    [
        "user: What is in my orders?",
        "assistant: list_parts(order=K-771)",
        f"tool list_parts: {json.dumps(_PARTS)}",
        "assistant: The first order is K-771.",
        *("user: Thank you." for _ in range(8)),
        "user: And what is in K-882?",
    ]
)


def test_each_different_row_of_a_mentioned_code_counts() -> None:
    reading = read_text(_TALK)
    first = mandatory_terms(reading)
    rows = {term: weight for term, weight in first.items() if " in " in term[1] and term[1].startswith("k-882")}
    assert len(rows) == 4
    assert len(set(rows.values())) == 1
    held = [terms for terms in weighted_terms(reading) if rows.keys() & terms.keys()]
    assert len(held) == 4


def test_the_newest_mention_weighs_most() -> None:
    said = mentions(read_text(_TALK))
    assert said["k-882"] > 2 * said["k-771"] > 0


def test_equal_rows_are_one() -> None:
    twice = _TALK.replace("user: And", f"tool list_parts: {json.dumps(_PARTS)}\nuser: And")
    first = mandatory_terms(read_text(twice))
    assert sum(" in " in term[1] and term[1].startswith("k-882") for term in first) == 4


def test_a_row_with_a_name_that_a_user_says_is_asked_for() -> None:
    """A name that only the assistant says asks for no row."""
    guests = json.dumps([{"room": 4, "guest": "Daiki Mori"}, {"room": 7, "guest": "Mia Kovac"}])
    talk = f"user: Book it.\nassistant: list_guests()\ntool list_guests: {guests}\nassistant: For Mia Kovac?\nuser: It is for Daiki Mori."
    rows = {term[1].partition(" in ")[0] for term in mandatory_terms(read_text(talk)) if " in " in term[1]}
    assert rows == {"daiki", "mori"}


def test_a_bare_result_comes_after_a_result_with_words() -> None:
    """`833.0` says nothing without the call before it; both results are as new."""
    talk = "user: Add it up.\nassistant: {call}\ntool {call}: {result}\nuser: Thank you."
    bare = mandatory_terms(read_text(talk.format(call="calculate", result="833.0")))
    worded = mandatory_terms(read_text(talk.format(call="calculate", result="The sum with tax is 833.0 today.")))
    weights = [next(weight for term, weight in first.items() if term[1].startswith("833")) for first in (bare, worded)]
    assert 0 < weights[0] < weights[1] / 2


def test_a_name_that_begins_as_a_role_is_a_person() -> None:
    unit = read_text("The key is K-771.").units[0]
    said = {name: replace(unit, speaker=name) for name in ("Aidan", "Toolan", "Agent 2", "tool get_key")}
    assert [name for name, u in said.items() if is_assistant(u)] == ["Agent 2"]
    assert [name for name, u in said.items() if is_tool(u)] == ["tool get_key"]
