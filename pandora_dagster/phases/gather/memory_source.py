"""Stored preferences and facts as a source. A page of `preferences.md` or `facts.md` is one record with the entries chosen from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar

from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.contracts.model_calls import Item, Source
from pandora_dagster.contracts.phase_outputs import GatheredContext, RetrievalPlan
from pandora_dagster.contracts.ports.context_source import (
    ContextSource,
    SourceHeaders,
    SourcePassage,
    SourceQuery,
    SourceSection,
    SourceTraits,
)
from pandora_dagster.contracts.ports.user_storage import MemoryStore
from pandora_dagster.contracts.user.user_memory import MemoryEntry
from pandora_dagster.documents.markdown import cell, table
from pandora_dagster.documents.meta import meta_block
from pandora_dagster.errors import DocumentError
from pandora_dagster.phases.gather.source_text import UNLINKED, Header, compress_text, fit_headers, one_line, search_text

MEMORY_HEADER_TOKENS = 400
"""Tokens of the headers (specification 004, section 7.1)."""
_PAGES = {"preference": "preferences.md", "fact": "facts.md"}
"""Kind of a memory entry -> the page that stores it."""
EARLIER_SUFFIX = " (earlier)"
"""Follows the key of a value that a newer one replaced."""
_PREVIEW_CHARACTERS = 80
"""Characters of a value in its header."""
_VALUE_TOKENS = 300
"""Tokens of one value. Most values are a few words; the longest that may be stored is a page."""


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """The chosen entries of one page, each with its rank in the plan."""

    name: str
    entries: tuple[tuple[int, MemoryEntry], ...]


@dataclass(frozen=True, slots=True)
class MemorySource(ContextSource[MemoryPage]):
    """Source over the user's memory."""

    store: MemoryStore
    traits: ClassVar[SourceTraits] = SourceTraits(
        name="memory",
        plan_field="relevant_memory_keys",
        answer_field="session_preferences",
        document="stored_preferences",
        heading="===== STORED USER PREFERENCES =====",
        priority=1e13,  # memory precedes all other sources (specification 004, section 7.3)
        is_supplementary=False,
        unused_fact="memory_not_used",
    )

    def headers(self, query: SourceQuery) -> SourceHeaders:
        """Entries whose last day has passed are not offered."""
        today, listing = query.now.date().isoformat(), self.store.listing(query.user)
        entries = [entry for entry in listing.entries if not entry.is_over(today)]
        scores = query.scores(search_text(query), [f"{e.key.replace('_', ' ')} {cell(e.value)}" for e in entries])
        headers = [
            Header(
                f"memory {e.key}",
                {"key": e.key, "value_preview": str(e.value)[:_PREVIEW_CHARACTERS], "last_updated": e.last_updated, "kind": e.kind},
                score,
            )
            for e, score in zip(entries, scores, strict=True)
        ]
        notices = tuple(fault.with_hint for fault in listing.faults.values())
        return fit_headers(query, "memory_headers", headers, MEMORY_HEADER_TOKENS, notices)

    def choices(self, plan: RetrievalPlan) -> tuple[tuple[str, str, str], ...]:
        return tuple((key, "", "") for key in plan.relevant_memory_keys)

    def load(self, query: SourceQuery, plan: RetrievalPlan) -> tuple[tuple[MemoryPage, ...], tuple[str, ...]]:
        """The pages by name."""
        stored, keys = self.store.listing(query.user).entries, plan.relevant_memory_keys
        if missing := [k for k in keys if all(e.key != k for e in stored)]:
            where = f"retrieval_plan.json: relevant_memory_keys: {', '.join(missing)}"
            raise DocumentError(f"{where}: not in the memory store: expected keys that were offered", missing=True)
        chosen = list(enumerate(e for k in dict.fromkeys(keys) for e in stored if e.key == k))
        pages = sorted({_PAGES[e.kind] for _, e in chosen})
        return tuple(MemoryPage(name, tuple((n, e) for n, e in chosen if _PAGES[e.kind] == name)) for name in pages), ()

    def cite(self, record: MemoryPage) -> Source:
        return Source("", record.name, "Stored user preferences")

    async def read(self, query: SourceQuery, record: MemoryPage, label: str, rank: int) -> SourcePassage:
        """One item for each entry; a value over its limit is compressed (decision 2, docs/decisions/02-selection-then-compression.md)."""
        items: list[Item] = []
        for entry_rank, entry in record.entries:
            shown = entry
            if query.compress and query.counter.count(entry.value) > _VALUE_TOKENS:
                name = f"{record.name}: {entry.key}"
                shown = replace(entry, value=await compress_text(query, entry.value, name, ContentType.GENERIC, _VALUE_TOKENS))
            items.append(Item("\n".join(_entry_lines(shown)), self.traits.priority - entry_rank, f"memory {entry.key}"))
        return SourcePassage(tuple(items))

    def render(self, gathered: GatheredContext, records: Sequence[MemoryPage], cited: Sequence[Source], now: datetime) -> SourceSection:
        preferences = gathered.session_preferences
        stored = _entries_by_key(records)
        pages = {page.name for page in records if any(e.key in preferences for _, e in page.entries)}
        confidences = tuple(stored[k].confidence for k in preferences if k in stored)
        return SourceSection(
            text=_preference_table(preferences, stored, confidences),
            position=-1,
            used_labels=frozenset(s.label for s in cited if not s.turn_id and s.path in pages),
            unlinked=tuple(f"preference {one_line(k)[:80]} is not among the loaded sources" for k in preferences if k not in stored),
            confidences=confidences,
        )

    def unused(self, gathered: GatheredContext, records: Sequence[MemoryPage]) -> tuple[str, ...]:
        ranked = sorted((pair for page in records for pair in page.entries), key=lambda pair: pair[0])
        return tuple(e.key for _, e in ranked if e.key not in gathered.session_preferences)


