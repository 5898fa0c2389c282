"""How documents are taken apart."""

import json

import pytest

from pandora_dagster.runtime.extractive.spans.citation_labels import Labels
from pandora_dagster.runtime.extractive.spans.document_spans import SpanReader
from pandora_dagster.runtime.extractive.spans.structured_records import decode, records, tell
from pandora_dagster.runtime.extractive.words.query_intent import question
from pandora_dagster.runtime.extractive.words.word_matching import stem, terms, words
from tests.runtime.extractive.packs import source

LABELS = Labels([source("1", 3), source("2", 8)])
TEXTS = [
    ("One thing. Another one!", [("One thing.", None), ("Another one!", None)]),
    ("One thing [1]. Another [2].", [("One thing.", "1"), ("Another.", "2")]),
    ("Said in turn_000008: it rained.", [("Said in turn_000008: it rained.", "2")]),
    ("1. **Flight A**\n   - Price: $12\n   - Seats: 3\n2. Flight B", [("**Flight A** Price: $12 Seats: 3", None), ("Flight B", None)]),
    (
        "| Turn | Relevance | Summary | Key Facts |\n|---|---|---|---|\n| 8 [2] | high | Sum | a \\| b; c |",
        [("Sum", "2"), ("a | b", "2"), ("c", "2")],
    ),
    ("| Preference | Value | Source |\n|---|---|---|\n| budget | $5 | Turn 3 |", [("budget: $5", "1")]),
    ("| Product | Price |\n|---|---|\n| Lamp | $5 |", [("Product: Lamp, Price: $5", None)]),
    ("### Source References\n\n- [1] `x` - y\n\n### More\n\nText", [("Text", None)]),
    ("```yaml\n_meta:\n  type: x\n```\n\nText", [("Text", None)]),
    ("```\nplain code\n```", [("```\nplain code\n```", None)]),
    ("Result:\n```\nError: no seats. Try later.\n```", [("Error: no seats.", None), ("Try later.", None)]),
    ("Result:\n```\n| Name | Note |\n|---|---|\n| Ann | tall\u2028fair |\n```", [("Name: Ann, Note: tall\u2028fair", None)]),
    ("| URL | Data Point | Value |\n|---|---|---|\n| a.example/b [2] | price | $5 |", [("price: $5", "2")]),
    ('Found: {"a": 1.50, "b": null} and more text', [("a: 1.50, b: null", None), ("and more text", None)]),
    ('**Arguments:** `{"query": "x"}`\ntext', [("text", None)]),
    ("{ not json", [("{ not json", None)]),
    ("", []),
]


@pytest.mark.parametrize(("text", "spans"), TEXTS)
def test_pieces_and_their_labels(text: str, spans: list[tuple[str, str | None]]) -> None:
    """Each form of text gives its whole pieces, verbatim, under the label that it names."""
    assert [(s.text, s.label) for s in SpanReader(LABELS, None).read(text)] == spans


def test_a_deeply_nested_value_is_read_as_text() -> None:
    """JSON nested deeper than the parser goes is no crash."""
    assert decode("[" * 100_000, 0) is None
    assert len(SpanReader(LABELS, None).read("[[" * 2_000)) == 1


def test_records_tell_what_was_asked() -> None:
    """Of a large record the naming, describing and answering fields are told, bound to the object that holds them."""
    value = {
        "order_id": "A1",
        **{f"field_{i}": i for i in range(20)},
        "lines": [{"sku": "S1", "line_id": "L1", "price": 3}, {"sku": "S2", "line_id": "L2", "price": 4}],
    }
    decoded = decode(json.dumps(value), 0)
    assert decoded
    line = tell(next(records(decoded[0])), question("what did it cost?"))
    assert line.startswith("order_id: A1, field_0: 0")
    assert "lines (line_id: L1, price: 3), lines (line_id: L2, price: 4)" in line
    assert "field_19" not in line


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("reservation", "reservations"),
        ("booked", "booking"),
        ("running", "runs"),
        ("payment", "payments"),
        ("cities", "city"),
        ("cheapest", "cheap"),
    ],
)
def test_forms_of_a_word_share_a_stem(one: str, other: str) -> None:
    """Plurals, participles and degrees meet."""
    assert stem(one) == stem(other)


@pytest.mark.parametrize("word", ["hat136", "4050", "q7", "bus", "is"])
def test_ids_and_short_words_stay_whole(word: str) -> None:
    """What has a digit or is short is no word to be stemmed."""
    assert stem(word) == word


def test_words_keep_numbers_and_drop_tails() -> None:
    """`$1,250.50` is one number, `Ida's` is Ida, stop words are no terms."""
    assert words("Ida's room: $1,250.50") == ["ida", "room", "1,250.50"]
    assert terms("the room of Ida") == ("room", "ida")
