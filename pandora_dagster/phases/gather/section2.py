"""Section 2 in 004 section 5's dual format: Markdown for people and models, `_meta` YAML for code."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from pandora_dagster.contracts.gates import GateVerdict
from pandora_dagster.contracts.model_calls import Item, Source
from pandora_dagster.contracts.phase_outputs import CachedResearch, GatheredContext, Knowledge, PriorTurn, VisitData
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.user.sources import Research, Visit
from pandora_dagster.contracts.user.user_memory import MemoryEntry
from pandora_dagster.documents.citations import escape_citations, reference_list
from pandora_dagster.documents.markdown import table
from pandora_dagster.documents.meta import meta_block
from pandora_dagster.documents.research_pages import flat_fields
from pandora_dagster.phases.gather.source_documents import LoadedSources
from pandora_dagster.retrieval.freshness import age_hours, freshness_score, hours_left, is_expired

# The subsections of section 2 for research, visits and notes (004 section 5.2). What SYNTHESIS gathered, beside what was loaded.
# Figures come from the records that were loaded, never from the answer; what leads to none of them is shown as unlinked.

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


MEMORY_FILES = {"preference": "preferences.md", "fact": "facts.md"}
"""Kind of a memory entry -> the page that it stands on."""
GATHERED_FILE = "gathered_context.json"
_RELEVANCE_RANKS = {"high": 3, "medium": 2, "low": 1}
_WHOLE_SOURCE = re.compile(r"(?:memory|research|visit|note) [^:]+")
"""The name of a chosen source that had no room at all; pieces of one bear a colon."""


@dataclass(frozen=True, slots=True)
class LoadedContext:
    """What was loaded for SYNTHESIS, and under which labels it may be cited."""

    items: tuple[Item, ...]
    sources: tuple[Source, ...]
    memory: tuple[MemoryEntry, ...]
    left_out: tuple[str, ...]
    others: LoadedSources = field(default_factory=LoadedSources)
    """Research, visits and notes."""
    days: tuple[str, ...] = ()
    """Those that the query names."""


@dataclass(frozen=True, slots=True)
class Section2:
    text: str
    quality: float
    verdicts: tuple[GateVerdict, ...] = ()
    """The quality gates of 004 section 10."""
    left_out: tuple[OmittedItem, ...] = ()


def key_fact_budget(gathered: GatheredContext, loaded: LoadedContext, *, room: int, counter: TokenMeasure, now: datetime) -> int:
    """Tokens that the key facts of one turn may take in a section 2 of `room` tokens that has only that turn."""
    bare = tuple(t.model_copy(update={"key_facts": ()}) for t in gathered.prior_turns)
    around = (
        _section2(gathered.model_copy(update={"prior_turns": (turn,)}), loaded, [OmittedItem("turn 0", "high")], now) for turn in bare
    )
    return max(1, room - max((counter.count(s.text) for s in around), default=0))


def fit_section2(gathered: GatheredContext, loaded: LoadedContext, *, room: int, counter: TokenMeasure, now: datetime) -> Section2:
    """Section 2 within `room` tokens: the least relevant key facts stay out first, and it says which (001 section 5)."""
    left: list[OmittedItem] = []
    section = _section2(gathered, loaded, left, now)
    while (
        counter.count(section.text) > room
        and (shorter := _drop_least_relevant(gathered, left) or drop_last_source_item(gathered, left)) is not None
    ):
        gathered = shorter
        section = _section2(gathered, loaded, left, now)
    return replace(section, left_out=tuple(left))


def _drop_least_relevant(gathered: GatheredContext, left: list[OmittedItem]) -> GatheredContext | None:
    """The gathered context less its last key fact of the least relevant turn; then less that turn; None at the end."""
    if not gathered.prior_turns:
        return None
    turns = list(gathered.prior_turns)
    place = min(range(len(turns)), key=lambda i: (_RELEVANCE_RANKS[turns[i].relevance], -i))
    turn = turns[place]
    if len(turn.key_facts) > 1 or (turn.key_facts and len(turns) == 1):
        left.append(OmittedItem(f"turn {turn.turn}", turn.relevance, turn.key_facts[-1]))
        turns[place] = turn.model_copy(update={"key_facts": turn.key_facts[:-1]})
    elif len(turns) > 1:
        left.append(OmittedItem(f"turn {turn.turn}", turn.relevance))
        del turns[place]
    else:
        return None
    return gathered.model_copy(update={"prior_turns": tuple(turns)})


def _section2(gathered: GatheredContext, loaded: LoadedContext, left_out: Sequence[OmittedItem], now: datetime) -> Section2:
    labels = {s.turn_id: s.label for s in loaded.sources if s.turn_id}
    unlinked = [t.turn for t in gathered.prior_turns if f"turn_{t.turn:06d}" not in labels]
    others = source_subsections(gathered, loaded.others, now)
    used = _used_sources(gathered, loaded, others)
    loose = (
        [f"turn {n} is not among the loaded sources" for n in unlinked] + _unstored_preferences(gathered, loaded) + list(others.unlinked)
    )
    gaps = [*loose, *others.stale, *([] if used else ["no relevant source was found"])]
    gaps += [f"no room for {name}" for name in loaded.left_out if _WHOLE_SOURCE.fullmatch(name)]
    quality = _quality(gathered, loaded, others) if used else 0.0
    parts = [
        _preferences(gathered.session_preferences, loaded.memory),
        _prior_turns(gathered.prior_turns, labels, loaded.days),
        *others.text,
        reference_list(used) if used else "",
        _assessment(quality, gaps, others.recommendations, left_out),
    ]
    verdicts = (
        GateVerdict("sources_linked", not loose, "; ".join(loose)),
        GateVerdict("caches_fresh", not others.stale, "; ".join((*others.stale, *others.recommendations)) if others.stale else ""),
        GateVerdict("relevant_source", bool(used), "" if used else "no relevant source was found", float(len(used))),
    )
    return Section2("\n\n".join(p for p in parts if p), quality, verdicts)


def _unstored_preferences(gathered: GatheredContext, loaded: LoadedContext) -> list[str]:
    known = {e.key for e in loaded.memory}
    return [f"preference {one_line(key)[:80]} is not among the loaded sources" for key in gathered.session_preferences if key not in known]


def _used_sources(gathered: GatheredContext, loaded: LoadedContext, others: SourceParts) -> tuple[Source, ...]:
    turns = {f"turn_{t.turn:06d}" for t in gathered.prior_turns}
    pages = {MEMORY_FILES[e.kind] for e in loaded.memory if e.key in gathered.session_preferences}
    return tuple(s for s in loaded.sources if (s.turn_id in turns if s.turn_id else s.path in pages | others.used))


def _quality(gathered: GatheredContext, loaded: LoadedContext, others: SourceParts) -> float:
    """The mean confidence of what was gathered: a turn by its relevance, the others by what was stored with them."""
    by_relevance = {"high": 0.9, "medium": 0.7, "low": 0.4}
    known = {e.key: e.confidence for e in loaded.memory}
    values = [by_relevance[t.relevance] for t in gathered.prior_turns]
    values += [known[k] for k in gathered.session_preferences if k in known]
    values += others.confidences
    return round(sum(values) / len(values), 2) if values else 0.0


def _preferences(preferences: Mapping[str, Any], memory: Sequence[MemoryEntry]) -> str:
    if not preferences:
        return ""
    known = {e.key: e for e in memory}
    confidences = [known[k].confidence for k in preferences if k in known]
    mean = round(sum(confidences) / len(confidences), 2) if confidences else 0.0
    rows = [row for k, v in preferences.items() for row in _preference_rows(k, v, known.get(k))]
    meta = meta_block({"type": "preferences", "count": len(preferences), "confidence": mean})
    return f"### Session Preferences\n\n{meta}\n\n{table(('Preference', 'Value', 'Source'), rows)}"


def _preference_rows(key: str, value: object, entry: MemoryEntry | None) -> list[tuple[object, ...]]:
    """A preference; where it contradicts an older one both with their dates, the newer marked current."""
    if entry is None:
        return [(one_line(key), one_line(value), f"not stored {UNLINKED}")]
    if not entry.earlier:
        return [(one_line(key), one_line(value), _turn_origin(entry.source_turn))]
    current = (one_line(key), f"{one_line(value)} (current, since {entry.last_updated[:10]})", _turn_origin(entry.source_turn))
    return [
        current,
        *(
            (f"{one_line(key)} (earlier)", f"{one_line(e.value)} ({e.last_updated[:10]})", _turn_origin(e.source_turn))
            for e in entry.earlier[:1]
        ),
    ]


def _turn_origin(turn: int | None) -> str:
    return f"Turn {turn}" if turn else "set by the person"


def _prior_turns(turns: Sequence[PriorTurn], labels: Mapping[str, str], days: Sequence[str]) -> str:
    if not turns:
        return ""
    highest = max(turns, key=lambda t: _RELEVANCE_RANKS[t.relevance]).relevance
    values: dict[str, Any] = {"type": "turn_context", "relevant_turns": [t.turn for t in turns], "highest_relevance": highest}
    meta = meta_block(values | ({"days": list(days)} if days else {}))
    rows = [
        (f"{t.turn} {_label(labels, t.turn)}", t.relevance, one_line(t.summary), "; ".join(one_line(f).rstrip(";") for f in t.key_facts))
        for t in turns
    ]
    return f"### Relevant Prior Turns\n\n{meta}\n\n{table(('Turn', 'Relevance', 'Summary', 'Key Facts'), rows)}"


def _label(labels: Mapping[str, str], turn: int) -> str:
    label = labels.get(f"turn_{turn:06d}")
    return f"[{label}]" if label else "(unlinked)"


def _assessment(quality: float, gaps: Sequence[str], recommendations: Sequence[str], left_out: Sequence[OmittedItem]) -> str:
    values: dict[str, Any] = {"type": "assessment", "context_quality": quality, "gaps_identified": list(gaps)}
    if recommendations:
        values["recommendations"] = list(recommendations)
    if left_out:
        values["left_out"] = len(left_out)
    word = "High" if quality >= 0.8 else "Medium" if quality >= 0.5 else "Low"
    missing = "; ".join(gaps) if gaps else "None identified"
    lines = [f"**Context Quality:** {quality:.2f} ({word})", f"**Gaps:** {missing}"]
    if recommendations:
        lines.append(f"**Recommended:** {'; '.join(recommendations)}")
    if left_out:
        lines.append(f"**Left out for room:** {_left_out_names(left_out)}; whole in `{GATHERED_FILE}`")
    return f"### Context Assessment\n\n{meta_block(values)}\n\n" + "\n".join(lines)


def _left_out_names(left_out: Sequence[OmittedItem]) -> str:
    """Which sources, and how much of each: `turn 3 (low), 2 items of turn 5 (high)`."""
    gone = {left.source: left.relevance for left in left_out if not left.item}
    items = Counter((left.source, left.relevance) for left in left_out if left.item and left.source not in gone)
    whole = [source + _relevance_rank(relevance) for source, relevance in gone.items()]
    return ", ".join(
        [*whole, *(f"{n} item{'s' if n > 1 else ''} of {source}{_relevance_rank(worth)}" for (source, worth), n in items.items())]
    )


def _relevance_rank(relevance: str) -> str:
    return f" ({relevance})" if relevance else ""
