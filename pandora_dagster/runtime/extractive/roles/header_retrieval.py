"""Role `retrieval`: chooses turns, memory keys, research, visits and notes (specification 004, section 4.1), by their headers alone."""

import re
from collections.abc import Mapping
from typing import Any

from pandora_dagster.contracts.model_calls import PromptPack
from pandora_dagster.contracts.phase_outputs import Relevance, ResearchMatch, RetrievalPlan, TurnRelevance
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.phases.core.day_ranges import is_in_ranges, read_days_line
from pandora_dagster.runtime.extractive.answer_templates import TEMPLATES
from pandora_dagster.runtime.extractive.evidence.header_lines import (
    TurnHeader,
    as_list,
    as_number,
    json_lines,
    read_reference,
    read_summaries,
)
from pandora_dagster.runtime.extractive.evidence.passage_ranking import held_shares
from pandora_dagster.runtime.extractive.evidence.questions import read_question
from pandora_dagster.runtime.extractive.output_budget import Draft, fit_draft
from pandora_dagster.runtime.extractive.queries.content_words import content_words, stem, terms
from pandora_dagster.runtime.extractive.queries.query_intent import asks_past, is_greeting
from pandora_dagster.runtime.extractive.queries.query_pronouns import find_pointer
from pandora_dagster.runtime.extractive.queries.query_relevance import is_on_subject, is_relevant, shared_words

_MIN_SCORE = 0.1
"""Of a match or of the words that a turn's summary shares with the query."""
_HIGH_SCORE, _MEDIUM_SCORE = 0.6, 0.3
_MAX_TURNS = 30
_NEWEST_TURNS = 3
_MAX_KEYS = 12
_KNOWN_THING = r"(?:the|that|this|these|those|it|its|them|their|his|her|my|our|your|both|out|what|where|how)\b"
_FURTHER_THING = r"(?:different|other|new|else|similar|more|[a-z]{3,}er)\b"
_SEEKS_NEW = re.compile(
    r"\banother\b|\balternatives?\b"
    rf"|\b(?:an?|some|any) (?:[a-z]+ )?(?:different|other|new|else)\b|\b(?:some|any|no)thing (?:[a-z]+ )?{_FURTHER_THING}"
    rf"|\b(?:search|look|hunt|shop)(?:ing)? (?:around |online )?for (?!{_KNOWN_THING})"
    rf"|\b(?:find|show|get|list|recommend|suggest) (?:(?:me|us) )?(?:an?|some|any|{_FURTHER_THING}) [a-z]"
    r"|\b(?:find|show|get|list|recommend|suggest)\b[^.?!\n]{0,60}\b(?:different|new|other|else)\b",
    re.IGNORECASE,
)
"""The query wants what was not seen yet: something further, or a search for what it does not call known."""
_ABOUT_KNOWN_THING = re.compile(r"\b(?:of|about) (?:it|that|this|these|those|them)\b", re.IGNORECASE)
"""`Anything else about that camera` asks for more of what was seen."""
_MIN_ABBREVIATION_LETTERS = 4
"""Letters that a field's name shares with the word it shortens: `specs` are specifications."""
Scored = tuple[float, TurnHeader, str]


