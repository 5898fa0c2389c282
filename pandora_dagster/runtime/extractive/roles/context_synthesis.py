"""Role `context_synthesis`: compiles the relevant facts of the chosen documents, verbatim (specification 004, section 4.3)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pandora_dagster.contracts.model_calls import PromptPack
from pandora_dagster.contracts.phase_outputs import CachedResearch, GatheredContext, Knowledge, PriorTurn, VisitData
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.phases.core.day_ranges import read_days_line
from pandora_dagster.phases.gather.fact_lines import read_shown_lines
from pandora_dagster.runtime.extractive.evidence.choice import choose_closest, informative_passages, rank_evidence
from pandora_dagster.runtime.extractive.evidence.citation_labels import Labels
from pandora_dagster.runtime.extractive.evidence.header_lines import (
    as_list,
    as_mapping,
    as_number,
    json_lines,
    read_preferences,
    read_reference,
    split_at_heads,
)
from pandora_dagster.runtime.extractive.evidence.questions import Question, read_question
from pandora_dagster.runtime.extractive.evidence.quotes import OUTDATED_MARK, format_quote
from pandora_dagster.runtime.extractive.evidence.source_passages import Passage, PassageReader
from pandora_dagster.runtime.extractive.output_budget import Draft, fit_pieces
from pandora_dagster.runtime.extractive.queries.content_words import terms
from pandora_dagster.runtime.extractive.queries.query_intent import asks_advice
from pandora_dagster.runtime.extractive.queries.query_relevance import is_on_subject, is_relevant, shared_words
from pandora_dagster.runtime.extractive.queries.user_statements import (
    acknowledge,
    contradicts,
    corrects,
    extract_facts,
    is_binding,
    retracted_stems,
    split_clauses,
)

_TURN_HEAD = re.compile(
    r"^===== PRIOR TURN(?:S (?:\d++(?:, ?|-| - ))*(?=\d+ \())? ?(\d+)"
    r"(?: \(([^),\n]*)(, (?:conversation )?summary)?\))?(?: \[(\d+)\])? =====[ \t]*\n?",
    re.MULTILINE,
)
_NOTE_HEAD = re.compile(r"^===== NOTE (.+?)(?: \((\d{4}-\d{2}-\d{2})\))?(?: \[(\d{1,4})\])? =====[ \t]*$", re.MULTILINE)
_POSSESSIVE = re.compile(r"\b(?:my|mine|our|ours|i)\b", re.IGNORECASE)
_PIECES_SHARE = 0.75
"""Share of the tokens that section 2 may hold: its tables and `_meta` blocks need the rest."""
_MAX_FACTS = 16
_MAX_PASSAGES_OF_NOTE = 4
_MAX_FACTS_WITHOUT_SUBJECT = 3
_HIGH_RELEVANCE_GAP, _MEDIUM_RELEVANCE_GAP = 0.7, 1.5
"""Log odds behind the best fact up to which a turn matters that much."""
_PIECE_KINDS = ("preference", "research", "visit", "note", "fact")
"""Kinds in the order of pieces of equal rank: memory precedes all else (specification 004, section 7.3). Facts are ranked by one scale, so
the first that does not fit ends their list."""


@dataclass(frozen=True, slots=True)
class _Fact:
    """A passage of a turn or of a note (`name`), with its log odds."""

    score: float
    passage: Passage
    name: str = ""


def gather(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """Specification 004, section 4.3's GatheredContext: whole values, the best of each kind first, as far as the answer's room goes.
    Of a query that asks for nothing, nothing is looked up."""
    query = pack.query
    if acknowledge(query):
        return GatheredContext()
    title, _ = read_reference(pack.document("query_analysis.json"))
    turns = pack.document("prior_turns")
    asked = read_question(query, more=(title,), days=read_days_line(turns))
    labels = Labels(pack.sources)
    reader = PassageReader(labels)
    ledger = f"{pack.document('conversation_context')}\n{pack.document('session_memory')}"
    facts, outdated_texts = _facts(turns, ledger, asked, reader)
    note_facts_found = _note_facts(pack.document("forever_memory"), asked, reader)
    facts, note_facts_found = _mark_outdated(facts, note_facts_found, outdated_texts)
    stored = read_preferences(pack.document("stored_preferences"))
    applicable = {
        key: value
        for turn, key, value in stored
        if is_relevant(query, key, value) and not _is_outdated_preference(turn, key, value, stored, outdated_texts, facts)
    }
    facts = [f for f in facts if not (f.passage.said_by_user and retracted_stems(f.passage.text))]
    notes = _knowledge(note_facts_found)
    visits = _visits(pack.document("visit_records"))
    research = _research(pack.document("cached_intelligence"), f"{query} {title}")

    ranks = [
        *((rank, _PIECE_KINDS[0], key) for rank, key in enumerate(applicable)),
        *((0, _PIECE_KINDS[1], found) for found in (research,) if found),
        *((rank, _PIECE_KINDS[2], visit) for rank, visit in enumerate(visits)),
        *((rank, _PIECE_KINDS[3], note) for rank, note in enumerate(notes)),
        *((rank, _PIECE_KINDS[4], fact) for rank, fact in enumerate(facts[:_MAX_FACTS])),
    ]
    pieces = sorted(ranks, key=lambda piece: (piece[0], _PIECE_KINDS.index(piece[1])))

    def make(places: frozenset[int]) -> GatheredContext:
        chosen = [piece for _, _, piece in map(pieces.__getitem__, sorted(places))]
        keys, own = [p for p in chosen if isinstance(p, str)], [p for p in chosen if isinstance(p, _Fact)]
        pages, known = tuple(p for p in chosen if isinstance(p, VisitData)), tuple(p for p in chosen if isinstance(p, Knowledge))
        cached = next((p for p in chosen if isinstance(p, CachedResearch)), None)
        used = {f.passage.label or "" for f in own} | _section_labels(labels, bool(keys), bool(known), bool(pages), cached is not None)
        return GatheredContext(
            session_preferences={key: applicable[key] for key in keys},
            prior_turns=_turns(own),
            cached_research=cached,
            visit_data=pages,
            forever_knowledge=known,
            source_references=tuple(f"[{s.label}] {s.path}" for s in labels.sources if s.label in used),
        )

    ends = [kind == _PIECE_KINDS[-1] for _, kind, _ in pieces]
    return fit_pieces(make, ends, int(pack.max_output_tokens * _PIECES_SHARE), counter)


def _facts(turns: str, ledger: str, asked: Question, reader: PassageReader) -> tuple[list[_Fact], list[str]]:
    """The passages of prior turns and known facts that answer the question, best first; summaries count where none of them does.

    And what the ledger says no longer holds.
    """
    texts = sorted(split_at_heads(_TURN_HEAD.finditer(turns), turns), key=lambda part: int(part[0][1]))
    known_lines = read_shown_lines(ledger)
    outdated = [line.text for line in known_lines if not line.is_current]
    turn_passages = [_turn(head, text, reader) for head, text in texts if not head.group(3)]
    known_passages = [
        reader.line(
            line.text, Passage("", line.name or None, (), turn=line.turn, date=line.date, said_by_user=True, source=f"turn {line.turn}")
        )
        for line in known_lines
    ]
    unquoted = [p for p in known_passages if all(p.text not in text for _, text in texts)]
    facts = _rank_facts([*(p for turn in turn_passages for p in turn), *unquoted], asked)
    facts = facts or _rank_facts(
        [replace(p, said_by_user=True) for head, text in texts if head.group(3) for p in _turn(head, text, reader)], asked
    )
    if asks_advice(asked.text):
        shown_texts = {f.passage.text for f in facts}
        facts += [
            _Fact(-9.0, p)
            for p, line in zip(known_passages, known_lines, strict=True)
            if line.is_current and is_binding(p.text) and p.text not in shown_texts
        ]
    return facts, outdated


def _turn(head: re.Match[str], text: str, reader: PassageReader) -> list[Passage]:
    return reader.turn(text, turn=int(head.group(1)), label=head.group(4) or "", date=head.group(2) or "")


def _rank_facts(passages: Sequence[Passage], asked: Question) -> list[_Fact]:
    """The passages close to the best. Of what is the user's (`my limit`) nothing says `my` that a tool or an assistant gave."""
    if not asked.keys() and not asked.days:
        return [_Fact(0.0, p) for p in informative_passages(passages, asked) if not p.is_record][:_MAX_FACTS_WITHOUT_SUBJECT]
    if _POSSESSIVE.search(asked.text):
        passages = [p for p in passages if p.said_by_user or p.speaker or not _POSSESSIVE.search(p.text)]
    return [_Fact(score, p) for score, p in choose_closest(rank_evidence(passages, asked), asked, most=_MAX_FACTS)]


