"""What RETRIEVAL may choose from beside turns: headers of memory, research, visits and notes (004 section 4.1).

Each kind is ranked by the words it shares with the query and keeps to its own tokens (004 section 7.1); nothing is loaded here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pandora_dagster.contracts.model_calls import InputDocument, Item
from pandora_dagster.contracts.user.sources import NoteListing, ResearchRow, VisitRow
from pandora_dagster.documents.markdown import cell
from pandora_dagster.documents.passages import passages
from pandora_dagster.errors import DocumentError
from pandora_dagster.phases.core.phase_context import PhaseContext, json_line
from pandora_dagster.retrieval.freshness import age_hours, is_expired

HEADER_TOKENS = {"memory_headers": 400, "research_headers": 500, "visit_headers": 500, "note_headers": 400}
"""Tokens of each kind of header (004 section 7.1); notes, which it does not count, take what turns leave."""
MOST_OFFERED = 20
_RELEVANT = 1e7
"""Headers that share words with the query stay before turn summaries; the others fill what these leave."""
_LINKED = 0.3
"""What a note takes over of the best note that links to it."""
_REFERRED = 2.0
"""What a page has that the query refers to: more than any that only shares its words, which has at most 1."""
_PASSAGE_CHARS = 240
"""Of a note's passage, what its header shows."""
_MOST_MATCHES = 8


@dataclass(frozen=True, slots=True)
class SourceHeaders:
    """The header documents, the names that had no room among their kind, and what could not be offered at all."""

    documents: tuple[InputDocument, ...]
    left_out: tuple[str, ...]
    notices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Header:
    name: str
    values: Mapping[str, Any]
    score: float


def list_source_headers(ctx: PhaseContext) -> SourceHeaders:
    """Headers of everything but turns, of this turn's person alone."""
    user, deps = ctx.turn.key.user, ctx.deps
    analysis = ctx.analysis()
    title = analysis.content_reference.title if analysis.content_reference else ""
    query = " ".join((ctx.query, analysis.resolved_query, *analysis.entities, title))
    research = _newest_by_topic(deps.sources.research_rows(user))
    listing = deps.notes.listing(user, query)
    kinds = {
        "memory_headers": _memory_headers(ctx, query),
        "research_headers": _research_headers(ctx, query, research),
        "visit_headers": _visit_headers(ctx, query, deps.sources.visit_rows(user), research),
        "note_headers": _note_headers(ctx, query, listing),
    }
    documents: list[InputDocument] = []
    left_out: list[str] = []
    for name, headers in kinds.items():
        document, left = _headers_within_budget(ctx, name, headers)
        documents.append(document)
        left_out += left
    return SourceHeaders(tuple(documents), tuple(left_out), listing.notices)


def _headers_within_budget(ctx: PhaseContext, name: str, headers: Sequence[_Header]) -> tuple[InputDocument, tuple[str, ...]]:
    """As many whole headers as their kind may take, best first, shown in the given order; and the names of the others."""
    room, kept, left = HEADER_TOKENS[name], set[int](), list[str]()
    for place in sorted(range(len(headers)), key=lambda i: (-headers[i].score, i)):
        cost = ctx.deps.counter.count(json_line(headers[place].values) + "\n")
        if cost <= room and len(kept) < MOST_OFFERED:
            room -= cost
            kept.add(place)
        else:
            left.append(headers[place].name)
    chosen = [h for i, h in enumerate(headers) if i in kept]
    items = tuple(Item(json_line(h.values), (_RELEVANT if h.score > 0 else 0.0) + h.score, h.name) for h in chosen)
    return InputDocument(name, items=items), tuple(left)


def _memory_headers(ctx: PhaseContext, query: str) -> list[_Header]:
    entries = ctx.deps.memory.entries(ctx.turn.key.user)
    scores = ctx.deps.scores(query, [f"{e.key.replace('_', ' ')} {cell(e.value)}" for e in entries])
    return [
        _Header(
            f"memory {e.key}",
            {"key": e.key, "value_preview": str(e.value)[:80], "last_updated": e.last_updated, "kind": e.kind},
            score,
        )
        for e, score in zip(entries, scores, strict=True)
    ]


def _research_headers(ctx: PhaseContext, query: str, rows: Sequence[ResearchRow]) -> list[_Header]:
    now = ctx.deps.clock()
    scores = ctx.deps.scores(query, [f"{_words(r.topic)} {_words(r.cache_key)} {r.summary}" for r in rows])
    return [
        _Header(
            f"research {row.topic}",
            {
                "topic": row.topic,
                "cache_key": row.cache_key,
                "age_hours": age_hours(row.created_at, now),
                "quality_score": row.quality_score,
            }
            | _query_matches(ctx, query, _research_text(ctx, row))
            | ({"expired": True} if is_expired(row.expires_at, now) else {})
            | ({"visits": list(row.webpage_cache[:5])} if row.webpage_cache else {}),
            score,
        )
        for row, score in zip(rows, scores, strict=True)
    ]


