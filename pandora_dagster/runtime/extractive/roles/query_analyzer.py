"""Roles `query_analyzer` and `reflection`: what the query is, what it points back at, and whether it can be answered at all."""

import re

from pandora_dagster.contracts.model_calls import PromptPack
from pandora_dagster.contracts.phase_outputs import ContentReference, QueryAnalysis, ReferenceResolution, Reflection
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.language.quantities import quantities
from pandora_dagster.language.sentences import sentences
from pandora_dagster.runtime.extractive.answer_templates import TEMPLATES
from pandora_dagster.runtime.extractive.evidence.header_lines import TurnHeader, read_reference, read_summaries
from pandora_dagster.runtime.extractive.evidence.passage_ranking import held_shares
from pandora_dagster.runtime.extractive.output_budget import Draft, fit_draft
from pandora_dagster.runtime.extractive.queries.content_words import content_words, stem, terms
from pandora_dagster.runtime.extractive.queries.empty_texts import is_fixed_sentence
from pandora_dagster.runtime.extractive.queries.entities import IDENTIFIER, NAME, QUOTED, entities
from pandora_dagster.runtime.extractive.queries.query_intent import asks_past, is_greeting, read_intent, read_query_type, states_preference
from pandora_dagster.runtime.extractive.queries.query_pronouns import asks_for_antecedent, find_pointer

_ORDINAL_PLACES = {"first": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4, "last": -1}
_REFERRING = re.compile(
    r"\b(?:that|this|the (?:other|same|first|second|third|fourth|fifth|last|previous)) (?:one|[a-z]{3,})\b"
    r"|\bthose(?: [a-z]{3,})?\b|\bagain\b|\b(?:we|you|i) (?:talk(?:ed)?|discussed|mentioned|looked|said|spoke)(?: about| at)?\b"
    r"|^\W*(?:and |but )?(?:it|that|this|they|them)\b"
    r"|\b(?:about|of|for|with|is|was|do|did|cancel|change|book|show|buy|me) (?:it|that|this|them)\b",
    re.IGNORECASE,
)
_NOT_REFERRING = re.compile(
    r"\bthat (?:i|we|you|he|she|they|it|is|was|are|were|my|the)\b|\bthis (?:week|month|year|morning|weekend|time)\b", re.I
)
_ENDS_WITH_PRONOUN = re.compile(r"\b(?:it|that|this|they|them)$", re.IGNORECASE)
_ORDINAL = re.compile(r"\b(first|second|third|fourth|fifth|last)\b", re.IGNORECASE)
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_GENERIC_NOUNS = frozenset({"one", "ones", "option", "options", "item", "items", "result", "results", "choice", "choices"})
"""Words that name no kind of thing: `the second one`."""
_MAX_SUBJECT_SENTENCES, _MAX_SUBJECT_WORDS = 3, 60
"""Sentences and words of a turn's summary to which a pronoun may point."""
_MAX_ENTITIES = 16
_MAX_SENTENCES = 64
"""A query of more sentences is shown by its first ones, or whole where that fits."""


