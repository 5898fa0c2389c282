"""Reads the screenshot of a page whose text is in a picture, by the recipe of the layer EYES: zones and fields with the source `eyes`.

What the model transcribes is data like any other text of a page. One source says it, so that its confidence is low, and a field is taken
from the transcribed text by the same code as from a page's own.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from pandora_dagster.app.application import App
from pandora_dagster.app.servers.served_models import served_endpoints
from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.images import ImagePart, picture_tokens
from pandora_dagster.contracts.model_calls import CallRequest, CallSite
from pandora_dagster.contracts.web.page_doc import MIN_CONFIDENCE, FieldEvidence, PageDoc, Zone, ZoneKind, ZoneSource
from pandora_dagster.errors import HaltError
from pandora_dagster.language.detection import language_of

RECIPE = "browser/screenshot_reader"
_QUERY_TOKENS = 200
"""Left of the recipe's input budget for the address of the page and the frames."""
_FIELD_CONFIDENCE = 0.4
"""Of a value that one source gives and no text of the page confirms."""


@dataclass(frozen=True, slots=True)
class ScreenshotReader:
    """The recipe's caller for one user. `fault`: why no picture can be read, else ""."""

    app: App
    user: UserId
    fault: str = ""

    @property
    def picture_tokens(self) -> int:
        """What a picture may cost: the recipe's input budget within what the layer's model reads, 0 where no picture can be read."""
        if self.fault:
            return 0
        budget = self.app.recipes.load(RECIPE).recipe.token_budget
        served = self.app.runtime.context_limit(ModelLayer.EYES) or budget.total
        return max(0, min(budget.input, served - budget.prompt - budget.output) - _QUERY_TOKENS)

    def read(self, page_doc: PageDoc, screenshot: bytes) -> PageDoc:
        """The page with what its picture says; unchanged but for a notice where it cannot be read."""
        if self.fault:
            return with_notice(page_doc, f"its picture was not read: {self.fault}")
        width, height = struct.unpack(">II", screenshot[16:24])  # the first chunk of a PNG file
        image = ImagePart("screenshot.png", "image/png", picture_tokens(width, height), screenshot)
        request = CallRequest(RECIPE, page_doc.final_url, CallSite(phase="visit", user=self.user), images=(image,))
        try:
            result = self.app.run(self.app.dependencies.execution.call(request))
        except HaltError as error:
            return with_notice(page_doc, f"its picture was not read: {error}")
        blocks = [(ZoneKind(block["kind"]), text) for block in result.parsed["blocks"] if (text := _line(block["text"]))]
        return _with_blocks(page_doc, blocks)


def open_screenshot_reader(app: App, user: UserId) -> ScreenshotReader:
    """The reader over the application's runtime, or one that says why it reads none."""
    served = served_endpoints(app.runtime)
    if served is None:
        return ScreenshotReader(app, user, EMBEDDED_FAULT if app.runtime.name == "extractive" else f"{app.runtime.name} reads no pictures")
    server = served[ModelLayer.EYES].server
    if not (server.images and server.chat):
        return ScreenshotReader(app, user, f"{served.source}: the server of the layer EYES has no `images: true`")
    return ScreenshotReader(app, user)


EMBEDDED_FAULT = "the embedded runtime reads no pictures: configure the layer EYES with a model that does"


def with_notice(page_doc: PageDoc, notice: str) -> PageDoc:
    """The page with one more notice."""
    return page_doc.model_copy(update={"notices": (*page_doc.notices, notice)})


def _line(text: str) -> str:
    """A transcribed text without letters that no font shows."""
    from pandora_dagster.documents.webpages.elements.visibility import seen_letters

    return " ".join(seen_letters(text)[0].split())


def _with_blocks(page_doc: PageDoc, blocks: Sequence[tuple[ZoneKind, str]]) -> PageDoc:
    from pandora_dagster.documents.webpages.fields.prices import amounts

    if not blocks:
        return with_notice(page_doc, "its picture has no text that could be read")
    language = page_doc.language or language_of("\n".join(text for _, text in blocks))
    zones = tuple(Zone(kind=kind, text=text, confidence=MIN_CONFIDENCE, source=ZoneSource.EYES) for kind, text in blocks)
    found = {"title": next((text for kind, text in blocks if kind is ZoneKind.TITLE), "")}
    price = next((amount for kind, text in blocks if kind is ZoneKind.PRICING for amount in amounts(text, language)), None)
    if price and page_doc.extracted_data.price is None:
        found |= {"price": price.value, "currency": price.currency}
    new = {name: value for name, value in found.items() if value and getattr(page_doc.extracted_data, name) is None}
    evidence = FieldEvidence(sources=(ZoneSource.EYES,), confidence=_FIELD_CONFIDENCE)
    return page_doc.model_copy(
        update={
            "title": page_doc.title or found["title"],
            "language": language,
            "zones": (*page_doc.zones, *zones),
            "extracted_data": page_doc.extracted_data.model_copy(update=new),
            "evidence": {**page_doc.evidence, **dict.fromkeys(new, evidence)},
            "notices": (*page_doc.notices, "a model read the picture of the page: compare it with the screenshot"),
        }
    )
