"""Role `context_synthesis`: the chosen documents compiled into facts (004 section 4.3): verbatim spans, irrelevant sections left out."""

import re
from dataclasses import dataclass, replace
from typing import Any

from pandora_dagster.contracts.model_calls import PromptPack
from pandora_dagster.contracts.phase_outputs import CachedResearch, GatheredContext, Knowledge, PriorTurn, VisitData
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.documents.fact_lines import read_shown_lines
from pandora_dagster.language.relative_days import read_days_line
from pandora_dagster.runtime.extractive.output_budget import Draft, selected
from pandora_dagster.runtime.extractive.spans.citation_labels import Labels
from pandora_dagster.runtime.extractive.spans.document_lines import OVER, quote
from pandora_dagster.runtime.extractive.spans.document_spans import Span, SpanReader
from pandora_dagster.runtime.extractive.spans.header_lines import as_list, as_mapping, as_number, json_lines, preferences, referred
from pandora_dagster.runtime.extractive.spans.span_ranking import rank
from pandora_dagster.runtime.extractive.spans.structured_records import decode
from pandora_dagster.runtime.extractive.words.query_intent import Question, question
from pandora_dagster.runtime.extractive.words.query_relevance import bears, enough, shared
from pandora_dagster.runtime.extractive.words.sentence_corrections import corrects
from pandora_dagster.runtime.extractive.words.user_statements import acknowledged, binds, clauses, contradicts, stated

_TURN = re.compile(
    r"^===== PRIOR TURN(?:S [\d, -]*?(?=\d+ \())? ?(\d+)(?: \(([^),\n]*)(, (?:conversation )?summary)?\))?(?: \[(\d+)\])? =====[ \t]*\n?",
    re.MULTILINE,
)
_NOTE = re.compile(r"^===== NOTE (.+?)(?: \((\d{4}-\d{2}-\d{2})\))?(?: \[(\d{1,4})\])? =====[ \t]*$", re.MULTILINE)
_MINE = re.compile(r"\b(?:my|mine|our|ours|i)\b", re.IGNORECASE)
_ADVICE = re.compile(
    r"\b(?:suggest\w*|recommend\w*|advi[sc]e|ideas?|propose|plan|choose|pick|which .{1,40} should|what (?:should|could|can|shall) (?:i|we)"
    r"|vorschl\w+|empf[ei]\w+|schlag\w* .{0,40}vor)\b",
    re.IGNORECASE,
)
"""Who asks for advice is bound by limits that the question does not repeat."""
_WEAKEST = 0.05
_ROOM = 0.75
"""Share of the tokens that section 2 may hold: its tables and `_meta` blocks need the rest."""
_MOST_FACTS = 80
_KINDS = ("preference", "research", "visit", "note", "fact")
"""Of equal rank among their kind the first goes first (004 section 7.3: memory before all else); of facts, ranked by one scale, the
first without room ends the list."""
_MOST_NOTE_SPANS = 4


@dataclass(frozen=True, slots=True)
class _Fact:
    turn: int
    label: str
    score: float
    span: Span


@dataclass(frozen=True, slots=True)
class _NoteItem:
    """A span of a note."""

    name: str
    span: Span