def _mark_outdated(facts: list[_Fact], note_facts: list[_Fact], outdated_texts: list[str]) -> tuple[list[_Fact], list[_Fact]]:
    """Facts of turns and of notes, those marked that no longer hold: what the ledger says so of, and what a user said and
    contradicted or corrected later, in a turn or in a note with a date."""
    statements = [f.passage for f in (*facts, *note_facts) if f.passage.said_by_user and not f.passage.is_record]
    outdated_ids = {id(f.passage) for f in (*facts, *note_facts) if any(f.passage.text in text for text in outdated_texts)}
    for old in statements:
        later_texts = [new.text for new in statements if _is_said_later(new, old)]
        if all(any(_invalidates(new, part) for new in later_texts) for part in split_clauses(old.text)):
            outdated_ids.add(id(old))

    def marked(fact: _Fact) -> _Fact:
        p = fact.passage
        return replace(fact, passage=replace(p, date=f"{p.date}{OUTDATED_MARK}")) if id(p) in outdated_ids and p.date else fact

    return list(map(marked, facts)), list(map(marked, note_facts))


def _invalidates(new: str, old: str) -> bool:
    if _is_forgotten(old, retracted_stems(new)):
        return True
    return corrects(new, old) or bool(extract_facts(new) and extract_facts(old) and contradicts(new, old))


