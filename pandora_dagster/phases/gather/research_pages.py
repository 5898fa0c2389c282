"""Cached research and visits as Markdown for users.

`research.md` is the rendering of `research.json`: decision 20 (docs/decisions/20-files-of-a-user.md).
"""

from pandora_dagster.contracts.user.sources import Provenance, Research, Visit
from pandora_dagster.documents.markdown import table


def research_page(research: Research) -> str:
    """Render a research record: the summary, and each claim with its source."""
    claims = table(("Claim", "Source", "Confidence"), [(c.claim, c.source, f"{c.confidence:.2f}") for c in research.claims])
    head = [
        f"**Topic:** {research.topic}",
        f"**Cache key:** {research.cache_key}",
        f"**Quality Score:** {research.quality_score:.2f}",
        f"**Created:** {research.created_at}",
        f"**Expires:** {research.expires_at}",
        *_provenance_line(research.provenance),
    ]
    pages = "\n".join(f"- {visit}" for visit in research.webpage_cache)
    parts = ["## Research Findings", "\n".join(head), f"**Summary:** {' '.join(research.summary.split())}"]
    parts += [claims] if research.claims else []
    return "\n\n".join([*parts, f"**Pages:**\n{pages}"] if pages else parts) + "\n"


def visit_page(visit: Visit) -> str:
    """Render a visit record: URL, time, and the extracted data."""
    head = [
        f"**URL:** {visit.url}",
        f"**Visited:** {visit.visited_at}",
        f"**Page type:** {visit.page_type}",
        *_provenance_line(visit.provenance),
    ]
    rows = [(name, value) for name, value in flat_fields(visit.extracted_data)]
    return "\n\n".join([f"## Visit {visit.visit_id}", "\n".join(head), table(("Data Point", "Value"), rows)]) + "\n"


def flat_fields(value: object, path: str = "") -> list[tuple[str, str]]:
    """The plain values of nested data under their dotted names, e.g. `specs.gpu`; lists joined by commas."""
    if isinstance(value, dict):
        items: dict[object, object] = value  # pyright: ignore[reportUnknownVariableType] - any JSON object
        return [pair for key, member in items.items() for pair in flat_fields(member, f"{path}.{key}" if path else str(key))]
    if isinstance(value, (list, tuple)):
        members: list[object] = list(value)  # pyright: ignore[reportUnknownArgumentType] - any JSON list
        if any(isinstance(v, (dict, list)) for v in members):
            return [pair for n, member in enumerate(members, 1) for pair in flat_fields(member, f"{path}.{n}" if path else str(n))]
        return [(path, ", ".join(map(_shown_value, members)))]
    return [(path, _shown_value(value))]


def _shown_value(value: object) -> str:
    return {None: "", True: "yes", False: "no"}[value] if value is None or isinstance(value, bool) else " ".join(str(value).split())


def _provenance_line(provenance: Provenance | None) -> list[str]:
    if provenance is None:
        return []
    turn = f", turn {provenance.source_turn}" if provenance.source_turn else ""
    return [f"**Stored:** {provenance.added_at} by {provenance.by}{turn}"]
