"""The documents of research, visits and notes that RETRIEVAL named, loaded strictly (004 sections 4.2, 7.3 and 9).

Whole things are selected first, and what stays out is recorded; a chosen thing over its limit is compressed to it (DECISIONS 2).
What a note or a page says is quoted under its source: no line of it can begin another source.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pandora_dagster.contracts.compression_results import CompressionInput
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.contracts.model_calls import InputDocument, Item, Source
from pandora_dagster.contracts.phase_outputs import RetrievalPlan
from pandora_dagster.contracts.user.sources import Claim, Note, Research, Visit
from pandora_dagster.documents.markdown import escape_pack_lines
from pandora_dagster.documents.passages import join_passages, passages
from pandora_dagster.documents.research_pages import flat_fields
from pandora_dagster.errors import DocumentError
from pandora_dagster.phases.core.phase_context import PhaseContext, json_line
from pandora_dagster.retrieval.freshness import age_hours, freshness_score, hours_left, is_expired

CACHED_HEADING = "===== CACHED INTELLIGENCE (Phase 1) ====="
FOREVER_HEADING = "===== FOREVER MEMORY (Persistent Knowledge) ====="
TOP_CLAIMS = 5
"""Claims of cached research that go along (004 section 7.3)."""
RESEARCH_TOKENS, VISIT_TOKENS, NOTE_TOKENS = 700, 600, 800
SOURCES_TOKENS = 2_200
"""Tokens that all of them take together in the pack of SYNTHESIS: the rest is for turns and memory."""
_WORTH = {"research": 3e9, "visit": 2e9, "note": 1e9}
"""Before turns (004 section 7.3)."""
_PRESELECTION_FACTOR = 4
"""A note is selected to this many times its limit before it is compressed: a long paste costs no hundred calls."""
_NEIGHBOUR_WEIGHTS = {-1: 0.5, 1: 0.4, -2: 0.25, 2: 0.2}
"""Distance of a passage that shares words with the query -> what its neighbour has of that; what follows a match counts most."""


@dataclass(frozen=True, slots=True)
class LoadedSources:
    """What was loaded, under which labels it is cited, and the documents that carry it."""

    research: Research | None = None
    visits: tuple[Visit, ...] = ()
    notes: tuple[Note, ...] = ()
    documents: tuple[InputDocument, ...] = ()
    sources: tuple[Source, ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _SourceItem:
    document: str
    item: Item
    source: Source
    left_out: tuple[str, ...] = ()


async def load_sources(ctx: PhaseContext, plan: RetrievalPlan, *, first_label: int) -> LoadedSources:
    """Everything the plan names; raises DocumentError for a thing that is missing or damaged."""
    research = _load_research(ctx, plan)
    visits = tuple(_load_visit(ctx, visit_id) for visit_id in dict.fromkeys(plan.webpage_cache_needed))
    notes = tuple(_load_note(ctx, name) for name in dict.fromkeys(plan.relevant_notes))
    pieces: list[_SourceItem] = []

    def label() -> str:
        return str(first_label + len(pieces))

    if research:
        pieces.append(await _research_piece(ctx, research, label()))
    for place, visit in enumerate(visits):
        pieces.append(await _visit_piece(ctx, visit, label(), place))
    for place, note in enumerate(notes):
        pieces.append(await _note_piece(ctx, note, label(), place))
    kept, left = _items_within_limit(ctx, pieces)
    documents = tuple(_document(name, kept) for name in dict.fromkeys(p.document for p in kept))
    there = {p.source.path for p in kept}
    return LoadedSources(
        research=research if research and research.logical_id in there else None,
        visits=tuple(v for v in visits if v.logical_id in there),
        notes=tuple(n for n in notes if n.logical_id in there),
        documents=documents,
        sources=tuple(p.source for p in kept),
        left_out=(*left, *(name for p in kept for name in p.left_out)),
    )


_PAGE_GONE = "add the page's record (`pandora visit add`), or the research again without it (`pandora research add`)"


def _load_research(ctx: PhaseContext, plan: RetrievalPlan) -> Research | None:
    """The matched research; a page that it names and that is gone is missing too."""
    match, user = plan.research_cache_match, ctx.turn.key.user
    if not match.matched:
        return None
    if not match.topic:
        raise DocumentError(
            "retrieval_plan.json: research_cache_match: matched without a topic: expected one of those offered", missing=True
        )
    try:
        found = ctx.deps.sources.research(user, match.topic)
    except DocumentError as error:
        raise _plan_error("research_cache_match", error) from error
    known = {row.visit_id for row in ctx.deps.sources.visit_rows(user)}
    if gone := [v for v in found.webpage_cache if v not in known]:
        where = f"retrieval_plan.json: research_cache_match: {found.logical_id}: webpage_cache: {', '.join(gone)}"
        message = f"{where}: no such visit record: expected every page that the research names"
        raise DocumentError(message, missing=True, hint=_PAGE_GONE)
    return found


def _load_visit(ctx: PhaseContext, visit_id: str) -> Visit:
    try:
        return ctx.deps.sources.visit(ctx.turn.key.user, visit_id)
    except DocumentError as error:
        raise _plan_error("webpage_cache_needed", error) from error


def _load_note(ctx: PhaseContext, name: str) -> Note:
    try:
        return ctx.deps.notes.load(ctx.turn.key.user, name)
    except DocumentError as error:
        raise _plan_error("relevant_notes", error) from error


def _plan_error(field: str, error: DocumentError) -> DocumentError:
    return DocumentError(f"retrieval_plan.json: {field}: {error}", missing=error.missing, hint=error.hint)


async def _research_piece(ctx: PhaseContext, research: Research, label: str) -> _SourceItem:
    """Summary and top claims (004 section 7.3), with its age and whether it is still within its time."""
    now = ctx.deps.clock()
    by_confidence = sorted(research.claims, key=lambda c: -c.confidence)
    kept: list[Claim] = [c for c in research.claims if c in by_confidence[:TOP_CLAIMS]][:TOP_CLAIMS]
    left = [f"research {research.topic}: {c.claim[:80]}" for c in research.claims if c not in kept]
    summary = research.summary
    known: dict[str, Any] = {
        "topic": research.topic,
        "quality_score": research.quality_score,
        "age_hours": age_hours(research.created_at, now),
        "freshness_score": freshness_score(research.created_at, research.expires_at, now),
        "expires_hours": hours_left(research.expires_at, now),
    } | ({"stale": True} if is_expired(research.expires_at, now) else {})

    def said(claims: Sequence[Claim]) -> str:
        return json_line({**known, "summary": summary, "top_results": [c.model_dump() for c in claims]})

    count = ctx.deps.counter.count
    while kept and count(said(kept)) > RESEARCH_TOKENS and count(said(())) <= RESEARCH_TOKENS:
        least = min(kept, key=lambda c: c.confidence)
        kept = [c for c in kept if c is not least]
        left.append(f"research {research.topic}: {least.claim[:80]}")
    if (over := count(said(kept)) - RESEARCH_TOKENS) > 0:
        target = max(50, count(summary) - over)
        summary = await _compress_text(
            ctx, CompressionInput(summary, research.logical_id, ContentType.RESEARCH_DOC, query=_resolved_query(ctx)), target
        )
    text = f"===== CACHED RESEARCH {research.topic} [{label}] =====\n{said(kept)}"
    described = f"Cached research (quality: {research.quality_score:.2f})"
    item = Item(text, _WORTH["research"], f"research {research.topic}")
    return _SourceItem("cached_intelligence", item, Source(label, research.logical_id, described), tuple(left))


async def _visit_piece(ctx: PhaseContext, visit: Visit, label: str, place: int) -> _SourceItem:
    """What was extracted, nothing of the raw page (004 section 7.3): whole fields within the limit."""
    known = {
        "label": label,
        "visit_id": visit.visit_id,
        "url": visit.url,
        "page_type": visit.page_type,
        "age_hours": age_hours(visit.visited_at, ctx.deps.clock()),
    }
    room = VISIT_TOKENS - ctx.deps.counter.count(json_line(known))
    fields, left = await _fields(ctx, visit, room)
    text = json_line({**known, "extracted_data": fields})
    title = str(visit.extracted_data.get("title") or visit.page_type)
    item = Item(text, _WORTH["visit"] - place, f"visit {visit.visit_id}")
    return _SourceItem("visit_records", item, Source(label, visit.logical_id, f"Visited page: {title[:80]}"), left)


async def _fields(ctx: PhaseContext, visit: Visit, room: int) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The extracted fields that matter most for the query, whole, within `room` tokens; one that alone is larger is compressed."""
    count, data = ctx.deps.counter.count, visit.extracted_data
    if count(json_line(data)) <= room:
        return data, ()
    flat = {name: "; ".join(f"{path}: {value}" for path, value in flat_fields(value, name)) for name, value in data.items()}
    scores = ctx.deps.scores(_query_terms(ctx), list(flat.values()))
    order = sorted(flat, key=lambda name: (name != "title", -scores[list(flat).index(name)]))
    kept: dict[str, Any] = {}
    for name in order:
        if count(json_line({**kept, name: data[name]})) <= room:
            kept[name] = data[name]
        elif not kept or (len(kept) == 1 and "title" in kept and count(flat[name]) > room):
            content = CompressionInput(flat[name], visit.logical_id, ContentType.PAGE_DOC, query=_resolved_query(ctx))
            shrunk = await _compress_text(ctx, content, max(50, room - count(json_line(kept)) - 20))
            if count(json_line({**kept, name: shrunk})) <= room:
                kept[name] = shrunk
    left = tuple(f"visit {visit.visit_id}: {name}" for name in data if name not in kept)
    return {name: kept[name] for name in data if name in kept}, left