def _is_forgotten(text: str, retracted: list[frozenset[str]]) -> bool:
    stems = frozenset(terms(text))
    return any(thing <= stems for thing in retracted)


def _is_outdated_preference(
    turn: int, key: str, value: str, kept: Sequence[tuple[int, str, str]], over: Sequence[str], facts: Sequence[_Fact]
) -> bool:
    """Whether a stored preference no longer holds: a newer one contradicts it, or the user took back what it says."""
    newer = (other for at, _, other in kept if at > turn)
    forgotten = [
        thing for f in facts if f.passage.said_by_user and (f.passage.turn or 0) > turn for thing in retracted_stems(f.passage.text)
    ]
    stored = f"{key.replace('_', ' ')} {value}"
    return any(value in text for text in over) or _is_forgotten(stored, forgotten) or any(contradicts(other, value) for other in newer)


def _is_said_later(new: Passage, old: Passage) -> bool:
    """Whether one speaker said `new` after `old`: in a later turn; where one of them is a note's, on a later day."""
    if new.speaker != old.speaker:
        return False
    return new.turn > old.turn if new.turn is not None and old.turn is not None else bool(old.date) and new.date > old.date


def _turns(facts: list[_Fact]) -> tuple[PriorTurn, ...]:
    """A turn with its facts, the best first."""
    of_turn: dict[int, list[_Fact]] = {}
    for fact in facts:
        of_turn.setdefault(fact.passage.turn or 0, []).append(fact)
    best = facts[0].score if facts else 0.0
    prior_turns: list[PriorTurn] = []
    for turn, facts_of_turn in of_turn.items():
        gap = best - facts_of_turn[0].score
        lines = [format_quote(p.text, date=p.date, speaker=p.speaker, tool=p.tool) for p in (f.passage for f in facts_of_turn)]
        relevance = "high" if gap <= _HIGH_RELEVANCE_GAP else "medium" if gap <= _MEDIUM_RELEVANCE_GAP else "low"
        prior_turns.append(PriorTurn(turn=turn, relevance=relevance, summary=lines[0], key_facts=tuple(lines[1:])))
    return tuple(prior_turns)


