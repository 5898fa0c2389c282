"""When a page that was visited is used again (004 section 6.1), and which one is meant (6.2), on the embedded runtime."""

import json
from dataclasses import replace

import pytest

BODY = {"title": "Fujifilm X-T30 camera", "price": "$899", "specs": {"sensor": "26 megapixels"}, "stock": "3 left"}
OTHER = {"title": "Nikon Z50 camera", "price": "$799", "specs": {"sensor": "20 megapixels"}, "stock": "sold out"}
GARDEN = {"title": "Red roses", "height": "90 cm"}


@pytest.fixture
def shopping(anna):
    """A turn in which two cameras were looked at, and a page on another matter, of an earlier turn."""
    garden = anna.ask("Which roses grow in the shade?")
    anna.visit(visit_id="visit_rose", url="https://garden.example/red-roses", extracted_data=GARDEN, turn=garden.number)
    seen = anna.ask("Which camera should I buy for hiking?")
    anna.visit(visit_id="visit_fuji", url="https://shop.example/cameras/x-t30", extracted_data=BODY, turn=seen.number)
    anna.visit(visit_id="visit_nikon", url="https://shop.example/cameras/z50", extracted_data=OTHER, turn=seen.number)
    return anna


BOTH, FUJI, NONE = {"visit_fuji", "visit_nikon"}, {"visit_fuji"}, set()
ROWS = {
    "Tell me more about that Fujifilm": FUJI,
    "What else do you know about that Fujifilm?": FUJI,
    "Is it still in stock?": BOTH,
    "Are they still in stock?": BOTH,
    "Find me a different camera": NONE,
    "Show me other cameras": NONE,
    "Search for cheaper cameras": NONE,
    "Find cheaper cameras": NONE,
    "Look for a camera with a viewfinder": NONE,
    "Recommend some lighter cameras": NONE,
    "Is there another camera?": NONE,
    "Do you have anything cheaper than the camera at $799?": NONE,
    "Compare the specs": BOTH,
    "How do the specifications compare?": BOTH,
    "How do the prices compare?": BOTH,
    "Compare the cameras": BOTH,
    "How do the railways of France and Spain compare?": NONE,
    "Show me the price of the Fujifilm camera": FUJI,
    "Find the price of the Fujifilm": FUJI,
    "What is the sensor of the Nikon Z50?": {"visit_nikon"},
}
"""Query -> the pages that are loaded."""


def test_a_page_is_used_again_where_it_is_meant_and_not_for_a_new_search(shopping):
    """Every row of 004 section 6.1, in several words; what it asks for shares words with pages that must stay out."""
    runtime, (offered,) = shopping.runtime, [p for p in asked(shopping, "Which camera weighs less?") if p.role == "retrieval"]
    for query, wanted in ROWS.items():
        parts = tuple(replace(p, text=query) if p.kind == "query" else p for p in offered.parts if p.name != "query_analysis.json")
        answer = shopping.app.run(runtime.complete(replace(offered, parts=parts), timeout_s=60))
        assert (query, set(json.loads(answer.text)["webpage_cache_needed"])) == (query, wanted)


@pytest.mark.parametrize("query", ["How do the specifications compare?", "Show me other cameras"])
def test_the_pack_holds_the_pages_that_are_used_again_and_no_others(shopping, query):
    """What SYNTHESIS reads, after the whole of the phases before it."""
    (pack,) = [p for p in asked(shopping, query) if p.role == "context_synthesis"]
    assert all((f'"{visit}"' in pack.document("visit_records")) == (visit in ROWS[query]) for visit in (*BOTH, "visit_rose"))


def asked(shopping, query):
    """The packs of one turn."""
    before = len(shopping.runtime.packs)
    shopping.ask(query)
    return shopping.runtime.packs[before:]