def _research_text(ctx: PhaseContext, row: ResearchRow) -> str:
    """What a topic's research tells; a record that can not be read is offered by its summary alone: nothing named it yet."""
    try:
        claims = ctx.deps.sources.research(ctx.turn.key.user, row.topic).claims
    except DocumentError:
        claims = ()
    return " ".join((row.summary, *(c.claim for c in claims)))


def _query_matches(ctx: PhaseContext, query: str, text: str) -> dict[str, Any]:
    """The words of the query that the text behind a header says, so that it can be chosen by what it holds; {} where it has none."""
    words = dict.fromkeys(_words(query).split())
    said = [w for w in words if ctx.deps.scores(w, [text])[0] > 0][:_MOST_MATCHES]
    return {"says": said} if said else {}


def _visit_headers(ctx: PhaseContext, query: str, rows: Sequence[VisitRow], research: Sequence[ResearchRow]) -> list[_Header]:
    """A page of the turn that the query refers to, or of that turn's research, counts as named by it (004 section 6.2)."""
    now, referred = ctx.deps.clock(), _referred_turn(ctx)
    topics = {visit: row for row in reversed(research) for visit in row.webpage_cache}
    scores = ctx.deps.scores(query, [f"{r.title} {_words(r.url)} {r.page_type} {' '.join(r.fields)}" for r in rows])
    headers: list[_Header] = []
    for row, score in zip(rows, scores, strict=True):
        topic = topics.get(row.visit_id)
        turn = row.source_turn or (topic.source_turn if topic else None)
        values: dict[str, Any] = {
            "visit_id": row.visit_id,
            "url": row.url,
            "page_type": row.page_type,
            "age_hours": age_hours(row.visited_at, now),
            "title": row.title,
            "fields": list(row.fields),
            "topic": topic.topic if topic else "",
            "turn": turn,
        }
        named = referred is not None and (turn == referred[0] or (topic is not None and topic.topic == referred[1]))
        headers.append(
            _Header(f"visit {row.visit_id}", {k: v for k, v in values.items() if v not in ("", None)}, score + _REFERRED * named)
        )
    return headers


def _referred_turn(ctx: PhaseContext) -> tuple[int, str | None] | None:
    """The turn that the query refers to, and the topic that it researched."""
    reference = ctx.analysis().content_reference
    if reference is None or reference.source_turn is None:
        return None
    rows = ctx.deps.index.rows(ctx.turn.key.user, before=reference.source_turn + 1, limit=1)
    return reference.source_turn, next((r.research_topic for r in rows if r.number == reference.source_turn), None)


def _note_headers(ctx: PhaseContext, query: str, listing: NoteListing) -> list[_Header]:
    """The notes that the query leads to, with the passage that does, or that one of them links to; all of them where they are few."""
    own = {match.name: match for match in listing.matches}
    lent: dict[str, float] = {}
    for header in listing.headers:
        for link in header.links if header.name in own else ():
            lent[_stem(link)] = max(lent.get(_stem(link), 0.0), _LINKED * own[header.name].score)
    found: list[_Header] = []
    for header in listing.headers:
        match = own.get(header.name)
        score = max(match.score if match else 0.0, lent.get(_stem(header.name), 0.0))
        if score > 0 or len(listing.headers) <= MOST_OFFERED:
            told = _best_excerpt(ctx, query, match.passage) if match else ""
            values = {"note": header.name, "title": header.title, "tags": list(header.tags)}
            values |= {"passage": told} if told.lstrip("# ") not in ("", header.title) else {}
            found.append(_Header(f"note {header.name}", values, score))
    return found


def _best_excerpt(ctx: PhaseContext, query: str, passage: str) -> str:
    """The part of a passage that says most about the query, as one line: it is offered here and loaded later."""
    parts = [passage[start:stop] for start, stop in passages(passage, longest=_PASSAGE_CHARS)]
    scores = ctx.deps.scores(query, parts)
    return " ".join(parts[max(range(len(parts)), key=lambda i: (scores[i], -i))].split()) if parts else ""


def _newest_by_topic(rows: Iterable[ResearchRow]) -> tuple[ResearchRow, ...]:
    newest: dict[str, ResearchRow] = {}
    for row in rows:
        newest.setdefault(row.topic, row)
    return tuple(newest.values())


def _stem(name: str) -> str:
    """A note's name as wiki links say it: without folders and ending."""
    return name.rpartition("/")[2].removesuffix(".md").lower()


def _words(name: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in name).split())
