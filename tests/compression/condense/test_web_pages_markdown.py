"""A web page as Markdown: what it costs first, what leads away from it last."""

import pytest

from pandora_dagster.compression import compress
from pandora_dagster.compression.condense.web_pages import read_markdown_page
from pandora_dagster.compression.read.text_blocks import blocks
from pandora_dagster.contracts.compression_results import CompressionRequest
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.documents.token_counter import TokenCounter

PAGE = """# Aero 3 kettle
Home > EngineRig

## You may also like
Brava 2 kettle $35.00, Calor jug $18.00, Dune teapot $22.00, Elba pan $41.00

## What people say: reviews
Mia: "Boils fast and pours well." 5/5
Tom: "The lid is stiff, and the cord is far too short for our kitchen, so that it now stands on the floor." 2/5

## Price and availability
$49.90 (was $59.90), 12 in stock
Delivery within 3 days.

## Newsletter
Sign up and get 5 % off your next order of teapots.
"""


@pytest.mark.parametrize("target", [70, 90, 120])
def test_the_price_stays_first(counter: TokenCounter, target: int) -> None:
    """000 section 22: pricing before reviews, reviews before what leads away; the order on the page is kept."""
    made = compress(CompressionRequest(PAGE, content_type=ContentType.PAGE_DOC, target=target), counter)
    assert made.text and made.tokens <= target and "$49.90 (was $59.90), 12 in stock" in made.text
    assert "teapots" not in made.text or "on the floor" in made.text
    places = [made.text.find(part) for part in ("# Aero 3 kettle", "reviews", "## Price") if part in made.text]
    assert places == sorted(places)


def test_a_page_without_such_headings_is_prose() -> None:
    """An article has no zones to prefer."""
    assert read_markdown_page("# How tea is made\n\nLeaves.\n\n## Withering\n\nThe leaves dry.") is None
    assert read_markdown_page("No heading at all.") is None


def test_a_rating_stays_with_its_review() -> None:
    """A sentence without a word is none of its own."""
    assert [b.text for b in blocks('Mia: "Boils fast." 5/5')] == ['Mia: "Boils fast." 5/5']
