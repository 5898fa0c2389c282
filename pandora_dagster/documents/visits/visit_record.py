"""The record of a visit (specification 004, section 3.6) from a page that was fetched and read."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from pandora_dagster.contracts.user.sources import Provenance, StoredPage, Visit
from pandora_dagster.contracts.web.fetched import FetchedPage
from pandora_dagster.contracts.web.page_doc import MIN_CONFIDENCE, OUTSIDE_KINDS, PageDoc, Zone

_MAX_TEXT_CHARACTERS = 20_000
"""Of the page's text in the record, in whole zones; the page itself has all of it."""
_MAX_HEADER_CHARACTERS = 300


def build_visit(page: FetchedPage, page_doc: PageDoc, provenance: Provenance) -> Visit:
    """The record of one visit: the fields of the page and its text, with what is stored of the page itself."""
    visited_at = page.fetched_at.isoformat(timespec="microseconds").replace("+00:00", "Z")
    zones = [
        zone
        for zone in page_doc.zones
        if zone.visible and zone.confidence >= MIN_CONFIDENCE and zone.kind not in OUTSIDE_KINDS and zone.text
    ]
    return Visit(
        visit_id=f"visit_{sha256(f'{page.url} {visited_at}'.encode()).hexdigest()[:16]}",
        url=page.final_url,
        visited_at=visited_at,
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


def _extracted_data(page_doc: PageDoc, zones: list[Zone]) -> Mapping[str, Any]:
    """What a later turn reads: the title, the fields that the page has, and the text of whole zones under their kinds."""
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
