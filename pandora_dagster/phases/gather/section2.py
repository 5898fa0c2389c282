"""Section 2 in specification 004, section 5's dual format: Markdown for users and models, `_meta` YAML for code.

The subsections come from the registered sources; this module adds references and assessment, and makes the section fit its budget.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pandora_dagster.compression.query_coverage import QueryCoverage, query_coverage
from pandora_dagster.contracts.compression_results import GateVerdict
from pandora_dagster.contracts.model_calls import InputDocument, Item, Source
from pandora_dagster.contracts.phase_outputs import GatheredContext
from pandora_dagster.contracts.ports.context_source import ContextSource, OmittedItem
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.documents.citations import escape_citations, reference_list
from pandora_dagster.documents.meta import meta_block
from pandora_dagster.phases.gather.session_history import TurnInclusion
from pandora_dagster.phases.gather.source_text import quality_word

GATHERED_FILE = "gathered_context.json"
NOTHING_FOUND = "nothing was found"
"""The gap of a section 2 without a source."""


@dataclass(frozen=True, slots=True)
class LoadedSource:
    """The records of one source as SYNTHESIS reads them."""

    source: ContextSource[Any]
    records: tuple[Any, ...] = ()
    items: tuple[Item, ...] = ()
    cited: tuple[Source, ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Background:
    """What each call of SYNTHESIS gets although no plan names it: the session's window, or the known facts."""

    documents: tuple[InputDocument, ...] = ()
    """One with the name of a source's document continues it; the others precede the documents of sources."""
    cited: tuple[Source, ...] = ()
    left_out: tuple[str, ...] = ()
    inclusions: tuple[TurnInclusion, ...] = ()
    """The form of each turn of the session, where it has them."""


@dataclass(frozen=True, slots=True)
class LoadedContext:
    """What was loaded for SYNTHESIS, in the order of registration, and the labels under which it may be cited."""

    sources: tuple[LoadedSource, ...]
    cited: tuple[Source, ...]
    left_out: tuple[str, ...]
    language_gap: str = ""
    """What may be missed because the sources are in another language than the question."""
    query: str = ""
    """What the gathered text is for, with its references resolved."""


@dataclass(frozen=True, slots=True)
class Section2:
    """A rendered section 2, and what the phase reports of it."""

    text: str
    quality: float
    coverage: QueryCoverage
    verdicts: tuple[GateVerdict, ...] = ()
    """The quality gates of specification 004, section 10."""
    left_out: tuple[OmittedItem, ...] = ()


def next_label(cited: Sequence[Source]) -> int:
    """The first label after those of `cited`."""
    return max((int(source.label) for source in cited), default=0) + 1


def key_fact_budget(gathered: GatheredContext, loaded: LoadedContext, *, budget_tokens: int, counter: TokenMeasure, now: datetime) -> int:
    """Tokens that the key facts of one turn may take in a section 2 of `budget_tokens` tokens that has only that turn."""
    without_facts = tuple(t.model_copy(update={"key_facts": ()}) for t in gathered.prior_turns)
    omission = [OmittedItem("turn 0", "high")]
    sections = (
        _section2(gathered.model_copy(update={"prior_turns": (turn,)}), loaded, omission, now, QueryCoverage()) for turn in without_facts
    )
    return max(1, budget_tokens - max((counter.count(s.text) for s in sections), default=0))


def fit_section2(gathered: GatheredContext, loaded: LoadedContext, *, budget_tokens: int, counter: TokenMeasure, now: datetime) -> Section2:
    """Section 2 within `budget_tokens` tokens: the source of the lowest priority drops its items first; the section names them
    (specification 001, section 5)."""
    omitted: list[OmittedItem] = []
    section = _section2(gathered, loaded, omitted, now)
    by_priority = sorted((s.source for s in loaded.sources), key=lambda source: source.traits.priority)
    while counter.count(section.text) > budget_tokens:
        drops = (source.drop_last(gathered) for source in by_priority)
        drop = next((drop for drop in drops if drop), None)
        if drop is None:
            break
        gathered, omitted_item = drop
        omitted.append(omitted_item)
        section = _section2(gathered, loaded, omitted, now, section.coverage)
    if omitted:  # what was dropped may be a gap now: compared once, not for every item
        compared = _section2(gathered, loaded, omitted, now)
        section = compared if counter.count(compared.text) <= budget_tokens else section
    return replace(section, left_out=tuple(omitted))