async def _note_piece(ctx: PhaseContext, note: Note, label: str, place: int) -> _SourceItem:
    """A note within its limit: whole; else its matching passages, then compressed."""
    name, count = note.header.name, ctx.deps.counter.count
    text, left = _matching_passages(ctx, note.text, NOTE_TOKENS * (_PRESELECTION_FACTOR if ctx.deps.summarizer else 1))
    if count(text) > NOTE_TOKENS:
        text = await _compress_text(
            ctx, CompressionInput(text, note.logical_id, ContentType.GENERIC, query=_resolved_query(ctx)), NOTE_TOKENS
        )
    day = f" ({note.dated})" if note.dated else ""
    said = f"===== NOTE {name}{day} [{label}] =====\n{escape_pack_lines(text)}"
    recorded = (f"note {name}: {left} passages",) if left else ()
    item = Item(said, _WORTH["note"] - place, f"note {name}")
    return _SourceItem("forever_memory", item, Source(label, note.logical_id, f"Note: {note.header.title[:80]}"), recorded)


def _matching_passages(ctx: PhaseContext, text: str, limit: int) -> tuple[str, int]:
    """All of a text where it fits `limit` tokens, else the passages that share words with the query, best first, in order; and how
    many stay out. What stands beside them goes along while it fits a note's own limit: it says what they are about."""
    count = ctx.deps.counter.count
    if count(text) <= limit:
        return text, 0
    spans = passages(text)
    pieces = [text[start:stop] for start, stop in spans]
    scores = list(ctx.deps.scores(_query_terms(ctx), pieces))
    near = [
        max([scores[i], *(lent * scores[i + at] for at, lent in _NEIGHBOUR_WEIGHTS.items() if 0 <= i + at < len(scores))])
        for i in range(len(scores))
    ]
    taken, kept = 0, set[int]()
    for place in sorted(range(len(pieces)), key=lambda i: -near[i]):
        cost = count(pieces[place]) + 2
        if taken + cost <= (limit if scores[place] > 0 else min(limit, NOTE_TOKENS)):
            taken += cost
            kept.add(place)
    return join_passages(text, spans, kept), len(pieces) - len(kept)