def gather(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """004 section 4.3's GatheredContext: whole values, the best of each kind first, as far as the answer's room goes.
    Of a query that asks for nothing, nothing is looked up."""
    query = pack.query
    if acknowledged(query):
        return GatheredContext()
    title, _ = referred(pack.document("query_analysis.json"))
    turns = pack.document("prior_turns")
    asked, labels = question(query, more=(title,), days=read_days_line(turns)), Labels(pack.sources)
    ledger = f"{pack.document('conversation_context')}\n{pack.document('session_memory')}"
    facts, over = _facts(turns, ledger, asked, labels)
    noted = _noted(pack.document("forever_memory"), asked, labels)
    facts, noted = _dated(facts, noted, over)
    kept = preferences(pack.document("stored_preferences"))
    told = {key: value for key, value in kept.items() if bears(query, key, value)}
    notes = _knowledge(noted)
    visits = _visits(pack.document("visit_records"))
    research = _research(pack.document("cached_intelligence"), f"{query} {title}")

    ranks = [
        *((rank, _KINDS[0], key) for rank, key in enumerate(told)),
        *((0, _KINDS[1], found) for found in (research,) if found),
        *((rank, _KINDS[2], visit) for rank, visit in enumerate(visits)),
        *((rank, _KINDS[3], note) for rank, note in enumerate(notes)),
        *((rank, _KINDS[4], fact) for rank, fact in enumerate(facts[:_MOST_FACTS])),
    ]
    pieces = sorted(ranks, key=lambda piece: (piece[0], _KINDS.index(piece[1])))

    def make(places: frozenset[int]) -> GatheredContext:
        chosen = [piece for _, _, piece in map(pieces.__getitem__, sorted(places))]
        keys, own = [p for p in chosen if isinstance(p, str)], [p for p in chosen if isinstance(p, _Fact)]
        pages, known = tuple(p for p in chosen if isinstance(p, VisitData)), tuple(p for p in chosen if isinstance(p, Knowledge))
        cached = next((p for p in chosen if isinstance(p, CachedResearch)), None)
        used = {f.label for f in own} | _supporting(labels, bool(keys), bool(known), bool(pages), cached is not None)
        return GatheredContext(
            session_preferences={key: told[key] for key in keys},
            prior_turns=_turns(own),
            cached_research=cached,
            visit_data=pages,
            forever_knowledge=known,
            source_references=tuple(f"[{s.label}] {s.path}" for s in labels.sources if s.label in used),
        )

    ends = [kind == _KINDS[-1] for _, kind, _ in pieces]
    return selected(make, ends, int(pack.max_output_tokens * _ROOM), counter)


@dataclass(frozen=True, slots=True)
class _Statement:
    """A text with the turn in which it was said; `label` as its header gives it."""

    turn: int
    date: str
    label: str
    text: str
    current: bool = True
    own: bool = False
    """Whether all of it is the person's word."""


def _facts(turns: str, ledger: str, asked: Question, labels: Labels) -> tuple[list[_Fact], list[str]]:
    """The spans of all prior turns and known facts that answer the question, best first; summaries speak where none of them does.

    And what the ledger says no longer holds.
    """
    heads = list(_TURN.finditer(turns))
    texts = [(h, turns[h.end() : n]) for h, n in zip(heads, [*(h.start() for h in heads[1:]), len(turns)][: len(heads)], strict=True)]
    known = [_Statement(f.turn, f.date, f.name, f.text, f.current, own=True) for f in read_shown_lines(ledger)]
    told = _told_in([_said(h, text) for h, text in texts if not h.group(3)], known, asked, labels)
    told = told or _told_in([_said(h, text) for h, text in texts if h.group(3)], [], asked, labels)
    if _ADVICE.search(asked.text):
        told += _limits([said for said in known if said.current and all(f.span.text not in said.text for f in told)], asked, labels)
    return told, [said.text for said in known if not said.current]


def _limits(known: list[_Statement], asked: Question, labels: Labels) -> list[_Fact]:
    """The known facts that bind whatever is advised: `I never eat fish` shares no word with `suggest a dinner`."""
    reader, found = SpanReader(labels, asked), list[_Fact]()
    for said in known:
        spans = [s for s in reader.read(said.text, label=said.label or None, quoted=True, date=said.date) if binds(s.text)]
        found += [_Fact(said.turn, said.label, _WEAKEST, replace(span, own=True)) for span in spans]
    return found


def _said(head: re.Match[str], text: str) -> _Statement:
    return _Statement(int(head.group(1)), head.group(2) or "", head.group(4) or "", text)


def _told_in(texts: list[_Statement], known: list[_Statement], asked: Question, labels: Labels) -> list[_Fact]:
    """What was said in turns, and the known facts that none of these tells."""
    reader, spans = SpanReader(labels, asked), list[tuple[int, str, Span]]()
    before = 0
    for said in [*sorted(texts, key=lambda said: said.turn), *(f for f in known if all(f.text not in t.text for t in texts))]:
        if said.turn != before + 1:
            reader.pause()
        before = said.turn
        label = said.label or labels.turn(said.turn) or ""
        read = reader.read(said.text, label=label or None, quoted=True, date=said.date)
        spans += [(said.turn, label, replace(s, own=s.own or said.own)) for s in read]
    where = {id(s): (number, label) for number, label, s in spans}
    ranked = rank([s for _, _, s in spans], asked)
    if not asked.stems and not asked.days:
        ranked = [(0.1, s) for _, _, s in spans if s.kind != "code"][:3]
    return [_Fact(*where[id(span)], score, span) for score, span in ranked]


def _dated(facts: list[_Fact], noted: list[_NoteItem], over: list[str]) -> tuple[list[_Fact], list[_NoteItem]]:
    """Facts of turns and spans of notes, those marked that no longer hold: what the ledger says so of (`over`), and what a person
    said and contradicted or corrected later, in a turn or in a note that bears a date."""
    every = [*((f.turn, f.span) for f in facts), *((None, n.span) for n in noted)]
    told = [(turn, span, bool(stated(span.text))) for turn, span in every if span.kind == "sentence" and span.own]
    gone = {id(span) for _, span in every if any(span.text in text for text in over)}
    for at, old, is_stated in told:
        later = [(new.text, is_fact) for turn, new, is_fact in told if _follows(turn, new, at, old)]
        if all(
            any((contradicts if is_stated and is_fact else corrects)(new, part) for new, is_fact in later) for part in clauses(old.text)
        ):
            gone.add(id(old))

    facts = [f for f in facts if f.span.own or not _speaks_for(f.span.text, [span.text for _, span, _ in told])]

    def marked(span: Span) -> Span:
        return replace(span, date=f"{span.date}{OVER}") if id(span) in gone and span.date else span

    return [replace(f, span=marked(f.span)) for f in facts], [replace(n, span=marked(n.span)) for n in noted]


def _speaks_for(text: str, told: list[str]) -> bool:
    """Whether a text that a tool or an assistant gave says `my ...` against the person's own words: it is somebody else's `my`."""
    return bool(_MINE.search(text)) and any(contradicts(text, own) or corrects(text, own) for own in told)


def _follows(turn: int | None, new: Span, before: int | None, old: Span) -> bool:
    """Whether one speaker said `new` after `old`: in a later turn; where one of them is a note's, on a later day."""
    if new.speaker != old.speaker:
        return False
    return turn > before if turn is not None and before is not None else bool(old.date) and new.date > old.date


def _turns(facts: list[_Fact]) -> tuple[PriorTurn, ...]:
    best: dict[int, list[list[_Fact]]] = {}
    for passage in _passages(facts):
        best.setdefault(passage[0].turn, []).append(passage)
    top = facts[0].score if facts else 1.0
    lines = {turn: _lines(own) for turn, own in best.items()}
    return tuple(
        PriorTurn(
            turn=turn,
            relevance="high" if own[0][0].score >= 0.7 * top else "medium" if own[0][0].score >= 0.4 * top else "low",
            summary=lines[turn][0],
            key_facts=tuple(lines[turn][1:]),
        )
        for turn, own in best.items()
    )


def _passages(facts: list[_Fact]) -> list[list[_Fact]]:
    """Facts as they are told, best first: what a named speaker said in one paragraph is one passage, its best sentence first."""
    found: dict[tuple[int, int], list[_Fact]] = {}
    for fact in facts:
        span = fact.span
        found.setdefault((span.block, 0 if span.speaker else span.place), []).append(fact)
    return list(found.values())


def _lines(passages: list[list[_Fact]]) -> list[str]:
    """The passages of one turn, a line each, each under the day on which it was said."""
    return [quote([f.span for f in passage]) for passage in passages]


def _noted(document: str, asked: Question, labels: Labels) -> list[_NoteItem]:
    """The best spans of each note; a note that shares no word with the query is left out."""
    heads = list(_NOTE.finditer(document))
    ends = [*(h.start() for h in heads[1:]), len(document)][: len(heads)]
    found: list[_NoteItem] = []
    for head, end in zip(heads, ends, strict=True):
        spans = SpanReader(labels, asked).read(document[head.end() : end], label=head.group(3), quoted=True, date=head.group(2) or "")
        ranked = rank(spans, asked)
        if not ranked and shared(asked.text, head.group(1).rpartition("/")[2]):
            ranked = [(0.1, s) for s in spans if s.kind != "code"]
        found += [_NoteItem(head.group(1), replace(span, own=True)) for _, span in ranked[:_MOST_NOTE_SPANS]]
    return found


def _knowledge(noted: list[_NoteItem]) -> tuple[Knowledge, ...]:
    """What each note says, under its day where it has one; what no longer holds stands apart from what does."""
    told: dict[tuple[str, str], list[Span]] = {}
    for note in sorted(noted, key=lambda n: n.span.date.endswith(OVER)):
        told.setdefault((note.name, note.span.date), []).append(note.span)
    return tuple(Knowledge(note=name, content=quote(spans)) for (name, _), spans in told.items())


def _visits(document: str) -> tuple[VisitData, ...]:
    records = (r for r in json_lines(document) if r.get("url"))
    return tuple(
        VisitData(visit_id=str(r.get("visit_id") or ""), url=str(r["url"]), extracted=_flat(r.get("extracted_data") or r.get("extracted")))
        for r in records
    )


def _flat(value: object) -> dict[str, Any]:
    """Fields of an extraction on one level: the innermost key names the value, with the one above it where two are called alike."""
    flat: dict[str, Any] = {}
    for key, item in as_mapping(value).items():
        inner = _flat(as_mapping(item)) if as_mapping(item) else {key: item}
        flat |= {name if name not in flat else f"{key}.{name}": said for name, said in inner.items()}
    return flat


def _research(document: str, query: str) -> CachedResearch | None:
    start = document.find("{")
    found = decode(document, start) if start >= 0 else None
    record = as_mapping(found[0] if found else None)
    topic, summary = str(record.get("topic") or ""), str(record.get("summary") or "")
    results = [as_mapping(r) for r in as_list(record.get("top_results") or record.get("claims"))]
    claims = " ".join(str(r.get("claim", "")) for r in results)
    if not topic or not enough(query, f"{topic.replace('.', ' ')} {summary} {claims}"):
        return None
    return CachedResearch(
        topic=topic,
        quality=as_number(record.get("quality_score", record.get("quality"))),
        age_hours=as_number(record.get("age_hours")),
        summary=summary,
        top_results=tuple(dict(r) for r in results[:5] if r),
    )


def _supporting(labels: Labels, told: bool, notes: bool, visits: bool, research: bool) -> set[str]:
    """Labels of the sources behind the sections that are not prior turns, found by their place."""
    places = (
        ("preferences", told),
        ("session", told),
        ("facts", told),
        ("notes/", notes),
        ("webpage_cache/", visits),
        ("research_cache/", research),
    )
    wanted = tuple(place for place, present in places if present)
    return {s.label for s in labels.sources if s.path.startswith(wanted)}


ANSWERS = {"context_synthesis": gather}
"""Recipe field `role` -> the function that answers it."""