def analyse(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """Specification 004, section 3.1 by rules: type, intent, entities, and what a reference points at among the turn summaries."""
    query = pack.query or pack.document("raw_query")
    resolution, reference = resolve_references(query, read_summaries(pack.document("turn_summaries")))
    named = entities(query)[:_MAX_ENTITIES]
    lines, kind, meant = sentences(query), read_query_type(query), read_intent(query)

    def make(n: int) -> QueryAnalysis:
        whole = n > min(len(lines), _MAX_SENTENCES)
        said = query if whole else " ".join(lines[: max(0, n)]) or TEMPLATES["long_query"]
        title = f" [{reference.title}]" if reference and reference.title not in query else ""
        return QueryAnalysis(
            resolved_query=said + title,
            query_type=kind,
            intent=meant,
            entities=named[: n if not whole else _MAX_ENTITIES],
            reference_resolution=resolution,
            content_reference=reference,
            reasoning=TEMPLATES["kind"],
        )

    return fit_draft(make, min(len(lines), _MAX_SENTENCES) + 1, pack.max_output_tokens, counter)


def find_references(query: str) -> tuple[str, ...]:
    """The words of `query` that point at something said before it, verbatim; no pronoun for a thing that the query asks for."""
    matches = (m for m in _REFERRING.finditer(query) if not _NOT_REFERRING.match(m[0]))
    references = (m[0].strip() for m in matches if not (_ENDS_WITH_PRONOUN.search(m[0]) and asks_for_antecedent(query[: m.start()])))
    return () if states_preference(query) else tuple(dict.fromkeys(filter(None, references)))


def resolve_references(query: str, turns: list[TurnHeader]) -> tuple[ReferenceResolution, ContentReference | None]:
    """What the query's references point at: the matching turn, or for a bare pronoun the newest one."""
    pointing = find_references(query) or tuple(filter(None, (find_pointer(query),)))
    if not pointing or is_greeting(query):
        return ReferenceResolution(status="not_needed"), None
    target = _resolve_ordinal(query, turns) if _ORDINAL.search(" ".join(pointing)) else _resolve_thing(query, turns)
    if not target:
        return ReferenceResolution(status="unresolved", original_references=pointing), None
    turn, title = target
    return (
        ReferenceResolution(status="resolved", original_references=pointing, resolved_to=title),
        ContentReference(title=title, source_turn=turn.turn),
    )


def _asked_stems(query: str) -> tuple[str, ...]:
    return tuple(stem(w) for w in content_words(_ORDINAL.sub(" ", query)))


def _matching_turns(query: str, turns: list[TurnHeader]) -> list[tuple[float, TurnHeader]]:
    """Turns that share words with the query, best first; of equals the newest first."""
    shares = held_shares([t.words for t in turns], frozenset(_asked_stems(query)))
    return sorted((s for s in zip(shares, turns, strict=True) if s[0] > 0), key=lambda s: (-s[0], -s[1].turn))


def _resolve_thing(query: str, turns: list[TurnHeader]) -> tuple[TurnHeader, str] | None:
    """A thing of earlier turns by the words that are said of it; a pronoun that names no thing points at the newest turn that names one:
    `What did it cost?` asks of the chair, also behind `When does it arrive?`."""
    matching = _matching_turns(query, turns)
    if not find_pointer(query) and (matching or _asked_stems(query)):
        return (matching[0][1], _title(matching[0][1], query)) if matching else None
    informative = [t for t in reversed(turns) if not is_fixed_sentence(t.text)]
    newest = next((t for t in informative if not find_pointer(next(iter(sentences(t.text)), ""))), next(iter(informative), None))
    return (newest, _subject(newest)) if newest else None


def _subject(turn: TurnHeader) -> str:
    """What a turn was about, verbatim: what was asked and what was answered, as far as its summary has them."""
    subject: list[str] = []
    for sentence in sentences(turn.text)[:_MAX_SUBJECT_SENTENCES]:
        if not is_fixed_sentence(sentence) and len(" ".join((*subject, sentence)).split()) <= _MAX_SUBJECT_WORDS:
            subject.append(sentence)
    return " ".join(subject) or ", ".join(turn.topics)


def _resolve_ordinal(query: str, turns: list[TurnHeader]) -> tuple[TurnHeader, str] | None:
    """`the second reservation`: the second id of the turn that listed reservations, where one did; `the second one`: of the last turn.

    Where nothing was listed an ordinal counts something else (`the second tournament` of a season). Only `last` also means the newest
    turn about such a thing.
    """
    ordinal = _ORDINAL.search(query)
    if ordinal is None:
        return None
    place = _ORDINAL_PLACES[ordinal.group(1).lower()]
    noun_stems = frozenset(stem(w) for w in content_words(" ".join(query[ordinal.end() :].split()[:2])) if w.lower() not in _GENERIC_NOUNS)
    candidates = (
        [t for _, t in _matching_turns(query, turns) if noun_stems.intersection(terms(f"{t.text} {' '.join(t.topics)}"))]
        if noun_stems
        else turns[-1:]
    )
    for turn in candidates:
        listed_ids = [e for e in entities(turn.text) if IDENTIFIER.fullmatch(e)]
        if len(listed_ids) > max(1, place):
            return turn, listed_ids[place]
    if place >= 0 or not candidates:
        return None
    newest = max(candidates, key=lambda t: t.turn)
    return newest, _title(newest, query)


def _title(turn: TurnHeader, query: str) -> str:
    """The thing a summary is about, verbatim: a name that the query says in part, an id, a quoted title or a name of it, else a topic, else
    its first sentence. A measure (`16GB`) is no thing."""
    asked = frozenset(_asked_stems(query))
    measures = {(q.start, q.end) for q in quantities(turn.text) if q.unit}
    found = [
        next((g for g in m.groups() if g), m[0])
        for shape in (IDENTIFIER, QUOTED, NAME)
        for m in shape.finditer(turn.text)
        if m.span() not in measures and not _DAY.fullmatch(m[0])
    ]
    things = [value for value in found if value not in query]
    said_in_part = [value for value in things if asked.intersection(terms(value))]
    if things:
        return (said_in_part or things)[0]
    whole = sentences(turn.text)[:1]
    return whole[0] if whole and len(whole[0].split()) <= 20 else next(iter(turn.topics), str(turn.turn))


def reflect(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """Specification 004, section 3.2: PROCEED, but CLARIFY where neither the query nor an earlier turn says what it is about."""
    query = pack.query
    if _is_answerable(query, pack):
        return Reflection(decision="PROCEED", confidence=0.9, reasoning=TEMPLATES["clear"])
    question = (
        f'{TEMPLATES["ask_meaning"]} "{find_pointer(query) or query.strip()}"?'
        if any(c.isalnum() for c in query)
        else TEMPLATES["ask_open"]
    )
    asked = Reflection(decision="CLARIFY", confidence=0.9, reasoning=TEMPLATES["unclear"], question=question)
    fits = counter.count(asked.model_dump_json()) <= pack.max_output_tokens
    return asked if fits else asked.model_copy(update={"question": TEMPLATES["ask_open"]})


def _is_answerable(query: str, pack: PromptPack) -> bool:
    """Whether the query has content of its own, is a greeting or a statement, or points at an earlier turn."""
    if is_greeting(query) or states_preference(query) or read_reference(pack.document("query_analysis.json"))[0]:
        return True
    headers = read_summaries(pack.document("turn_summaries"))
    if content_words(query):
        return bool(headers) or not find_pointer(query)
    if not headers or not any(c.isalnum() for c in query):
        return False
    return asks_past(query) or resolve_references(query, headers)[0].status != "unresolved"
