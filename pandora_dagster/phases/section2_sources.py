"""The subsections of section 2 for research, visits and notes (004 section 5.2). What SYNTHESIS gathered, beside what was loaded.

Figures come from the records that were loaded, never from the answer; what leads to none of them is shown as unlinked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pandora_dagster.contracts.answers import CachedResearch, GatheredContext, Knowledge, VisitData
from pandora_dagster.contracts.sources import Research, Visit
from pandora_dagster.phases.loading import LoadedSources
from pandora_dagster.selection.freshness import age_hours, freshness_score, hours_left, is_expired
from pandora_dagster.text.citations import escape_citations
from pandora_dagster.text.meta import meta_block
from pandora_dagster.text.research_page import flat_fields
from pandora_dagster.text.tables import table

UNLINKED = "(unlinked)"
VERIFY_HOURS = 6.0
"""A visited page older than this is shown with the advice to look again before its price or stock is relied on."""
_MOST_COLUMNS = 5


@dataclass(frozen=True, slots=True)
class OmittedItem:
    """What had no room in section 2: one item of a source, or the source with all of its own where `item` is empty."""

    source: str
    relevance: str = ""
    item: str = ""


@dataclass(frozen=True, slots=True)
class SourceParts:
    """The subsections, which sources they use, and what is to be said about them."""

    text: tuple[str, ...] = ()
    used: frozenset[str] = frozenset()
    """Paths of the sources that the subsections cite."""
    unlinked: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    recommendations: tuple[str, ...] = ()
    confidences: tuple[float, ...] = ()


def source_subsections(gathered: GatheredContext, loaded: LoadedSources, now: datetime) -> SourceParts:
    """Cached research, visits and notes as they stand in section 2."""
    labels = {s.path: f"[{s.label}]" for s in loaded.sources}
    parts = [
        _research_part(gathered.cached_research, loaded.research, labels, now),
        _visits_part(gathered.visit_data, loaded.visits, labels, now),
        _notes_part(gathered.forever_knowledge, loaded, labels),
    ]
    return SourceParts(
        text=tuple(text for p in parts for text in p.text),
        used=frozenset(path for p in parts for path in p.used),
        unlinked=tuple(u for p in parts for u in p.unlinked),
        stale=tuple(s for p in parts for s in p.stale),
        recommendations=tuple(r for p in parts for r in p.recommendations),
        confidences=tuple(c for p in parts for c in p.confidences),
    )


def drop_last_source_item(gathered: GatheredContext, left: list[OmittedItem]) -> GatheredContext | None:
    """The gathered context less its last note, then its last page, then its last result; None where nothing is left to give."""
    if gathered.forever_knowledge:
        left.append(OmittedItem(f"note {one_line(gathered.forever_knowledge[-1].note)}"))
        return gathered.model_copy(update={"forever_knowledge": gathered.forever_knowledge[:-1]})
    if gathered.visit_data:
        left.append(OmittedItem(f"page {one_line(gathered.visit_data[-1].url)[:80]}"))
        return gathered.model_copy(update={"visit_data": gathered.visit_data[:-1]})
    research = gathered.cached_research
    if research and research.top_results:
        left.append(OmittedItem(f"research {research.topic}", item=one_line(next(iter(research.top_results[-1].values()), ""))))
        return gathered.model_copy(update={"cached_research": research.model_copy(update={"top_results": research.top_results[:-1]})})
    return None


def _research_part(gathered: CachedResearch | None, record: Research | None, labels: Mapping[str, str], now: datetime) -> SourceParts:
    if gathered is None:
        return SourceParts()
    if record is None or gathered.topic != record.topic:
        block = meta_block({"type": "research_cache", "topic": gathered.topic, "linked": False})
        said = f"### Cached Research Intelligence\n\n{block}\n\n**Topic:** {one_line(gathered.topic)} {UNLINKED}"
        return SourceParts((said,), unlinked=(f"research {one_line(gathered.topic)} is not among the loaded sources",))
    label, age = labels.get(record.logical_id, UNLINKED), age_hours(record.created_at, now)
    left, stale = hours_left(record.expires_at, now), is_expired(record.expires_at, now)
    meta: dict[str, Any] = {
        "type": "research_cache",
        "topic": record.topic,
        "quality_score": record.quality_score,
        "freshness_score": freshness_score(record.created_at, record.expires_at, now),
        "age_hours": age,
        "expires_hours": left,
        "source_count": len({c.source for c in record.claims}),
    } | ({"stale": True, "recommendation": "refresh"} if stale else {})
    rows, unlinked = _result_table(gathered.top_results, record, label, age)
    lines = [
        f"**Topic:** {record.topic} {label}",
        f"**Quality Score:** {record.quality_score:.2f} ({_word(record.quality_score)} confidence)",
        f"**Age:** {age} hours",
        f"**Expires:** {left} hours" if not stale else f"**Expired:** {-left} hours ago; refresh recommended",
    ]
    parts = ["### Cached Research Intelligence", meta_block(meta), "\n".join(lines)]
    parts += [f"**Summary:** {one_line(gathered.summary)} {label}"] if gathered.summary.strip() else []
    parts += [f"**Top Results:**\n\n{rows}"] if rows else []
    return SourceParts(
        ("\n\n".join(parts),),
        used=frozenset({record.logical_id}),
        unlinked=unlinked,
        stale=(f"research {record.topic} expired {-left} hours ago",) if stale else (),
        recommendations=(f"refresh the research on {record.topic}",) if stale else (),
        confidences=(record.quality_score * (0.5 if stale else 1.0),),
    )


def _result_table(results: Sequence[Mapping[str, Any]], record: Research, label: str, age: float) -> tuple[str, tuple[str, ...]]:
    """The table of top results, and those whose source is none of the record's."""
    if not results:
        return "", ()
    known = {c.source for c in record.claims}
    columns = [name for name in dict.fromkeys(n for r in results for n in r) if name != "source"][:_MOST_COLUMNS]
    rows: list[list[str]] = []
    unlinked: list[str] = []
    for result in results:
        values = [one_line(result.get(name, "")) for name in columns]
        source = one_line(result.get("source", ""))
        if source not in {one_line(k) for k in known}:
            unlinked.append(f"research result {(values or [source])[0][:60]} has no source that was loaded")
            source = f"{source} {UNLINKED}".strip()
        rows.append([f"{(values or [''])[0]} {label}".strip(), *values[1:], source, f"{age}h ago"])
    heads = [one_line(name).replace("_", " ").title() for name in columns] or ["Result"]
    return table([*heads, "Source", "Last Verified"], rows), tuple(unlinked)


