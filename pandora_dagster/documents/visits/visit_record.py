"""The record of a visit (specification 004, section 3.6) from a page that was fetched and read."""

import re
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any

from pandora_dagster.contracts.enums import SECTION_TITLES
from pandora_dagster.contracts.user.sources import Provenance, StoredPage, Visit
from pandora_dagster.contracts.web.fetched import FetchedPage
from pandora_dagster.contracts.web.page_doc import MIN_CONFIDENCE, OUTSIDE_KINDS, PageDoc, Zone
from pandora_dagster.language.requests.orders_to_models import orders_model

_SECTION_HEADING = re.compile(rf"#{{1,3}} ?[0-6]\. (?:{'|'.join(SECTION_TITLES.values())})\b")
"""Forged structure: text that a quotation in a turn could be taken for."""
_MAX_TEXT_CHARACTERS = 20_000
"""Of the page's text in the record, in whole zones; the page itself has all of it."""
_MAX_HEADER_CHARACTERS = 300


def build_visit(page: FetchedPage, page_doc: PageDoc, provenance: Provenance) -> Visit:
    """The record of one visit: the fields of the page and its text, with what is stored of the page itself."""
    zones = [
        zone
        for zone in page_doc.zones
        if zone.visible and zone.confidence >= MIN_CONFIDENCE and zone.kind not in OUTSIDE_KINDS and zone.text
    ]
    return Visit(
        visit_id=visit_id_of(page.url, page.fetched_at),
        url=page.final_url,
        visited_at=_time_text(page.fetched_at),
        page_type=page_doc.page_type,
        extracted_data=_extracted_data(page_doc, zones),
        extraction_quality=_quality(zones),
        page=StoredPage(
            raw_sha256=sha256(page.body).hexdigest(),
            raw_bytes=len(page.body),
            status=page.status,
            final_url=page.final_url,
            content_type=_header(page, "content-type"),
            etag=_header(page, "etag"),
            last_modified=_header(page, "last-modified"),
        ),
        provenance=provenance,
    )


def is_usable(page_doc: PageDoc) -> bool:
    """Whether a page gives no orders to a model, and no visible text of it has the heading of a section of context.md."""
    return not why_unusable(page_doc)


def why_unusable(page_doc: PageDoc) -> str:
    """Why nothing of a page may be used, beginning with the rule; "" where it may."""
    if _gives_orders(page_doc):
        return "orders: the page gives orders to a model"
    if any(zone.visible and _SECTION_HEADING.search(zone.text) for zone in page_doc.zones):
        return "headings: the page has the heading of a section of a turn, such as `## 5. Synthesis`"
    return ""


def _gives_orders(page_doc: PageDoc) -> bool:
    """Whether something of a page that a recipe could read gives orders to a model: its title, a visible zone, a field."""
    fields = page_doc.extracted_data
    visible = (zone.text for zone in page_doc.zones if zone.visible)
    values = (value for _, value in fields if isinstance(value, str))
    return any(map(orders_model, (page_doc.title, *visible, *values, *fields.specs, *fields.specs.values())))


def visit_id_of(url: str, fetched_at: datetime) -> str:
    """The id of the visit of an address at a time."""
    return f"visit_{sha256(f'{url} {_time_text(fetched_at)}'.encode()).hexdigest()[:16]}"


def _time_text(time: datetime) -> str:
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _extracted_data(page_doc: PageDoc, zones: list[Zone]) -> Mapping[str, Any]:
    """What a later turn reads: the title, the fields that the page has, and the text of whole zones under their kinds.

    Of a page that is not usable it is a notice alone.
    """
    if not is_usable(page_doc):
        return {"notice": f"nothing of it is used: {why_unusable(page_doc)}"}
    fields = page_doc.extracted_data.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    texts: dict[str, str] = {}
    room = _MAX_TEXT_CHARACTERS
    for zone in zones:
        kind = zone.kind.value
        if kind not in {"title", *fields} and len(zone.text) <= room:
            texts[kind] = f"{texts[kind]}\n{zone.text}" if kind in texts else zone.text
            room -= len(zone.text)
    return {"title": page_doc.title, **fields, **texts}


def _quality(zones: list[Zone]) -> float:
    """The mean confidence of the zones, by their characters; 0 for a page without text."""
    characters = sum(len(zone.text) for zone in zones)
    return round(sum(zone.confidence * len(zone.text) for zone in zones) / characters, 3) if characters else 0.0


def _header(page: FetchedPage, name: str) -> str:
    return page.headers.get(name, "")[:_MAX_HEADER_CHARACTERS]
