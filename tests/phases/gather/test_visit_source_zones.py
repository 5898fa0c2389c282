"""A page that is larger than its share of the pack reaches SYNTHESIS by zones (000 sections 22 and 23).

Values and small zones are whole, and the large zone that the query means is compressed to what is left."""

import asyncio
import json
from datetime import UTC, datetime

import pytest

from pandora_dagster.compression.compressor import compress
from pandora_dagster.contracts.compression_results import CompressionInput, CompressionRequest
from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.ports.context_source import SourceQuery
from pandora_dagster.contracts.user.sources import Provenance, Visit
from pandora_dagster.contracts.web.fetched import FetchedPage
from pandora_dagster.documents.visits.visit_record import build_visit
from pandora_dagster.documents.webpages.page_reader import read_page
from pandora_dagster.phases.gather.visit_source import VISIT_TOKENS, VisitSource
from tests.phases.rig import open_light_rig

NOW = datetime(2026, 1, 4, 16, tzinfo=UTC)
PARAGRAPHS = "".join(
    f"<p>In test {n} the fan of the Lenovo LOQ 15 ran for {n + 20} minutes, and the case stayed at {n + 30} degrees in room {n + 100}.</p>"
    for n in range(60)
)
SHOP = f"""<!doctype html><html lang="en"><head><title>Lenovo LOQ 15</title><script type="application/ld+json">
{{"@context": "https://schema.org", "@type": "Product", "name": "Lenovo LOQ 15", "offers": {{"@type": "Offer", "price": "697.00",
"priceCurrency": "USD", "availability": "https://schema.org/InStock"}}}}</script></head><body>
<nav><a href="/a">Home</a> <a href="/b">Cart</a></nav>
<main><h1>Lenovo LOQ 15</h1><p class="price">$697.00</p>{PARAGRAPHS}<p>At full load the fan has 48 dB.</p></main></body></html>"""


@pytest.fixture(scope="module")
def rig():
    made = open_light_rig()
    yield made
    made.app.close()


def visited(html: str) -> Visit:
    address = "https://shop.example/loq-15"
    page = FetchedPage(address, address, 200, {"content-type": "text/html; charset=utf-8"}, html.encode(), NOW)
    return build_visit(page, read_page(page), Provenance(added_at="2026-01-04T16:00:00Z", by="a test"))


def read(rig, visit: Visit, words: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """The data of a page in the pack of a turn, and what was left out."""
    counter = rig.app.dependencies.counter

    async def shorten(content: CompressionInput, target: int) -> str:
        request = CompressionRequest(content.text, content.name, content.content_type, query=content.query, target=target)
        return compress(request, counter).text

    source = next(one for one in rig.app.dependencies.context_sources if isinstance(one, VisitSource))
    query = SourceQuery(user_id("anna"), words, words, (), None, NOW, counter, rig.app.dependencies.scores, shorten)
    passage = asyncio.run(source.read(query, visit, "1", 1))
    assert counter.count(passage.items[0].text) <= VISIT_TOKENS + 20
    return json.loads(passage.items[0].text)["extracted_data"], passage.left_out


@pytest.mark.parametrize("words", ["How loud is the fan of the Lenovo LOQ 15 at full load?", "What does the Lenovo LOQ 15 cost?"])
def test_values_and_small_zones_are_whole_beside_a_large_one(rig, words):
    """The price and whether it is in stock are there whatever is asked; the text keeps what was asked for, with marks of the rest."""
    visit = visited(SHOP)
    small = {name: value for name, value in visit.extracted_data.items() if name != "main_text"}
    assert {"title", "price", "availability", "pricing"} <= small.keys()
    data, left_out = read(rig, visit, words)
    assert {name: data[name] for name in small} == small and left_out == ()
    assert len(data["main_text"]) < len(visit.extracted_data["main_text"]) / 2
    assert "48 dB" in data["main_text"] or "loud" not in words


def test_many_small_zones_leave_room_for_the_large_one(rig):
    """Half of the tokens at most are for small fields; what matches the query least is left out, by name."""
    visit = visited(SHOP)
    notes = {f"note_{n}": f"The {n}th customer wrote on {n} things from the city, and nobody answered." for n in range(40)}
    data, left_out = read(rig, visit.model_copy(update={"extracted_data": {**notes, **visit.extracted_data}}), "How loud is the fan?")
    assert "48 dB" in data["main_text"] and data["title"] == "Lenovo LOQ 15" and left_out
    assert all(name.startswith(f"visit {visit.visit_id}: note_") for name in left_out)


def test_a_zone_that_nobody_vouches_for_never_gets_there(rig):
    """Under confidence 0.5 a zone is in no record, nor are navigation and other parts around the page."""
    data, _ = read(rig, visited(SHOP), "Where is my cart?")
    assert "Cart" not in json.dumps(data)