def _entries_by_key(records: Sequence[MemoryPage]) -> dict[str, MemoryEntry]:
    return {e.key: e for page in records for _, e in page.entries}


def _entry_lines(entry: MemoryEntry) -> list[str]:
    """The current value, and below it the value that it contradicts."""
    origin = f", turn {entry.source_turn}" if entry.source_turn else ""
    lines = [f"- {entry.key}: {cell(entry.value)} (confidence {entry.confidence:.2f}{origin})"]
    lines += [f"  until {entry.until}"] if entry.until else []
    return lines + [f"  earlier, until {(entry.last_updated or 'an unknown day')[:10]}: {cell(e.value)}" for e in entry.earlier[:1]]


def _preference_table(preferences: Mapping[str, Any], stored: Mapping[str, MemoryEntry], confidences: Sequence[float]) -> str:
    if not preferences:
        return ""
    mean = round(sum(confidences) / len(confidences), 2) if confidences else 0.0
    rows = [row for k, v in preferences.items() for row in _preference_rows(k, v, stored.get(k))]
    meta = meta_block({"type": "preferences", "count": len(preferences), "confidence": mean})
    return f"### Session Preferences\n\n{meta}\n\n{table(('Preference', 'Value', 'Source'), rows)}"


def _preference_rows(key: str, value: object, entry: MemoryEntry | None) -> list[tuple[object, ...]]:
    """A preference; where it contradicts an older value both with their dates, the newer one marked current."""
    if entry is None:
        return [(one_line(key), one_line(value), f"not stored {UNLINKED}")]
    shown = one_line(value) + (f" (until {entry.until})" if entry.until else "")
    if not entry.earlier:
        return [(one_line(key), shown, _turn_origin(entry.source_turn))]
    older = entry.earlier[0]
    return [
        (one_line(key), f"{shown} (current, since {entry.last_updated[:10]})", _turn_origin(entry.source_turn)),
        (
            f"{one_line(older.key or key)}{EARLIER_SUFFIX}",
            f"{one_line(older.value)} ({older.last_updated[:10]})",
            _turn_origin(older.source_turn),
        ),
    ]


def _turn_origin(turn: int | None) -> str:
    return f"Turn {turn}" if turn else "set by the user"
