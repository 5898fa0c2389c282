"""Role `compressor`: whole lines and sentences, the telling ones first."""

import json

import pytest

from pandora_dagster.contracts.enums import OutputFormat

FILL = "\n".join(f"The wind went over the quiet field again and nobody minded, said voice {w}." for w in "abcdefghijklmnopqrstuvwxyz")
TELLING = ["Order QX7TTA costs $697.00 at https://shop.example/loq", "Error: the card ending in 7447 was denied"]


@pytest.mark.parametrize("name", ["text_to_compress", "tool_result_to_compress", "research_to_compress", "prior_turn_to_compress"])
def test_facts_stay_and_prose_goes(ask, name: str) -> None:
    """Addresses, money, ids and errors are kept whole and in their order; every line kept is a line of the text."""
    text = f"{FILL}\n{TELLING[0]}\n{FILL}\n{TELLING[1]}"
    short = ask("compressor", "", {name: text}, limit=120)
    assert [line for line in short.splitlines() if line in TELLING] == TELLING
    assert set(short.splitlines()) <= set(text.splitlines())


def test_section_0_is_kept_as_it_is(ask) -> None:
    """000 section 23: the query of a context document is never the part that goes."""
    text = f"## 0. User Query\n\nTell me about the calm field please\n\n## 2. Gathered Context\n\n{FILL}"
    assert "Tell me about the calm field please" in ask("compressor", "", {"context_to_compress": text}, limit=60)


def test_a_short_text_is_not_touched(ask) -> None:
    """What fits already is returned byte for byte, and so does compressing twice."""
    assert ask("compressor", "", {"text_to_compress": "a  b\n\n c"}) == "a  b\n\n c"


def test_words_of_the_query_are_kept(ask) -> None:
    """With a query, the sentence that speaks of it is kept."""
    text = f"{FILL}\nThe heron nests in the old willow.\n{FILL}"
    assert "The heron nests in the old willow." in ask("compressor", "where does the heron nest?", {"text_to_compress": text}, limit=40)


def test_a_pages_zones_by_priority(ask) -> None:
    """A page document stays JSON: zones under 0.5 are dropped, navigation goes before prices, no zone is edited."""
    zones = [
        {"type": "navigation", "confidence": 0.9, "text": FILL[:600]},
        {"type": "pricing", "confidence": 0.8, "text": "$697.00"},
        {"type": "reviews", "confidence": 0.3, "text": "nice"},
    ]
    page = json.dumps({"url": "https://shop.example/loq", "zones": zones})
    answer = ask("compressor", "", {"page_doc_to_compress": page}, limit=80, output_format=OutputFormat.JSON)
    assert answer == {"url": "https://shop.example/loq", "zones": [zones[1]]}


def test_a_page_that_is_no_json_becomes_one_zone(ask) -> None:
    """Plain text offered as a page still has an answer of the page's form."""
    answer = ask("compressor", "", {"page_doc_to_compress": f"{FILL}\n{TELLING[0]}"}, limit=160, output_format=OutputFormat.JSON)
    assert [z["type"] for z in answer["zones"]] == ["text"] and TELLING[0] in answer["zones"][0]["text"]
