"""Pages as they were read, for tests of the loop."""

from datetime import UTC, datetime

from pandora_dagster.contracts.web.page_doc import PageDoc, PageFields, PageType, Zone, ZoneKind


def page(
    url: str, title: str, *texts: str, page_type: PageType = PageType.INFO, language: str = "en", hidden: str = "", **fields: str
) -> PageDoc:
    """A page with one zone for each text; texts of Markdown rows are tables."""
    zones = [Zone(kind=ZoneKind.TABLE if text.startswith("|") else ZoneKind.MAIN_TEXT, text=text, confidence=0.9) for text in texts]
    if hidden:
        zones.append(Zone(kind=ZoneKind.HIDDEN, text=hidden, confidence=0.0, visible=False))
    return PageDoc(
        url=url,
        final_url=url,
        retrieved_at=datetime(2026, 11, 24, tzinfo=UTC),
        page_type=page_type,
        title=title,
        language=language,
        zones=tuple(zones),
        extracted_data=PageFields.model_validate({"title": title, **fields}),
        evidence={},
        links=(),
        notices=(),
    )