def _section2(
    gathered: GatheredContext,
    loaded: LoadedContext,
    left_out: Sequence[OmittedItem],
    now: datetime,
    coverage: QueryCoverage | None = None,
) -> Section2:
    """`coverage`: that of the query where it is known; None: it is compared."""
    sections = [s.source.render(gathered, s.records, loaded.cited, now) for s in loaded.sources]
    labels = {label for s in sections for label in s.used_labels}
    used = tuple(s for s in loaded.cited if s.label in labels)
    unlinked = [sentence for s in sections for sentence in s.unlinked]
    stale = [sentence for s in sections for sentence in s.stale]
    recommendations = [sentence for s in sections for sentence in s.recommendations]
    body = [s.text for s in sorted(sections, key=lambda s: s.position)]
    coverage = coverage or (query_coverage(loaded.query, "\n\n".join(filter(None, body))) if used else QueryCoverage())
    gaps = [*unlinked, *stale, *coverage.gaps, *map(_plain, gathered.gaps), *([] if used else [NOTHING_FOUND])]
    gaps += [loaded.language_gap] if loaded.language_gap else []
    gaps += [f"no room for {name}" for name in loaded.left_out if _is_whole_record(name, loaded)]
    confidences = [value for s in sections for value in s.confidences] if used else []
    quality = round(min(sum(confidences) / len(confidences), coverage.share(gathered.gaps)), 2) if confidences else 0.0
    parts = [
        *body,
        reference_list(used) if used else "",
        _assessment(quality, gaps, recommendations, left_out),
    ]
    verdicts = (
        GateVerdict("sources_linked", not unlinked, "; ".join(unlinked)),
        GateVerdict("caches_fresh", not stale, "; ".join((*stale, *recommendations)) if stale else ""),
        GateVerdict("relevant_source", bool(used), "" if used else NOTHING_FOUND, float(len(used))),
    )
    return Section2("\n\n".join(p for p in parts if p), quality, coverage, verdicts)


def _plain(gap: str) -> str:
    """A gap that a model named, as one line of text."""
    return escape_citations(" ".join(gap.split()))


def _is_whole_record(name: str, loaded: LoadedContext) -> bool:
    """Whether `name` is that of a chosen record that did not fit; parts have a colon in it. Turns are listed in the window."""
    kinds = "|".join(re.escape(s.source.traits.name) for s in loaded.sources if s.source.traits.name != "turn")
    return re.fullmatch(rf"(?:{kinds}) [^:]+", name) is not None


def _assessment(quality: float, gaps: Sequence[str], recommendations: Sequence[str], left_out: Sequence[OmittedItem]) -> str:
    values: dict[str, Any] = {"type": "assessment", "context_quality": quality, "gaps_identified": list(gaps)}
    if recommendations:
        values["recommendations"] = list(recommendations)
    if left_out:
        values["left_out"] = len(left_out)
    gap_text = "; ".join(gaps) if gaps else "None identified"
    lines = [f"**Context Quality:** {quality:.2f} ({quality_word(quality)})", f"**Gaps:** {gap_text}"]
    if recommendations:
        lines.append(f"**Recommended:** {'; '.join(recommendations)}")
    if left_out:
        lines.append(f"**Left out for room:** {_omission_list(left_out)}; whole in `{GATHERED_FILE}`")
    return f"### Context Assessment\n\n{meta_block(values)}\n\n" + "\n".join(lines)


def _omission_list(left_out: Sequence[OmittedItem]) -> str:
    """Which sources, and how much of each: `turn 3 (low), 2 items of turn 5 (high)`."""
    sources = {omitted.source: omitted.relevance for omitted in left_out if not omitted.item}
    items = Counter((omitted.source, omitted.relevance) for omitted in left_out if omitted.item and omitted.source not in sources)
    whole_sources = [source + _in_brackets(relevance) for source, relevance in sources.items()]
    item_counts = [f"{n} item{'s' if n > 1 else ''} of {source}{_in_brackets(rank)}" for (source, rank), n in items.items()]
    return ", ".join([*whole_sources, *item_counts])


def _in_brackets(relevance: str) -> str:
    return f" ({relevance})" if relevance else ""
