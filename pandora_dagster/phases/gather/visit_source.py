"""Visited pages as a source (specification 004, sections 3.6 and 6.2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.model_calls import Item, Source
from pandora_dagster.contracts.phase_outputs import GatheredContext, RetrievalPlan, VisitData
from pandora_dagster.contracts.ports.context_source import (
    ContextSource,
    OmittedItem,
    SourceHeaders,
    SourcePassage,
    SourceQuery,
    SourceSection,
    SourceTraits,
)
from pandora_dagster.contracts.ports.turn_storage import TurnIndex
from pandora_dagster.contracts.ports.user_storage import SourceStore
from pandora_dagster.contracts.user.sources import Visit
from pandora_dagster.documents.markdown import table
from pandora_dagster.documents.meta import meta_block
from pandora_dagster.errors import DocumentError
from pandora_dagster.phases.core.phase_context import json_line
from pandora_dagster.phases.gather.research_pages import flat_fields
from pandora_dagster.phases.gather.research_source import newest_by_topic
from pandora_dagster.phases.gather.source_text import (
    UNLINKED,
    Header,
    compress_text,
    fit_headers,
    one_line,
    passage_text,
    plain_words,
    plan_error,
    search_text,
)
from pandora_dagster.retrieval.freshness import age_hours

VISIT_HEADER_TOKENS = 500
"""Tokens of the headers (specification 004, section 7.1)."""
VISIT_TOKENS = 600
"""Tokens of one visit as SYNTHESIS reads it."""
VERIFY_HOURS = 6.0
"""Section 2 recommends to verify price and stock on a visited page that is older."""
_MIN_FIELD_TOKENS, _FIELD_FRAME_TOKENS = 50, 20
"""Least tokens that a field is compressed to, and tokens of its name and quotes."""
_SMALL_SHARE = 0.1
"""Share of the tokens of a visit that a field may take to be small."""
_REFERENCE_SCORE = 2.0
"""Added to a page that the query refers to: more than any page gets for shared words, which is at most 1."""


@dataclass(frozen=True, slots=True)
class VisitSource(ContextSource[Visit]):
    """Source over visited pages."""

    store: SourceStore
    index: TurnIndex
    traits: ClassVar[SourceTraits] = SourceTraits(
        name="visit",
        plan_field="webpage_cache_needed",
        answer_field="visit_data",
        document="visit_records",
        priority=2e9,
    )

    def headers(self, query: SourceQuery) -> SourceHeaders:
        """The visited pages by their match with the query. A page of the turn that the query refers to, or of that turn's research, has
        `_REFERENCE_SCORE` in addition (specification 004, section 6.2)."""
        referred_turn, referred_topic = self._referred_turn(query)
        rows = self.store.visit_rows(query.user)
        research_by_visit = {v: r for r in reversed(newest_by_topic(self.store.research_rows(query.user))) for v in r.webpage_cache}
        texts = [f"{r.title} {plain_words(r.url)} {r.page_type} {' '.join(r.fields)}" for r in rows]
        headers: list[Header] = []
        for row, score in zip(rows, query.scores(search_text(query), texts), strict=True):
            research = research_by_visit.get(row.visit_id)
            turn = row.source_turn or (research.source_turn if research else None)
            values: dict[str, Any] = {
                "visit_id": row.visit_id,
                "url": row.url,
                "page_type": row.page_type,
                "age_hours": age_hours(row.visited_at, query.now),
                "title": row.title,
                "fields": list(row.fields),
                "topic": research.topic if research else "",
                "turn": turn,
            }
            is_of_topic = research is not None and research.topic == referred_topic
            is_referred = referred_turn is not None and (turn == referred_turn or is_of_topic)
            shown = {k: v for k, v in values.items() if v not in ("", None)}
            headers.append(Header(f"visit {row.visit_id}", shown, score + _REFERENCE_SCORE * is_referred))
        return fit_headers(query, "visit_headers", headers, VISIT_HEADER_TOKENS)

    def choices(self, plan: RetrievalPlan) -> tuple[tuple[str, str, str], ...]:
        return tuple((visit_id, "", "") for visit_id in plan.webpage_cache_needed)

    def load(self, query: SourceQuery, plan: RetrievalPlan) -> tuple[tuple[Visit, ...], tuple[str, ...]]:
        try:
            return tuple(self.store.visit(query.user, visit_id) for visit_id in dict.fromkeys(plan.webpage_cache_needed)), ()
        except DocumentError as error:
            raise plan_error("webpage_cache_needed", error) from error

    def cite(self, record: Visit) -> Source:
        title = str(record.extracted_data.get("title") or record.page_type)
        return Source("", record.logical_id, f"Visited page: {title[:80]} <{record.url}>")

    def age(self, record: Visit, now: datetime) -> float | None:
        return age_hours(record.visited_at, now)

    async def read(self, query: SourceQuery, record: Visit, label: str, rank: int) -> SourcePassage:
        """Extracted fields and zones within the limit, nothing of the raw page (specification 004, section 7.3)."""
        values = {
            "label": label,
            "visit_id": record.visit_id,
            "url": record.url,
            "page_type": record.page_type,
            "age_hours": self.age(record, query.now),
        }
        fields, left_out = await _fields_within_limit(query, record, VISIT_TOKENS - query.counter.count(json_line(values)))
        text = json_line({**values, "extracted_data": fields})
        return SourcePassage((Item(text, self.traits.priority - rank, f"visit {record.visit_id}"),), left_out)

    def render(self, gathered: GatheredContext, records: Sequence[Visit], cited: Sequence[Source], now: datetime) -> SourceSection:
        if not gathered.visit_data:
            return SourceSection()
        labels = {s.path: s.label for s in cited}
        rows: list[tuple[str, ...]] = []
        unlinked: list[str] = []
        used: dict[str, Visit] = {}
        for data in gathered.visit_data:
            record = _matching_visit(data, records)
            used |= {record.visit_id: record} if record else {}
            label = f"[{labels[record.logical_id]}]" if record else UNLINKED
            age = f"{age_hours(record.visited_at, now)}h" if record else ""
            unlinked += [] if record else [f"page {one_line(data.url)[:80]} is not among the loaded sources"]
            rows += [
                (f"{_bare_address(record.url if record else data.url)} {label}", one_line(name), one_line(value), age)
                for name, value in flat_fields(dict(data.extracted))
                if value
            ]
        ages = [(v, age_hours(v.visited_at, now)) for v in used.values()]
        to_verify = [(v, age) for v, age in ages if age > VERIFY_HOURS]
        meta: dict[str, Any] = {"type": "visit_data", "visit_count": len(gathered.visit_data)}
        meta |= {"freshness_avg": round(sum(age for _, age in ages) / len(ages), 1)} if ages else {}
        meta |= {"verify": [v.visit_id for v, _ in to_verify]} if to_verify else {}
        return SourceSection(
            f"### Visit Record Data\n\n{meta_block(meta)}\n\n{table(('URL', 'Data Point', 'Value', 'Freshness'), rows)}",
            used_labels=frozenset(labels[v.logical_id] for v in used.values()),
            unlinked=tuple(unlinked),
            recommendations=tuple(
                f"verify {_bare_address(v.url)} where price or stock matters: seen {age} hours ago" for v, age in to_verify
            ),
            confidences=tuple(v.extraction_quality for v in used.values()),
        )

    def unused(self, gathered: GatheredContext, records: Sequence[Visit]) -> tuple[str, ...]:
        used = {record.visit_id for data in gathered.visit_data if (record := _matching_visit(data, records))}
        return tuple(f"visit {v.visit_id}" for v in records if v.visit_id not in used)

    def drop_last(self, gathered: GatheredContext) -> tuple[GatheredContext, OmittedItem] | None:
        if not gathered.visit_data:
            return None
        shorter = gathered.model_copy(update={"visit_data": gathered.visit_data[:-1]})
        return shorter, OmittedItem(f"page {one_line(gathered.visit_data[-1].url)[:80]}")

    def path(self, user: UserId, cited_path: str) -> str | None:
        return (self.store.path(user, cited_path) or cited_path) if cited_path.startswith("webpage_cache/") else None

    def _referred_turn(self, query: SourceQuery) -> tuple[int | None, str | None]:
        """The turn that the query refers to, and the topic that it researched; None where there is none."""
        number = query.reference.source_turn if query.reference else None
        if number is None:
            return None, None
        rows = self.index.rows(query.user, before=number + 1, limit=1)
        return number, next((r.research_topic for r in rows if r.number == number), None)


async def _fields_within_limit(query: SourceQuery, visit: Visit, budget_tokens: int) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The fields that match the query best within `budget_tokens` tokens, whole, and the first that is too large compressed to the rest.

    Small fields, such as values and short zones, come first, in at most half of the tokens: a large zone would crowd out a price.
    """
    count, data = query.counter.count, visit.extracted_data
    if count(json_line(data)) <= budget_tokens:
        return data, ()
    field_texts = {name: "; ".join(f"{path}: {value}" for path, value in flat_fields(value, name)) for name, value in data.items()}
    scores = dict(zip(field_texts, query.scores(passage_text(query), list(field_texts.values())), strict=True))
    ranked = sorted(field_texts, key=lambda name: (name != "title", -scores[name]))
    chosen: dict[str, Any] = {}
    for name in ranked:
        is_small = count(field_texts[name]) <= _SMALL_SHARE * budget_tokens
        if is_small and count(json_line({**chosen, name: data[name]})) <= budget_tokens // 2:
            chosen[name] = data[name]
    has_compressed = False
    for name in ranked:
        if name in chosen:
            continue
        remaining = budget_tokens - count(json_line(chosen)) - _FIELD_FRAME_TOKENS
        if count(json_line({**chosen, name: data[name]})) <= budget_tokens:
            chosen[name] = data[name]
        elif not has_compressed and remaining >= _MIN_FIELD_TOKENS:
            has_compressed = True
            text = await compress_text(query, field_texts[name], visit.logical_id, ContentType.PAGE_DOC, remaining)
            if count(json_line({**chosen, name: text})) <= budget_tokens:
                chosen[name] = text
    left_out = tuple(f"visit {visit.visit_id}: {name}" for name in data if name not in chosen)
    return {name: chosen[name] for name in data if name in chosen}, left_out


def _matching_visit(data: VisitData, records: Sequence[Visit]) -> Visit | None:
    """The loaded record that gathered data names by its id; without an id, the only record of its address."""
    matches = [v for v in records if (v.visit_id == data.visit_id if data.visit_id else v.url == data.url)]
    return matches[0] if len(matches) == 1 else None


def _bare_address(url: str) -> str:
    """An address without scheme and `www`."""
    return one_line(url).removeprefix("https://").removeprefix("http://").removeprefix("www.")
