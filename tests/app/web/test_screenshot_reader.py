"""What becomes of a page whose text is in a picture: a model of the layer EYES reads it, or a notice says why none does."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pandora_dagster.app import App, open_app
from pandora_dagster.app.composition import open_counter, utc_now
from pandora_dagster.app.web.screenshot_reader import open_screenshot_reader
from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.images import fitting_width, picture_tokens
from pandora_dagster.contracts.model_calls import CallSite, ModelAnswer, PromptPack, Usage
from pandora_dagster.contracts.web.page_doc import PageDoc, ZoneSource
from pandora_dagster.documents.webpages.page_reader import read_page
from pandora_dagster.runtime.extractive.extractive_runtime import ExtractiveRuntime
from pandora_dagster.settings import load_settings
from tests.documents.webpages.pages import fetched
from tests.fakes.pictures import png

READ = {
    "blocks": [{"kind": "title", "text": "Arc\u200b lamp"}, {"kind": "pricing", "text": "Now \u00a324.00"}, {"kind": "list", "text": " "}]
}


@dataclass
class SeeingServer(ExtractiveRuntime):
    """Answers a pack with a picture as a model that reads it."""

    answer: object = None
    context: int = 8192
    packs: list[PromptPack] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(open_counter(), utc_now)

    @property
    def name(self) -> str:
        return "seeing"

    def context_limit(self, layer: ModelLayer) -> int | None:
        return self.context

    def picture_fault(self, layer: ModelLayer) -> str:
        return ""

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: Callable[[str], None] | None = None) -> ModelAnswer:
        self.packs.append(pack)
        return ModelAnswer(json.dumps(self.answer), "stop", Usage(prompt=1, output=1), self.name, "eyes", 1.0)


@dataclass(frozen=True)
class Reading:
    """The reader of an application, as commands call it."""

    app: App

    @property
    def picture_tokens(self) -> int:
        return open_screenshot_reader(self.app).picture_tokens

    def read(self, page_doc: PageDoc, screenshot: bytes) -> PageDoc:
        return self.app.run(open_screenshot_reader(self.app).read(page_doc, screenshot, CallSite("visit", user_id("ann")))).page


ReaderOf = Callable[[SeeingServer | None], Reading]


@pytest.fixture
def reader_of(tmp_path: Path) -> Iterator[ReaderOf]:
    opened: list[App] = []

    def build(server: SeeingServer | None) -> Reading:
        opened.append(open_app(load_settings({"PANDORA_ROOT": str(tmp_path / "store")}), runtime=server))
        return Reading(opened[-1])

    yield build
    for app in opened:
        app.close()


def picture_page() -> PageDoc:
    return read_page(fetched("<body><img src=/lamp.png></body>"))


def test_what_the_picture_says_is_in_zones_and_fields_of_one_source(reader_of: ReaderOf) -> None:
    server = SeeingServer(READ)
    page_doc = reader_of(server).read(picture_page(), png(280, 140))
    assert [(zone.kind, zone.text, zone.source) for zone in page_doc.zones] == [
        ("title", "Arc lamp", ZoneSource.EYES),
        ("pricing", "Now £24.00", ZoneSource.EYES),
    ]
    fields = page_doc.extracted_data
    assert (page_doc.title, fields.title, fields.price, fields.currency) == ("Arc lamp", "Arc lamp", "24.00", "GBP")
    assert {evidence.confidence for evidence in page_doc.evidence.values()} == {0.4}
    (pack,) = server.packs
    assert (pack.layer, pack.images[0].tokens, pack.images[0].data) == (ModelLayer.EYES, 10 * 5, png(280, 140))
    assert pack.query == page_doc.final_url


def test_a_value_of_the_pages_text_stays(reader_of: ReaderOf) -> None:
    own = picture_page()
    own = own.model_copy(update={"extracted_data": own.extracted_data.model_copy(update={"price": "30.00", "currency": "EUR"})})
    fields = reader_of(SeeingServer(READ)).read(own, png(28, 28)).extracted_data
    assert (fields.price, fields.currency) == ("30.00", "EUR")


@pytest.mark.parametrize("answer", [{"blocks": []}, {"blocks": [{"kind": "hidden", "text": "x"}]}, "no JSON"])
def test_an_answer_that_is_none_is_a_notice(answer: object, reader_of: ReaderOf) -> None:
    page_doc = reader_of(SeeingServer(answer)).read(picture_page(), png(28, 28))
    assert page_doc.zones == ()
    assert "its picture" in page_doc.notices[-1]


def test_a_picture_fits_the_recipe_and_the_served_model(reader_of: ReaderOf) -> None:
    assert reader_of(SeeingServer(READ)).picture_tokens == 1300
    assert reader_of(SeeingServer(READ, context=3000)).picture_tokens == 300
    assert reader_of(SeeingServer(READ, context=512)).picture_tokens == 0
    width = fitting_width(1024, 640, 300)
    assert picture_tokens(width, 640 * width // 1024) <= 300 < picture_tokens(width + 28, 640 * (width + 28) // 1024)
    assert (fitting_width(1024, 640, 5000), fitting_width(1024, 640, 0)) == (1024, 0)


def test_the_embedded_runtime_says_that_it_reads_no_picture(reader_of: ReaderOf) -> None:
    reader = reader_of(None)
    page_doc = reader.read(picture_page(), png(28, 28))
    assert reader.picture_tokens == 0
    assert page_doc.notices[-1].startswith("its picture was not read: the embedded runtime reads no pictures")
