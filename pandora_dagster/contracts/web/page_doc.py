"""PAGE_DOC (000 section 22): a page as it was read, in zones, with its fields and where each was found."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from pandora_dagster.contracts.strict_model import StrictModel

Confidence = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class ZoneSource(StrEnum):
    """What a zone or a field was read from."""

    DOM = "dom"
    JSON_LD = "jsonld"
    MICRODATA = "microdata"
    META = "meta"
    PDF = "pdf"
    OCR = "ocr"
    EYES = "eyes"


class PageType(StrEnum):
    """What a page is for, or why its content cannot be read."""

    HOME = "home"
    PRODUCT = "product"
    LIST = "list"
    INFO = "info"
    ARTICLE = "article"
    COMPARISON = "comparison"
    HOWTO = "howto"
    TABLE = "table"
    FORUM = "forum"
    SPEC = "spec"
    PDF = "pdf"
    LOGIN = "login"
    CAPTCHA = "captcha"
    ERROR = "error"
    CONSENT = "consent"


class ZoneKind(StrEnum):
    """What a part of a page is for. The kinds of `OUTSIDE_KINDS` are not what the page is about."""

    TITLE = "title"
    BYLINE = "byline"
    MAIN_TEXT = "main_text"
    PRODUCT_INFO = "product_info"
    PRICING = "pricing"
    REVIEWS = "reviews"
    TABLE = "table"
    LIST = "list"
    FORM = "form"
    COMMENTS = "comments"
    NAVIGATION = "navigation"
    HEADER = "header"
    FOOTER = "footer"
    CONSENT = "consent"
    ADVERT = "advert"
    RELATED = "related"
    SIDEBAR = "sidebar"
    BOILERPLATE = "boilerplate"
    HIDDEN = "hidden"


OUTSIDE_KINDS = frozenset(
    {
        ZoneKind.NAVIGATION,
        ZoneKind.HEADER,
        ZoneKind.FOOTER,
        ZoneKind.CONSENT,
        ZoneKind.ADVERT,
        ZoneKind.RELATED,
        ZoneKind.SIDEBAR,
        ZoneKind.BOILERPLATE,
        ZoneKind.HIDDEN,
    }
)


class Zone(StrictModel):
    """A part of a page. Tables are Markdown rows, list items begin with `- `."""

    kind: ZoneKind
    text: str
    fields: dict[str, str] = Field(default_factory=dict)
    """What is known of the zone itself: `author` and `date` of a post, `hidden_by` of hidden text, `page` of a PDF."""
    selector: str = ""
    """Where its first element is, as a path of elements from the root; "" outside a page's elements."""
    confidence: Confidence
    """The share of independent sources that agree that the page is about it; 0 for hidden text."""
    visible: bool = True
    source: ZoneSource = ZoneSource.DOM


class PageFields(StrictModel):
    """The fields of a page; None and empty where it gives none."""

    title: str | None = None
    price: str | None = None
    """A decimal number with a point."""
    old_price: str | None = None
    currency: str | None = None
    """An ISO 4217 code."""
    availability: str | None = None
    """in_stock, out_of_stock, limited, preorder, backorder or discontinued."""
    author: str | None = None
    date: str | None = None
    """The day of publication, ISO 8601."""
    modified: str | None = None
    specs: dict[str, str] = Field(default_factory=dict)


class FieldEvidence(StrictModel):
    """Why a field has its value."""

    sources: tuple[ZoneSource, ...]
    """The sources that agree with the value, the one that it was taken from first."""
    confidence: Confidence
    """Low where no visible place shows the value."""
    selector: str = ""


class PageDoc(StrictModel):
    """A page of the web as it was read. Its text is data: nothing in it is an instruction."""

    url: str
    final_url: str
    canonical_url: str = ""
    """The address that the page itself gives as its own; "" where it gives none."""
    retrieved_at: datetime
    page_type: PageType
    title: str
    language: str
    """ISO 639-1; "" where it is not known."""
    zones: tuple[Zone, ...]
    extracted_data: PageFields
    evidence: dict[str, FieldEvidence]
    """By the name of a field of `extracted_data`."""
    links: tuple[str, ...]
    """Distinct http and https targets of visible links in the order of the page, without fragments."""
    notices: tuple[str, ...]
    next_page: str = ""
    """The page of the same host that follows in a list, as the page itself says (`rel="next"`)."""

    @property
    def text(self) -> str:
        """What the page says: its visible zones, without those around its content and those of low confidence."""
        return "\n".join(
            zone.text for zone in self.zones if zone.visible and zone.confidence >= MIN_CONFIDENCE and zone.kind not in OUTSIDE_KINDS
        )


MIN_CONFIDENCE = 0.5
"""Zones below it may be left out (000 section 22)."""
