"""A page as it was read, as Markdown for users: its fields and its zones, hidden text marked as such."""

from pandora_dagster.contracts.web.page_doc import MIN_CONFIDENCE, OUTSIDE_KINDS, FieldEvidence, PageDoc, Zone
from pandora_dagster.documents.markdown import table


def page_doc_page(page_doc: PageDoc) -> str:
    """Render a page: address, fields with confidence, then each zone under its kind."""
    head = [f"**URL:** {page_doc.final_url}"]
    head += [f"**Asked for:** {page_doc.url}"] if page_doc.url != page_doc.final_url else []
    head += [f"**Read:** {page_doc.retrieved_at:%Y-%m-%dT%H:%M:%SZ}", f"**Page type:** {page_doc.page_type}"]
    head += [f"**Language:** {page_doc.language}"] if page_doc.language else []
    head += [f"**Notice:** {notice}" for notice in page_doc.notices]
    rows = field_rows(page_doc)
    parts = [f"# {page_doc.title or page_doc.final_url}", "\n".join(head)]
    parts += [table(("Field", "Value", "Confidence", "Sources"), rows)] if rows else []
    parts += [f"## {zone_label(zone)}\n\n{zone.text}" for zone in page_doc.zones]
    return "\n\n".join([*parts, f"{len(page_doc.links)} links"]) + "\n"


def field_rows(page_doc: PageDoc) -> list[tuple[str, str, str, str]]:
    """Name, value, confidence and sources of each field of a page."""
    values = page_doc.extracted_data.model_dump(mode="json", exclude_none=True, exclude={"specs"})
    pairs = [(name, str(value), name) for name, value in values.items()]
    pairs += [(f"specs.{name}", value, "specs") for name, value in page_doc.extracted_data.specs.items()]
    return [(label, value, *_proof(page_doc.evidence.get(name))) for label, value, name in pairs]


def _proof(evidence: FieldEvidence | None) -> tuple[str, str]:
    return (f"{evidence.confidence:.2f}", ", ".join(evidence.sources)) if evidence else ("", "")


def zone_label(zone: Zone) -> str:
    """The heading of a zone: its kind, what is to be thought of it, its confidence and source."""
    if not zone.visible:
        why = zone.fields.get("hidden_by", "")
        return f"hidden text, not part of the page{f' ({why})' if why else ''}"
    outside = ", around the content" if zone.kind in OUTSIDE_KINDS else ", unsure" if zone.confidence < MIN_CONFIDENCE else ""
    return f"{zone.kind.replace('_', ' ')}{outside}, confidence {zone.confidence:.2f}, {zone.source}"
