"""Cached research as a source (specification 004, sections 3.5 and 4.1)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.model_calls import Item, Source
from pandora_dagster.contracts.phase_outputs import GatheredContext, RetrievalPlan
from pandora_dagster.contracts.ports.context_source import (
    ContextSource,
    OmittedItem,
    SourceHeaders,
    SourcePassage,
    SourceQuery,
    SourceSection,
    SourceTraits,
)
from pandora_dagster.contracts.ports.user_storage import SourceStore
from pandora_dagster.contracts.user.sources import Claim, Research, ResearchRow
from pandora_dagster.documents.citations import page_address
from pandora_dagster.documents.markdown import table
from pandora_dagster.documents.meta import meta_block
from pandora_dagster.errors import DocumentError
from pandora_dagster.phases.core.phase_context import json_line
from pandora_dagster.phases.gather.source_text import (
    UNLINKED,
    Header,
    compress_text,
    fit_headers,
    one_line,
    plain_words,
    plan_error,
    quality_word,
    search_text,
)
from pandora_dagster.retrieval.freshness import age_hours, freshness_score, hours_left, is_expired

RESEARCH_HEADER_TOKENS = 500
"""Tokens of the headers (specification 004, section 7.1)."""
RESEARCH_TOKENS = 700
"""Tokens of one research record as SYNTHESIS reads it."""
TOP_CLAIMS = 5
"""Claims of cached research that SYNTHESIS reads (specification 004, section 7.3)."""
_MAX_MATCHES = 8
"""Words of the query that a header lists as found in its record."""
_MAX_COLUMNS = 5
"""Columns of the table of top results, its source and age apart."""
_MAX_HEADER_VISITS = 5
"""Visits of a research that its header names."""
_MIN_SUMMARY_TOKENS = 50
"""Least tokens that a summary is compressed to."""
_STALE_FACTOR = 0.5
"""Factor on the confidence of research that expired."""
_PAGE_HINT = "add the page's record (`pandora visit add`), or the research again without it (`pandora research add`)"


@dataclass(frozen=True, slots=True)
class ResearchSource(ContextSource[Research]):
    """Source over cached research: at most one topic for a turn."""

    store: SourceStore
    traits: ClassVar[SourceTraits] = SourceTraits(
        name="research",
        plan_field="research_cache_match",
        answer_field="cached_research",
        document="cached_intelligence",
        heading="===== CACHED INTELLIGENCE (Phase 1) =====",
        priority=3e9,
    )

    def headers(self, query: SourceQuery) -> SourceHeaders:
        now, words = query.now, search_text(query)
        rows = newest_by_topic(self.store.research_rows(query.user))
        scores = query.scores(words, [f"{plain_words(r.topic)} {plain_words(r.cache_key)} {r.summary}" for r in rows])
        headers = [
            Header(
                f"research {row.topic}",
                {
                    "topic": row.topic,
                    "cache_key": row.cache_key,
                    "age_hours": age_hours(row.created_at, now),
                    "quality_score": row.quality_score,
                }
                | _query_matches(query, words, self._searched_text(query.user, row))
                | ({"expired": True} if is_expired(row.expires_at, now) else {})
                | ({"visits": list(row.webpage_cache[:_MAX_HEADER_VISITS])} if row.webpage_cache else {}),
                score,
            )
            for row, score in zip(rows, scores, strict=True)
        ]
        return fit_headers(query, "research_headers", headers, RESEARCH_HEADER_TOKENS)

    def choices(self, plan: RetrievalPlan) -> tuple[tuple[str, str, str], ...]:
        match = plan.research_cache_match
        return ((f"research {match.topic}", "", f"reuse: {match.reuse_recommendation}"),) if match.matched else ()

    def load(self, query: SourceQuery, plan: RetrievalPlan) -> tuple[tuple[Research, ...], tuple[str, ...]]:
        """The matched research. A page that it names and that does not exist is a missing document too."""
        match = plan.research_cache_match
        if not match.matched:
            return (), ()
        if not match.topic:
            raise DocumentError(
                "retrieval_plan.json: research_cache_match: matched without a topic: expected one of those offered", missing=True
            )
        try:
            research = self.store.research(query.user, match.topic)
        except DocumentError as error:
            raise plan_error("research_cache_match", error) from error
        stored = {row.visit_id for row in self.store.visit_rows(query.user)}
        if missing := [v for v in research.webpage_cache if v not in stored]:
            where = f"retrieval_plan.json: research_cache_match: {research.logical_id}: webpage_cache: {', '.join(missing)}"
            message = f"{where}: no such visit record: expected every page that the research names"
            raise DocumentError(message, missing=True, hint=_PAGE_HINT)
        return (research,), ()

    def cite(self, record: Research) -> Source:
        """A record whose claims are all from one page is cited with its address."""
        pages = {claim.evidence.url if claim.evidence else page_address(claim.claim) for claim in record.claims}
        address = f" <{page}>" if len(pages) == 1 and (page := pages.pop()) else ""
        return Source("", record.logical_id, f"Cached research (quality: {record.quality_score:.2f}){address}")

    def age(self, record: Research, now: datetime) -> float | None:
        return age_hours(record.created_at, now)

    async def read(self, query: SourceQuery, record: Research, label: str, rank: int) -> SourcePassage:
        """Summary and top claims with age and expiry (specification 004, section 7.3): the least certain claims go first, then the
        summary shrinks."""
        count, name, now = query.counter.count, f"research {record.topic}", query.now
        top_claims = sorted(record.claims, key=lambda c: -c.confidence)[:TOP_CLAIMS]
        chosen: list[Claim] = [c for c in record.claims if c in top_claims][:TOP_CLAIMS]
        left_out = [f"{name}: {c.claim[:80]}" for c in record.claims if c not in chosen]
        summary = record.summary
        values: dict[str, Any] = {
            "topic": record.topic,
            "quality_score": record.quality_score,
            "age_hours": self.age(record, now),
            "freshness_score": freshness_score(record.created_at, record.expires_at, now),
            "expires_hours": hours_left(record.expires_at, now),
        } | ({"stale": True} if is_expired(record.expires_at, now) else {})

        def line(claims: Sequence[Claim]) -> str:
            return json_line({**values, "summary": summary, "top_results": [c.model_dump(exclude={"evidence"}) for c in claims]})

        while chosen and count(line(chosen)) > RESEARCH_TOKENS and count(line(())) <= RESEARCH_TOKENS:
            least = min(chosen, key=lambda c: c.confidence)
            chosen = [c for c in chosen if c is not least]
            left_out.append(f"{name}: {least.claim[:80]}")
        if (over := count(line(chosen)) - RESEARCH_TOKENS) > 0:
            target = max(_MIN_SUMMARY_TOKENS, count(summary) - over)
            summary = await compress_text(query, summary, record.logical_id, ContentType.RESEARCH_DOC, target)
        text = f"===== CACHED RESEARCH {record.topic} [{label}] =====\n{line(chosen)}"
        return SourcePassage((Item(text, self.traits.priority - rank, name),), tuple(left_out))

    def render(self, gathered: GatheredContext, records: Sequence[Research], cited: Sequence[Source], now: datetime) -> SourceSection:
        gathered_research = gathered.cached_research
        record = next((r for r in records if gathered_research and r.topic == gathered_research.topic), None)
        if gathered_research is None:
            return SourceSection()
        if record is None:
            block = meta_block({"type": "research_cache", "topic": gathered_research.topic, "linked": False})
            text = f"### Cached Research Intelligence\n\n{block}\n\n**Topic:** {one_line(gathered_research.topic)} {UNLINKED}"
            return SourceSection(text, unlinked=(f"research {one_line(gathered_research.topic)} is not among the loaded sources",))
        number = next(s.label for s in cited if s.path == record.logical_id)
        label, age = f"[{number}]", age_hours(record.created_at, now)
        remaining_hours, stale = hours_left(record.expires_at, now), is_expired(record.expires_at, now)
        meta: dict[str, Any] = {
            "type": "research_cache",
            "topic": record.topic,
            "quality_score": record.quality_score,
            "freshness_score": freshness_score(record.created_at, record.expires_at, now),
            "age_hours": age,
            "expires_hours": remaining_hours,
            "source_count": len({c.source for c in record.claims}),
        } | ({"stale": True, "recommendation": "refresh"} if stale else {})
        rows, unlinked = _result_table(gathered_research.top_results, record, label, age)
        lines = [
            f"**Topic:** {record.topic} {label}",
            f"**Quality Score:** {record.quality_score:.2f} ({quality_word(record.quality_score)} confidence)",
            f"**Age:** {age} hours",
            f"**Expires:** {remaining_hours} hours" if not stale else f"**Expired:** {-remaining_hours} hours ago; refresh recommended",
        ]
        parts = ["### Cached Research Intelligence", meta_block(meta), "\n".join(lines)]
        parts += [f"**Summary:** {one_line(gathered_research.summary)} {label}"] if gathered_research.summary.strip() else []
        parts += [f"**Top Results:**\n\n{rows}"] if rows else []
        return SourceSection(
            "\n\n".join(parts),
            used_labels=frozenset({number}),
            unlinked=unlinked,
            stale=(f"research {record.topic} expired {-remaining_hours} hours ago",) if stale else (),
            recommendations=(f"refresh the research on {record.topic}",) if stale else (),
            confidences=(record.quality_score * (_STALE_FACTOR if stale else 1.0),),
        )

    def unused(self, gathered: GatheredContext, records: Sequence[Research]) -> tuple[str, ...]:
        return tuple(f"research {r.topic}" for r in records) if gathered.cached_research is None else ()

    def drop_last(self, gathered: GatheredContext) -> tuple[GatheredContext, OmittedItem] | None:
        research = gathered.cached_research
        if research is None or not research.top_results:
            return None
        shorter = research.model_copy(update={"top_results": research.top_results[:-1]})
        item = one_line(next(iter(research.top_results[-1].values()), ""))
        return gathered.model_copy(update={"cached_research": shorter}), OmittedItem(f"research {research.topic}", item=item)

    def path(self, user: UserId, cited_path: str) -> str | None:
        return (self.store.path(user, cited_path) or cited_path) if cited_path.startswith("research_cache/") else None

    def _searched_text(self, user: UserId, row: ResearchRow) -> str:
        """Summary and claims of a topic; of a record that cannot be read the summary alone, since no plan has named it."""
        try:
            claims = self.store.research(user, row.topic).claims
        except DocumentError:
            claims = ()
        return " ".join((row.summary, *(c.claim for c in claims)))


def newest_by_topic(rows: Iterable[ResearchRow]) -> tuple[ResearchRow, ...]:
    """The first of `rows`, which are newest first, for each topic."""
    newest: dict[str, ResearchRow] = {}
    for row in rows:
        newest.setdefault(row.topic, row)
    return tuple(newest.values())


def _query_matches(query: SourceQuery, words: str, text: str) -> dict[str, Any]:
    """The query's words that the record behind a header contains; {} where it contains none."""
    matches = [w for w in dict.fromkeys(plain_words(words).split()) if query.scores(w, [text])[0] > 0][:_MAX_MATCHES]
    return {"says": matches} if matches else {}


def _result_table(results: Sequence[Mapping[str, Any]], record: Research, label: str, age: float) -> tuple[str, tuple[str, ...]]:
    """The table of top results, and a sentence for each result whose source the record does not have."""
    if not results:
        return "", ()
    known_sources = {one_line(c.source) for c in record.claims}
    columns = [name for name in dict.fromkeys(n for r in results for n in r) if name != "source"][:_MAX_COLUMNS]
    rows: list[list[str]] = []
    unlinked: list[str] = []
    for result in results:
        values = [one_line(result.get(name, "")) for name in columns]
        source = one_line(result.get("source", ""))
        if source not in known_sources:
            unlinked.append(f"research result {(values or [source])[0][:60]} has no source that was loaded")
            source = f"{source} {UNLINKED}".strip()
        rows.append([f"{(values or [''])[0]} {label}".strip(), *values[1:], source, f"{age}h ago"])
    heads = [one_line(name).replace("_", " ").title() for name in columns] or ["Result"]
    return table([*heads, "Source", "Last Verified"], rows), tuple(unlinked)