def _note_facts(document: str, asked: Question, reader: PassageReader) -> list[_Fact]:
    """The best passages of each note; a note that shares no word with the query is left out."""
    facts: list[_Fact] = []
    for head, body in split_at_heads(_NOTE_HEAD.finditer(document), document):
        name = head[1]
        passages = reader.units(body, Passage("", head[3], (), date=head[2] or "", said_by_user=True, source=name))
        ranked_passages = choose_closest(rank_evidence(passages, asked), asked, most=_MAX_PASSAGES_OF_NOTE)
        if not ranked_passages and shared_words(asked.text, name.rpartition("/")[2]):
            ranked_passages = [(0.0, p) for p in passages if not p.is_record][:_MAX_PASSAGES_OF_NOTE]
        facts += [_Fact(score, p, name) for score, p in ranked_passages]
    return facts


def _knowledge(facts: list[_Fact]) -> tuple[Knowledge, ...]:
    """What notes say, under their day where they have one; what no longer holds comes after what does."""
    ordered = sorted(facts, key=lambda n: n.passage.date.endswith(OUTDATED_MARK))
    return tuple(Knowledge(note=n.name, content=format_quote(n.passage.text, date=n.passage.date)) for n in ordered)


def _visits(document: str) -> tuple[VisitData, ...]:
    records = (r for r in json_lines(document) if r.get("url"))
    return tuple(
        VisitData(
            visit_id=str(r.get("visit_id") or ""), url=str(r["url"]), extracted=_flatten(r.get("extracted_data") or r.get("extracted"))
        )
        for r in records
    )


def _flatten(value: object) -> dict[str, Any]:
    """Fields of an extraction on one level: the innermost key names the value, with the one above it where two are called alike."""
    flat: dict[str, Any] = {}
    for key, item in as_mapping(value).items():
        inner = _flatten(as_mapping(item)) if as_mapping(item) else {key: item}
        flat |= {name if name not in flat else f"{key}.{name}": entry for name, entry in inner.items()}
    return flat


def _research(document: str, query: str) -> CachedResearch | None:
    record = next(iter(json_lines(document)), as_mapping(None))
    topic, summary = str(record.get("topic") or ""), str(record.get("summary") or "")
    results = [as_mapping(r) for r in as_list(record.get("top_results") or record.get("claims"))]
    claims = " ".join(str(r.get("claim", "")) for r in results)
    if not topic or not is_on_subject(query, f"{topic.replace('.', ' ')} {summary} {claims}"):
        return None
    return CachedResearch(
        topic=topic,
        quality=as_number(record.get("quality_score", record.get("quality"))),
        age_hours=as_number(record.get("age_hours")),
        summary=summary,
        top_results=tuple(dict(r) for r in results[:5] if r),
    )


def _section_labels(labels: Labels, applicable: bool, notes: bool, visits: bool, research: bool) -> set[str]:
    """Labels of the sources behind the sections that are not prior turns, found by their place."""
    places = (
        ("preferences", applicable),
        ("session", applicable),
        ("facts", applicable),
        ("notes/", notes),
        ("webpage_cache/", visits),
        ("research_cache/", research),
    )
    wanted = tuple(place for place, present in places if present)
    return {s.label for s in labels.sources if s.path.startswith(wanted)}
