"""A turn summary made of the turn's own words (004 section 11.2): whole units, verbatim, and the words it is about.

Calls no model and invents nothing. It replaces the summariser where none ran.
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
_LONGEST = 320
"""Characters of a unit that still reads as a summary; a longer one gives its first words."""
_READ, _UNITS = 6_000, 12
"""Characters and units of a text that are looked at for its best unit."""
_TOPICS = 5
_OWN_WORDS = 2
"""The user's words weigh double: they say what the turn is about."""
_NAMED = frozenset((TokenKind.NAME, TokenKind.CODE))
_INTENTS: tuple[tuple[Intent, re.Pattern[str]], ...] = (
    ("greeting", re.compile(r"^\W*(?:hi|hello|hey|good (?:morning|afternoon|evening)|thanks?|thank you|bye|goodbye)\b[^?]{0,40}$", re.I)),
    ("recall", re.compile(r"\b(?:remember|recall|last time|earlier|previous(?:ly)?|did (?:we|i|you)|have (?:we|i) )\b", re.I)),
    ("preference", re.compile(r"\b(?:i (?:always |really |usually )?(?:prefer|like|love|hate|dislike)|my favou?rite|i'd rather)\b", re.I)),
    ("navigation", re.compile(r"\b(?:go to|open|visit)\b[^.?!]{0,60}(?:https?://|\.(?:com|org|net)\b|\b(?:page|site|website)\b)", re.I)),
    ("commerce", re.compile(r"\b(?:buy|purchas\w+|order(?:ed|ing)?|book(?:ing|ed)?|price\w*|cheap\w*|cost\w*)\b", re.I)),
)


def summarise(query: str, answer: str, tools: Sequence[str] = (), *, reader: TermReader) -> TurnSummary:
    """The summary of a finished turn from the user's words, the answer and the tools used, by name."""
    asked = _best_unit(query, reader, Counter())
    answered = _best_unit(answer, reader, reader.counts(query[:_READ]))
    intent = intent_of(query)
    said = " ".join(s for s in (asked, answered) if s) or f"A turn without words{f' that used {tools[0]}' if tools else ''}."
    return TurnSummary(summary=said, topics=_topics(query, answer, tools, intent), intent=intent, has_research=False, research_topic=None)


def summary_fields(summary: TurnSummary) -> Mapping[str, object]:
    """The summary as a manifest keeps it, marked as made without a model."""
    return {**summary.model_dump(mode="json"), "runtime": RUNTIME}


def intent_of(query: str) -> Intent:
    """The intent of the user's words by rule; `query` where no rule holds."""
    for intent, pattern in _INTENTS:
        if pattern.search(query[:_READ]):
            return intent
    return "query"


def _best_unit(text: str, reader: TermReader, asked: Counter[str]) -> str:
    """The unit that says most: many terms, terms that were asked for count twice, early ones win ties."""
    read, language = text[:_READ], language_of(text[:_READ])
    units = [" ".join(unit.text.split()) for unit in read_units(read, language) if not unit.is_context][:_UNITS]
    best = max(units, key=lambda unit: _weight(unit, language, reader, asked), default="")
    return best if len(best) <= _LONGEST else best[:_LONGEST].rsplit(" ", 1)[0]


def _weight(unit: str, language: str, reader: TermReader, asked: Counter[str]) -> float:
    terms = {term for term in reader.terms(unit) if not is_common(term, language)}
    return min(len(terms), 12) + len(terms & asked.keys()) - len(unit) / 200 - (Cue.COURTESY in cues(unit, language))


def _topics(query: str, answer: str, tools: Sequence[str], intent: str) -> tuple[str, ...]:
    weights: Counter[str] = Counter()
    for weight, text in ((_OWN_WORDS, query[:_READ]), (1, answer[:_READ])):
        for token in tokens(text, language_of(text)):
            if token.kind is not TokenKind.VALUE and len(token.text) > 2:
                weights[token.text.lower()] += weight * (2 if token.kind in _NAMED else 1)
    words = [word for word, _ in weights.most_common(_TOPICS)]
    spare = dict.fromkeys((*words, *(t for t in tools if t.strip()), intent, "conversation"))
    return tuple(spare)[: max(2, len(words))]