async def _compress_text(ctx: PhaseContext, content: CompressionInput, target: int) -> str:
    """A text within `target` tokens where a sound compression fits it, else as it is."""
    if ctx.deps.summarizer is None:
        return content.text
    return ctx.record_compression(await ctx.deps.summarizer.fit_text(content, target=target, site=ctx.site))


def _items_within_limit(ctx: PhaseContext, pieces: Sequence[_SourceItem]) -> tuple[tuple[_SourceItem, ...], tuple[str, ...]]:
    """As many whole pieces as all sources may take, in their order of worth; and the names of the others."""
    room, kept, left = SOURCES_TOKENS, list[_SourceItem](), list[str]()
    for piece in pieces:
        cost = ctx.deps.counter.count(piece.item.text) + 2
        if cost <= room:
            room -= cost
            kept.append(piece)
        else:
            left.append(piece.item.name)
    return tuple(kept), tuple(left)


def _document(name: str, pieces: Sequence[_SourceItem]) -> InputDocument:
    headers = {"cached_intelligence": CACHED_HEADING, "forever_memory": FOREVER_HEADING}
    return InputDocument(name, items=tuple(p.item for p in pieces if p.document == name), header=headers.get(name, ""))


def _resolved_query(ctx: PhaseContext) -> str:
    return ctx.analysis().resolved_query


def _query_terms(ctx: PhaseContext) -> str:
    """The person's own words, and what they mean: a passage may share either."""
    return f"{ctx.query} {_resolved_query(ctx)}"
