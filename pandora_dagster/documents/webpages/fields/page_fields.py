"""The fields of an HTML page: title, price, availability, author, dates and specifications."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pandora_dagster.contracts.web.page_doc import OUTSIDE_KINDS, PageType, ZoneKind
from pandora_dagster.documents.webpages.elements.blocks import Block
from pandora_dagster.documents.webpages.elements.html_tree import Element, same_words
from pandora_dagster.documents.webpages.fields.availability import stated_availability, written_availability
from pandora_dagster.documents.webpages.fields.bylines import Byline
from pandora_dagster.documents.webpages.fields.field_values import FieldValues, same_day, same_text
from pandora_dagster.documents.webpages.fields.prices import PriceCandidate, choose_old_price, is_other_choice, number_of
from pandora_dagster.documents.webpages.fields.specifications import specifications
from pandora_dagster.documents.webpages.layout.posts import Post
from pandora_dagster.documents.webpages.layout.zones import JudgedBlock
from pandora_dagster.documents.webpages.structured_data import Statement, StructuredData
from pandora_dagster.documents.webpages.written_dates import first_date, month_of_year

_TITLE_PARTS = re.compile(r" [|·•»›:–—-]{1,2} | ?[|»] ?")
_SOLD = (PageType.PRODUCT, PageType.SPEC)
_NEAR = 8


@dataclass(frozen=True, slots=True)
class FieldSources:
    """What the fields of a page are read from."""

    judged: Sequence[JudgedBlock]
    structured: StructuredData
    head_title: str
    host: str
    page_type: PageType
    byline: Byline
    posts: Sequence[Post]
    prices: Sequence[PriceCandidate]
    price: PriceCandidate | None


def page_fields(sources: FieldSources) -> FieldValues:
    """The fields with their evidence."""
    values = FieldValues()
    _title(values, sources)
    if sources.page_type in _SOLD:
        _offer(values, sources)
    _origin(values, sources)
    values.specs = specifications(sources.judged, columns=sources.page_type is PageType.SPEC) if sources.page_type in _SOLD else {}
    stated = [statement.value.partition("\t") for statement in sources.structured.of("spec")]
    for name, _, value in stated:
        if (shown := values.specs.get(name)) is not None and not same_words(shown, value):
            values.notices.append(f"{name}: the page shows {shown!r:.100}, its structured data says {value!r:.100}")
    return values


def head_title_name(head_title: str, stated: Sequence[Statement], host: str) -> str:
    """The part of a title element that names the page and not the site: one that structured data gives, else the longest that is not
    the name in `host`."""
    parts = [part.strip() for part in _TITLE_PARTS.split(head_title) if part.strip()]
    labels = host.lower().split(".")
    parts = [part for part in parts if re.sub(r"\W", "", part.lower()) not in labels] or parts
    named = next((s.value for s in stated if any(same_words(s.value, part) for part in parts)), "")
    return named or max(parts, key=len, default="")


def _title(values: FieldValues, sources: FieldSources) -> None:
    heading = next((item.block for item in sources.judged if item.kind is ZoneKind.TITLE), None)
    stated = sources.structured.of("title")
    seen = heading.text if heading is not None else head_title_name(sources.head_title, stated, sources.host)
    values.decide("title", seen, stated, same_words, heading.element if heading is not None else None)


def _offer(values: FieldValues, sources: FieldSources) -> None:
    price, structured = sources.price, sources.structured
    element = price.element if price else None
    values.decide(
        "price",
        price.amount.value if price else "",
        structured.of("price"),
        lambda a, b: number_of(a) == number_of(b),
        element,
        normal=number_of,
    )
    if "price" in values.values:
        values.decide(
            "currency",
            price.amount.currency if price else "",
            structured.of("currency"),
            same_text,
            element,
            normal=lambda v: v.upper()[:3],
        )
    if price and (former := choose_old_price(sources.prices, price)):
        values.decide("old_price", former.amount.value, (), same_text, former.element)
    state, shown = _availability(sources)
    values.decide("availability", state, structured.of("availability"), same_text, shown, normal=stated_availability)


def _availability(sources: FieldSources) -> tuple[str, Element]:
    """The state that the blocks beside the price or the heading write; a remark on few pieces counts with `in stock`."""
    anchor = next((n for n, item in enumerate(sources.judged) if item.kind is ZoneKind.TITLE), 0)
    if sources.price is not None:
        anchor = max(anchor, 0)
    found: list[tuple[str, Block]] = []
    for place, item in enumerate(sources.judged):
        if (
            place < anchor
            or item.kind in OUTSIDE_KINDS
            or item.kind in (ZoneKind.COMMENTS, ZoneKind.REVIEWS)
            or is_other_choice(item.block.element)
        ):
            continue
        for text in [" ".join(row) for row in item.block.rows] or re.split(r"(?<=[.!?])\s+(?=[A-ZÄÖÜ])", item.block.text):
            if (state := written_availability(text)) and len(item.block.text.split()) <= 40:
                found.append((state, item.block))
    if not found:
        return "", None
    state, block = found[0]
    if state == "in_stock":
        state, block = next(((s, b) for s, b in found[1:3] if s == "limited"), (state, block))
    return state, block.element


def _origin(values: FieldValues, sources: FieldSources) -> None:
    byline, structured = sources.byline, sources.structured
    if sources.page_type is PageType.FORUM and sources.posts:
        first = sources.posts[0]
        values.decide("author", first.author, structured.of("author"), same_words, first.element)
        values.decide("date", first.date, structured.of("date"), same_day, first.element, normal=_day)
        return
    author, element = byline.author, byline.author_element
    if not author:
        author, element = _shown_author(sources)
    values.decide("author", author, structured.of("author"), same_words, element)
    date, dated = byline.date, byline.date_element
    if not date:
        date, dated = _shown_date(sources, "date")
    values.decide("date", date, structured.of("date"), same_day, dated, normal=_day)
    modified, changed = byline.modified, byline.modified_element
    if not modified:
        modified, changed = _shown_date(sources, "modified")
    if modified or structured.of("modified"):
        values.decide("modified", modified, structured.of("modified"), same_day, changed, normal=_day)


def _shown_author(sources: FieldSources) -> tuple[str, Element]:
    """An author that structured data names and a visible block writes."""
    for statement in sources.structured.of("author"):
        if statement.shown:
            return statement.value, statement.element
        for item in sources.judged:
            if len(statement.value) > 3 and len(item.block.text.split()) <= 40 and statement.value.lower() in item.block.text.lower():
                return statement.value, item.block.element
    return "", None


def _shown_date(sources: FieldSources, name: str) -> tuple[str, Element]:
    """A day that structured data gives and a visible block writes."""
    for statement in sources.structured.of(name):
        wanted = _day(statement.value)
        for item in sources.judged:
            if wanted and not item.block.rows and len(item.block.text.split()) <= 40 and first_date(item.block.text) == wanted:
                return wanted, item.block.element
    return "", None


def _day(value: str) -> str:
    return first_date(value) or month_of_year(value) or (found[0] if (found := re.match(r"(?:19|20)\d\d-\d\d", value)) else "")