def _visits_part(gathered: Sequence[VisitData], records: Sequence[Visit], labels: Mapping[str, str], now: datetime) -> SourceParts:
    if not gathered:
        return SourceParts()
    rows: list[tuple[str, ...]] = []
    unlinked: list[str] = []
    known: dict[str, Visit] = {}
    for data in gathered:
        record = matching_visit(data, records)
        known |= {record.visit_id: record} if record else {}
        label = labels.get(record.logical_id, UNLINKED) if record else UNLINKED
        age = f"{age_hours(record.visited_at, now)}h" if record else ""
        unlinked += [] if record else [f"page {one_line(data.url)[:80]} is not among the loaded sources"]
        rows += [
            (f"{_bare_address(record.url if record else data.url)} {label}", one_line(name), one_line(value), age)
            for name, value in flat_fields(dict(data.extracted))
            if value
        ]
    used = list(known.values())
    ages = [age_hours(v.visited_at, now) for v in used]
    old = [(v, age) for v, age in zip(used, ages, strict=True) if age > VERIFY_HOURS]
    meta: dict[str, Any] = {"type": "visit_data", "visit_count": len(gathered)}
    meta |= {"freshness_avg": round(sum(ages) / len(ages), 1)} if ages else {}
    meta |= {"verify": [v.visit_id for v, _ in old]} if old else {}
    text = f"### Visit Record Data\n\n{meta_block(meta)}\n\n{table(('URL', 'Data Point', 'Value', 'Freshness'), rows)}"
    return SourceParts(
        (text,),
        used=frozenset(v.logical_id for v in used),
        unlinked=tuple(unlinked),
        recommendations=tuple(f"verify {_bare_address(v.url)} where price or stock matters: seen {age} hours ago" for v, age in old),
        confidences=tuple(v.extraction_quality for v in used),
    )


def matching_visit(data: VisitData, records: Sequence[Visit]) -> Visit | None:
    """The loaded record that gathered data is of: the one whose id it says. Without an id, the only one of its address."""
    found = [v for v in records if (v.visit_id == data.visit_id if data.visit_id else v.url == data.url)]
    return found[0] if len(found) == 1 else None


def _notes_part(gathered: Sequence[Knowledge], loaded: LoadedSources, labels: Mapping[str, str]) -> SourceParts:
    if not gathered:
        return SourceParts()
    known = {n.header.name: n.logical_id for n in loaded.notes}
    lines: list[str] = []
    unlinked: list[str] = []
    for knowledge in gathered:
        label = labels.get(known.get(knowledge.note, ""), UNLINKED)
        unlinked += [f"note {one_line(knowledge.note)[:80]} is not among the loaded sources"] if label == UNLINKED else []
        lines.append(f"- {one_line(knowledge.content)} {label}")
    names = list(dict.fromkeys(k.note for k in gathered))
    meta = {"type": "forever_memory", "note_count": len(names), "notes": names}
    return SourceParts(
        (f"### Forever Memory Knowledge\n\n{meta_block(meta)}\n\n" + "\n".join(lines),),
        used=frozenset(known[k.note] for k in gathered if k.note in known),
        unlinked=tuple(unlinked),
        confidences=tuple(0.7 for name in names if name in known),
    )


def _word(share: float) -> str:
    return "High" if share >= 0.8 else "Medium" if share >= 0.5 else "Low"


def _bare_address(url: str) -> str:
    """An address as people write it: without scheme and `www`."""
    return one_line(url).removeprefix("https://").removeprefix("http://").removeprefix("www.")


def one_line(value: object) -> str:
    """What was gathered, as one line: it begins no heading, no row and no list of sources, and cites none. The value itself stays."""
    text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - any list prints
    return escape_citations(" ".join(text.split()))