def retrieve(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """Specification 004, section 4.1's plan; the weakest turns are left out first where the answer would be too long."""
    query, reference = pack.query, read_reference(pack.document("query_analysis.json"))
    offered = pack.document("turn_summaries")
    turns = _choose_turns(query, reference, read_summaries(offered), read_days_line(offered))
    keys = _choose_keys(query, pack.document("memory_headers"))
    notes = tuple(
        n for h in json_lines(pack.document("note_headers")) if (n := str(h.get("note", ""))) and shared_words(query, _note_text(h))
    )
    visits = _choose_visits(query, reference, json_lines(pack.document("visit_headers")))
    research = _match_research(query, json_lines(pack.document("research_headers")))
    anything = bool(turns or keys or notes or visits or research.matched)

    def make(n: int) -> RetrievalPlan:
        kept = turns[: max(0, n - _MAX_KEYS)]
        return RetrievalPlan(
            relevant_turns=tuple(t.turn for _, t, _ in kept),
            turn_relevance={str(t.turn): TurnRelevance(relevance=_grade(score), reason=reason) for score, t, reason in kept},
            relevant_memory_keys=keys[:n],
            relevant_notes=notes[: min(n, _MAX_KEYS)],
            research_cache_match=research,
            webpage_cache_needed=visits[: min(n, _MAX_KEYS)],
            confidence=0.9 if turns and turns[0][0] >= _HIGH_SCORE else 0.8,
            reasoning=TEMPLATES["chosen" if anything else "no_match"],
        )

    return fit_draft(make, min(len(turns), _MAX_TURNS) + _MAX_KEYS, pack.max_output_tokens, counter)


def _choose_turns(query: str, reference: tuple[str, int | None], turns: list[TurnHeader], days: tuple[str, ...]) -> list[Scored]:
    """Turns that matter, best first: by the index's match where it was asked, else by shared words; the turn that a reference names.
    Where the query names days, those of these days alone, whatever their words."""
    if is_greeting(query):
        return []
    asked = read_question(query, more=(reference[0],), days=days)
    if turns_of_days := [t for t in turns if is_in_ranges(t.day, asked.days)]:
        return [(_HIGH_SCORE, t, TEMPLATES["chosen"]) for t in reversed(turns_of_days)]
    shares = held_shares([t.words for t in turns], asked.keys())
    scored = [_score_turn(t, share, reference[1]) for t, share in zip(turns, shares, strict=True)]
    ranked = sorted((s for s in scored if s[0] > _MIN_SCORE), key=lambda s: (-s[0], -s[1].turn))
    if not ranked and not asked.keys():
        return [(_MEDIUM_SCORE, t, TEMPLATES["recent"]) for t in turns[: -_NEWEST_TURNS - 1 : -1]] if asks_past(query) else []
    return ranked


def _score_turn(turn: TurnHeader, held: float, named: int | None) -> Scored:
    if turn.turn == named:
        return 1.0 + _MIN_SCORE, turn, TEMPLATES["referred"]
    return (turn.match, turn, TEMPLATES["offered"]) if turn.match is not None else (held, turn, TEMPLATES["chosen"])


def _grade(score: float) -> Relevance:
    return "high" if score >= _HIGH_SCORE else "medium" if score >= _MEDIUM_SCORE else "low"


def _choose_keys(query: str, headers: str) -> tuple[str, ...]:
    read = [(str(h.get("key", "")), str(h.get("value_preview", ""))) for h in json_lines(headers)]
    return tuple(key for key, value in read if key and is_relevant(query, key, value))[:_MAX_KEYS]


def _note_text(header: Mapping[str, Any]) -> str:
    listed = " ".join(map(str, as_list(header.get("tags"))))
    return f"{str(header.get('note', '')).rpartition('/')[2]} {header.get('title', '')} {listed} {header.get('passage', '')}"


def _choose_visits(query: str, reference: tuple[str, int | None], headers: list[Mapping[str, Any]]) -> tuple[str, ...]:
    """Pages that the query points back at, or whose address, title or fields it names; none where it wants something new
    (specification 004, section 6.1)."""
    if _SEEKS_NEW.search(query) and not _ABOUT_KNOWN_THING.search(query):
        return ()
    title, referred = reference
    turns = [t for h in headers if isinstance(t := h.get("turn"), int)]
    if find_pointer(query) and referred not in turns:
        referred = max(turns, default=None)
    page_words = [(h, frozenset(shared_words(f"{query} {title}", _page_text(h))) | _abbreviated_words(query, h)) for h in headers]
    chosen = (
        h
        for h, words in page_words
        if (referred is not None and h.get("turn") == referred) or _is_best_named(words, [w for _, w in page_words])
    )
    return tuple(str(h["visit_id"]) for h in chosen if h.get("visit_id"))


def _is_best_named(words: frozenset[str], of_pages: list[frozenset[str]]) -> bool:
    """Whether a page shares words with the query, and no other page shares the same ones and more: that one is meant."""
    return bool(words) and not any(words < others for others in of_pages)


def _abbreviated_words(query: str, header: Mapping[str, Any]) -> frozenset[str]:
    """The words of the query that a field of the page shortens."""
    fields = [f for name in as_list(header.get("fields")) for f in terms(_space_out(name)) if len(f) >= _MIN_ABBREVIATION_LETTERS]
    return frozenset(word for word in content_words(query) if any(stem(word).startswith(field) for field in fields))


def _page_text(header: Mapping[str, Any]) -> str:
    fields = " ".join(map(str, as_list(header.get("fields"))))
    return f"{_address_words(str(header.get('url', '')))} {header.get('title', '')} {fields}"


def _address_words(url: str) -> str:
    """The telling words of an address: without scheme, `www` and the host's ending."""
    bare = re.sub(r"^\w+://(?:www\.)?", "", url)
    host, _, path = bare.partition("/")
    return f"{host.rpartition('.')[0]} {path}"


def _match_research(query: str, headers: list[Mapping[str, Any]]) -> ResearchMatch:
    """The research that shares most words with the query, of equals the youngest, and whether its age and quality allow its use."""
    asked_stems = {stem(w) for w in shared_words(query, query)}
    header_texts = [
        _space_out(f"{h.get('topic') or ''} {h.get('cache_key', '')} {' '.join(map(str, as_list(h.get('says'))))}") for h in headers
    ]
    ages = [_number(h.get("age_hours")) for h in headers]
    matching = [(len(asked_stems & set(terms(words))), -age, -at) for at, (words, age) in enumerate(zip(header_texts, ages, strict=True))]
    best_place = -max(matching, default=(0, 0.0, 0))[2]
    if not headers or not is_on_subject(query, header_texts[best_place]):
        return ResearchMatch(matched=False)
    header = headers[best_place]
    age, quality = ages[best_place], _number(header.get("quality_score"))
    usable = age <= 24 and quality >= 0.5 and not header.get("expired")
    reuse = "refresh" if not usable else "full" if age <= 6 and quality >= 0.7 else "partial"
    fresh = f"{header.get('age_hours')} {TEMPLATES['hours']}"
    return ResearchMatch(matched=True, topic=str(header["topic"]), freshness=fresh, quality=quality, reuse_recommendation=reuse)


def _space_out(topic: object) -> str:
    return re.sub(r"[._]", " ", str(topic or ""))


def _number(value: object) -> float:
    return as_number(value) or 0.0
