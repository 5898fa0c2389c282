"""Reads the screenshot of a page whose text is in a picture, by the recipe of the layer EYES: zones and fields with the source `eyes`.

What the model transcribes is data like any other text of a page. One source says it, so that its confidence is low, and a field is taken
from the transcribed text by the same code as from a page's own.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from pandora_dagster.app.application import App
from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.images import ImagePart, picture_tokens
from pandora_dagster.contracts.model_calls import CallRequest, CallSite
from pandora_dagster.contracts.ports.model_runtime import ModelRuntime
from pandora_dagster.contracts.ports.recipe_execution import RecipeCatalog, RecipeExecutor
from pandora_dagster.contracts.web.page_doc import MIN_CONFIDENCE, FieldEvidence, PageDoc, Zone, ZoneKind, ZoneSource
from pandora_dagster.errors import HaltError
from pandora_dagster.language.detection import language_of
from pandora_dagster.research.run_ports import VisitedPage

RECIPE = "browser/screenshot_reader"
_QUERY_TOKENS = 200
"""Left of the recipe's input budget for the address of the page and the frames."""
_FIELD_CONFIDENCE = 0.4
"""Of a value that one source gives and no text of the page confirms."""


@dataclass(frozen=True, slots=True)
class ScreenshotReader:
    """The recipe's caller: of commands, and of the research of turns."""

    execution: RecipeExecutor
    recipes: RecipeCatalog
    runtime: ModelRuntime

    @property
    def fault(self) -> str:
        """Why no picture can be read, else ""."""
        return self.runtime.picture_fault(ModelLayer.EYES)

    @property
    def picture_tokens(self) -> int:
        """What a picture may cost: the recipe's input budget within what the layer's model reads, 0 where no picture can be read."""
        if self.fault:
            return 0
        budget = self.recipes.load(RECIPE).recipe.token_budget
        served = self.runtime.context_limit(ModelLayer.EYES) or budget.total
        return max(0, min(budget.input, served - budget.prompt - budget.output) - _QUERY_TOKENS)

    async def read(self, page_doc: PageDoc, screenshot: bytes, site: CallSite) -> VisitedPage:
        """The page with what its picture says; unchanged but for a notice where it cannot be read."""
        if self.fault:
            return _unread(page_doc, self.fault)
        width, height = struct.unpack(">II", screenshot[16:24])  # the first chunk of a PNG file
        image = ImagePart("screenshot.png", "image/png", picture_tokens(width, height), screenshot)
        try:
            result = await self.execution.call(CallRequest(RECIPE, page_doc.final_url, site, images=(image,)))
        except HaltError as error:
            return _unread(page_doc, str(error), calls=1)
        blocks = [(ZoneKind(block["kind"]), text) for block in result.parsed["blocks"] if (text := _line(block["text"]))]
        return VisitedPage(_with_blocks(page_doc, blocks), calls=1)


def open_screenshot_reader(app: App) -> ScreenshotReader:
    """The reader over the application's runtime."""
    return ScreenshotReader(app.dependencies.execution, app.dependencies.recipes, app.runtime)


def unread_notice(fault: str) -> str:
    """The notice of a page whose picture says what its text does not, and was not read."""
    return f"its picture was not read: {fault}"


def _unread(page_doc: PageDoc, fault: str, *, calls: int = 0) -> VisitedPage:
    notice = unread_notice(fault)
    return VisitedPage(with_notice(page_doc, notice), calls, notice)


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
