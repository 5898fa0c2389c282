"""A turn summary made of the turn's own words (004 section 11.2): whole sentences, verbatim, and the words it is about.

Knows words and their frequency; calls no model and invents nothing. It stands in for the summariser where none ran.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from pandora_dagster.contracts.phase_outputs import Intent, TurnSummary
from pandora_dagster.language.stop_words import STOP_WORDS
from pandora_dagster.language.terms import TermReader

RUNTIME = "extractive"
"""Stands beside the summary in the manifest: no model wrote it."""
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])[\"')\]]*\s+(?=[\"'(\[*A-Z0-9])|\s*\n+\s*")
_CLAUSE_END = re.compile(r"(?<=[,;:])\s+")
_WORD = re.compile(r"[^\W_]+(?:[-_'’.][^\W_]+)*")
_MARKUP = re.compile(r"^(?:[-*#>]+|\d+[.)])\s+")
_LONGEST = 320
"""Characters of a sentence that still reads as a summary; a longer one gives its clauses up to here."""
_READ = 6_000
"""Characters of a text that are looked at for its best sentence."""
_TOPICS = 5
_OWN_WORDS = 2
"""The person's words weigh double: they say what the turn is about."""
_DULL_LIST = (
    "hi hello hey thank thanks yes sure great good help need want would like know please could assist assistance today provide "
    "information details make give tell see look okay right well think time thing things way let lot kind sorry don much"
)
_DULL = frozenset(_DULL_LIST.split())
_INTENTS: tuple[tuple[Intent, re.Pattern[str]], ...] = (
    ("greeting", re.compile(r"^\W*(?:hi|hello|hey|good (?:morning|afternoon|evening)|thanks?|thank you|bye|goodbye)\b[^?]{0,40}$", re.I)),
    ("recall", re.compile(r"\b(?:remember|recall|last time|earlier|previous(?:ly)?|did (?:we|i|you)|have (?:we|i) )\b", re.I)),
    ("preference", re.compile(r"\b(?:i (?:always |really |usually )?(?:prefer|like|love|hate|dislike)|my favou?rite|i'd rather)\b", re.I)),
    (
        "navigation",
        re.compile(r"\b(?:go to|open|navigate|visit)\b[^.?!]{0,60}(?:https?://|\.(?:com|org|net)\b|\b(?:page|site|website)\b)", re.I),
    ),
    (
        "commerce",
        re.compile(r"\b(?:buy|purchas\w+|order(?:ed|ing)?|book(?:ing|ed)?|price\w*|cheap\w*|cost\w*|refund\w*|reserv\w+|upgrade)\b", re.I),
    ),
)


def summarise(query: str, answer: str, tools: Sequence[str] = (), *, reader: TermReader) -> TurnSummary:
    """The summary of a finished turn from the person's words, the answer and the tools used, by name."""
    asked = _best_sentence(query, reader, Counter())
    told = _best_sentence(answer, reader, reader.counts(query[:_READ]))
    intent = intent_of(query)
    said = " ".join(s for s in (asked, told) if s) or f"A turn without words{f' that used {tools[0]}' if tools else ''}."
    return TurnSummary(summary=said, topics=_topics(query, answer, tools, intent), intent=intent, has_research=False, research_topic=None)


def summary_fields(summary: TurnSummary) -> Mapping[str, object]:
    """The summary as a manifest keeps it, marked as made without a model."""
    return {**summary.model_dump(mode="json"), "runtime": RUNTIME}


def intent_of(query: str) -> Intent:
    """The intent of the person's words by rule; `query` where no rule holds."""
    for intent, pattern in _INTENTS:
        if pattern.search(query[:_READ]):
            return intent
    return "query"


def _best_sentence(text: str, reader: TermReader, asked: Counter[str]) -> str:
    """The sentence that says most: many terms, terms that were asked for count twice, early ones win ties."""
    sentences = [s for s in (_MARKUP.sub("", part).strip() for part in _SENTENCE_END.split(text[:_READ])) if s]
    if not sentences:
        return ""
    scores = [_weight(sentence, reader, asked) for sentence in sentences[:12]]
    best = scores.index(max(scores))
    return _within(" ".join(sentences[best].split()))


def _weight(sentence: str, reader: TermReader, asked: Counter[str]) -> float:
    terms = {t for t in reader.terms(sentence) if t not in _DULL}
    return min(len(terms), 12) + len(terms & asked.keys()) - len(sentence) / 200


def _within(sentence: str) -> str:
    if len(sentence) <= _LONGEST:
        return sentence
    kept = ""
    for clause in _CLAUSE_END.split(sentence):
        if len(kept) + len(clause) > _LONGEST:
            break
        kept = f"{kept} {clause}".strip()
    return kept or sentence[:_LONGEST].rsplit(" ", 1)[0]


def _topics(query: str, answer: str, tools: Sequence[str], intent: str) -> tuple[str, ...]:
    weights: Counter[str] = Counter()
    for weight, text in ((_OWN_WORDS, query), (1, answer)):
        for word in _WORD.findall(text[:_READ]):
            if worth := _worth(word):
                weights[word.lower()] += weight * worth
    words = [word for word, _ in sorted(weights.items(), key=lambda item: -item[1])[:_TOPICS]]
    spare = dict.fromkeys((*words, *(t for t in tools if t.strip()), intent, "conversation"))
    return tuple(spare)[: max(2, len(words))]


def _worth(word: str) -> int:
    low = word.lower()
    if low in STOP_WORDS or low in _DULL or len(low) < 3 or low.split("'")[0] in STOP_WORDS or low.split("’")[0] in STOP_WORDS:
        return 0
    if not low.isalpha():
        return 2 if any(c.isalpha() for c in low) and any(c.isdigit() for c in low) else int(any(c.isalpha() for c in low))
    return 2 if word[0].isupper() else 1
