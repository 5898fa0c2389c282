"""Section 2 in 004 section 5's dual format: Markdown for people and models, `_meta` YAML for code."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from pandora_dagster.contracts.answers import GatheredContext, PriorTurn
from pandora_dagster.contracts.calls import GateVerdict, Item, Source
from pandora_dagster.contracts.ports import TokenMeasure
from pandora_dagster.contracts.remembered import MemoryEntry
from pandora_dagster.phases.loading import LoadedSources
from pandora_dagster.phases.section2_sources import UNLINKED, OmittedItem, SourceParts, drop_last_source_item, source_subsections, one_line
from pandora_dagster.text.citations import reference_list
from pandora_dagster.text.meta import meta_block
from pandora_dagster.text.tables import table

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
    around = (_section2(gathered.model_copy(update={"prior_turns": (turn,)}), loaded, [OmittedItem("turn 0", "high")], now) for turn in bare)
    return max(1, room - max((counter.count(s.text) for s in around), default=0))


def fit_section2(gathered: GatheredContext, loaded: LoadedContext, *, room: int, counter: TokenMeasure, now: datetime) -> Section2:
    """Section 2 within `room` tokens: the least relevant key facts stay out first, and it says which (001 section 5)."""
    left: list[OmittedItem] = []
    section = _section2(gathered, loaded, left, now)
    while counter.count(section.text) > room and (shorter := _drop_least_relevant(gathered, left) or drop_last_source_item(gathered, left)) is not None:
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
    loose = [f"turn {n} is not among the loaded sources" for n in unlinked] + _unstored_preferences(gathered, loaded) + list(others.unlinked)
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
        *((f"{one_line(key)} (earlier)", f"{one_line(e.value)} ({e.last_updated[:10]})", _turn_origin(e.source_turn)) for e in entry.earlier[:1]),
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
    return ", ".join([*whole, *(f"{n} item{'s' if n > 1 else ''} of {source}{_relevance_rank(worth)}" for (source, worth), n in items.items())])


def _relevance_rank(relevance: str) -> str:
    return f" ({relevance})" if relevance else ""
