"""Summarizes a turn without a model (specification 004, section 11.2): one verbatim unit of the query, one of the answer, and topics.

Each unit is the one with the highest weight; topics are the most frequent words. It is used where no summarizer ran, as for imported turns.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from pandora_dagster.contracts.phase_outputs import Intent, TurnSummary
from pandora_dagster.documents.units.unit_reader import read_units
from pandora_dagster.language.cues import Cue, cues
from pandora_dagster.language.detection import language_of
from pandora_dagster.language.terms import TermReader, is_common
from pandora_dagster.language.tokens import TokenKind, tokens

RUNTIME = "extractive"
"""The runtime of such a summary in the manifest: no model wrote it."""
_MAX_UNIT_CHARACTERS = 320
"""A longer unit is cut to its first words: it would not read as a summary."""
_MAX_READ_CHARACTERS, _MAX_READ_UNITS = 6_000, 12
"""The part of a text that is searched for its best unit and for topics."""
_MIN_TOPICS, _MAX_TOPICS = 2, 5
_QUERY_WEIGHT, _NAME_WEIGHT = 2, 2
"""Words of the query and names count double: they state what the turn is about."""
_MAX_COUNTED_TERMS = 12
_CHARACTERS_PER_TERM = 200
"""Characters of a unit that weigh against one term: of two units with the same terms the shorter one is better."""
_NAME_KINDS = frozenset((TokenKind.NAME, TokenKind.CODE))
_INTENTS: tuple[tuple[Intent, re.Pattern[str]], ...] = (
    ("greeting", re.compile(r"^\W*(?:hi|hello|hey|good (?:morning|afternoon|evening)|thanks?|thank you|bye|goodbye)\b[^?]{0,40}$", re.I)),
    ("recall", re.compile(r"\b(?:remember|recall|last time|earlier|previous(?:ly)?|did (?:we|i|you)|have (?:we|i) )\b", re.I)),
    ("preference", re.compile(r"\b(?:i (?:always |really |usually )?(?:prefer|like|love|hate|dislike)|my favou?rite|i'd rather)\b", re.I)),
    ("navigation", re.compile(r"\b(?:go to|open|visit)\b[^.?!]{0,60}(?:https?://|\.(?:com|org|net)\b|\b(?:page|site|website)\b)", re.I)),
    ("commerce", re.compile(r"\b(?:buy|purchas\w+|order(?:ed|ing)?|book(?:ing|ed)?|price\w*|cheap\w*|cost\w*)\b", re.I)),
)


def summarize(query: str, answer: str, tools: Sequence[str] = (), *, reader: TermReader) -> TurnSummary:
    """The summary of a finished turn from the user's words, the answer and the tools used, by name."""
    query_unit = _best_unit(query, reader, Counter())
    answer_unit = _best_unit(answer, reader, reader.counts(query[:_MAX_READ_CHARACTERS]))
    intent = intent_of(query)
    summary = " ".join(s for s in (query_unit, answer_unit) if s) or f"A turn without words{f' that used {tools[0]}' if tools else ''}."
    topics = _choose_topics(query, answer, tools, intent)
    return TurnSummary(summary=summary, topics=topics, intent=intent, has_research=False, research_topic=None)


def summary_fields(summary: TurnSummary) -> Mapping[str, object]:
    """The summary as a manifest keeps it, marked as made without a model."""
    return {**summary.model_dump(mode="json"), "runtime": RUNTIME}


def intent_of(query: str) -> Intent:
    """The intent of the user's words by rule; `query` where no rule holds."""
    for intent, pattern in _INTENTS:
        if pattern.search(query[:_MAX_READ_CHARACTERS]):
            return intent
    return "query"


def _best_unit(text: str, reader: TermReader, query_terms: Counter[str]) -> str:
    """The unit with the highest weight; of equal ones the first."""
    excerpt, language = text[:_MAX_READ_CHARACTERS], language_of(text[:_MAX_READ_CHARACTERS])
    units = [" ".join(unit.text.split()) for unit in read_units(excerpt, language) if not unit.is_context][:_MAX_READ_UNITS]
    best_unit = max(units, key=lambda unit: _weight(unit, language, reader, query_terms), default="")
    return best_unit if len(best_unit) <= _MAX_UNIT_CHARACTERS else best_unit[:_MAX_UNIT_CHARACTERS].rsplit(" ", 1)[0]


def _weight(unit: str, language: str, reader: TermReader, query_terms: Counter[str]) -> float:
    """Weight by the number of terms, those of the query counted twice, less a penalty for length and for a courtesy."""
    terms = {term for term in reader.terms(unit) if not is_common(term, language)}
    term_weight = min(len(terms), _MAX_COUNTED_TERMS) + len(terms & query_terms.keys())
    return term_weight - len(unit) / _CHARACTERS_PER_TERM - (Cue.COURTESY in cues(unit, language))


def _choose_topics(query: str, answer: str, tools: Sequence[str], intent: str) -> tuple[str, ...]:
    weights: Counter[str] = Counter()
    for weight, text in ((_QUERY_WEIGHT, query[:_MAX_READ_CHARACTERS]), (1, answer[:_MAX_READ_CHARACTERS])):
        for token in tokens(text, language_of(text)):
            if token.kind is not TokenKind.VALUE and len(token.text) > 2:
                weights[token.text.lower()] += weight * (_NAME_WEIGHT if token.kind in _NAME_KINDS else 1)
    words = [word for word, _ in weights.most_common(_MAX_TOPICS)]
    topics = dict.fromkeys((*words, *(t for t in tools if t.strip()), intent, "conversation"))
    return tuple(topics)[: max(_MIN_TOPICS, len(words))]
