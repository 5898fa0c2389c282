"""Role `summarizer`: a turn's entry in the index (specification 004, section 11.2): words of the query and of the answer, and key words."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

from pandora_dagster.contracts.model_calls import PromptPack
from pandora_dagster.contracts.phase_outputs import TurnSummary
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.language.sentences import sentences
from pandora_dagster.language.stop_words import ASKING_WORDS
from pandora_dagster.runtime.extractive.answer_templates import TEMPLATES
from pandora_dagster.runtime.extractive.evidence.tool_results import read_results
from pandora_dagster.runtime.extractive.output_budget import Draft, fit_draft
from pandora_dagster.runtime.extractive.queries.content_words import STOP_WORDS, stem, words
from pandora_dagster.runtime.extractive.queries.query_intent import read_intent

_CITATION = re.compile(r"(?<!\s)\s*\[\d{1,4}\](?![(\[:])")
_MARKUP = re.compile(r"^(?:[-*+>#|]+\s*|\d{1,3}[.)]\s+)+|`{3,}\w*")
_RESEARCH_TOOL = "internet.research"
_NON_ID_CHARACTERS = re.compile(r"[^a-z0-9]+")
_MAX_SENTENCE_WORDS = 45
_MAX_TOPICS = 5
_MAX_TOPIC_CHARACTERS = 40


def summarize(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """Specification 004, section 11.2's TurnSummary from verbatim sentences; a sentence too long for it is left out, never cut."""
    context = ContextDocument.parse(pack.document("context.md"))
    query = pack.query
    said = [_strip_markup(s) for s in sentences(context.body(5)) if _strip_markup(s)]
    chosen = choose_topics(query, " ".join(said))
    researched = any(r.tool == _RESEARCH_TOOL for r in read_results(context.body(4)))
    meant = read_intent(query)
    pieces = [*_short_lines([_strip_markup(s) for s in sentences(query)])[:2], *_short_lines(said)[:1]]

    def make(n: int) -> TurnSummary:
        return TurnSummary(
            summary=" ".join(pieces[:n]) or ", ".join(chosen),
            topics=chosen,
            intent=meant,
            has_research=researched,
            research_topic=_topic_id(meant, chosen) if researched else None,
        )

    return fit_draft(make, len(pieces), pack.max_output_tokens, counter)


def _topic_id(category: str, names: Iterable[str]) -> str:
    """`category.subcategory` after the first name that can be written in plain letters; the category alone where none can."""
    plain = (unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower() for name in names)
    ids = (_NON_ID_CHARACTERS.sub("-", name).strip("-") for name in plain)
    return ".".join((category, *[name for name in ids if name][:1]))


def _strip_markup(sentence: str) -> str:
    return _MARKUP.sub("", _CITATION.sub("", sentence)).strip()


def _short_lines(lines: list[str]) -> list[str]:
    return [line for line in lines if line and len(line.split()) <= _MAX_SENTENCE_WORDS]


def choose_topics(query: str, response: str) -> tuple[str, ...]:
    """Two to five key words of the turn; the query's words weigh most, of equals the earlier ones come first."""
    query_words, response_words = _topic_words(query), _topic_words(response)
    response_counts = Counter(stem(w) for w in response_words)
    query_counts = Counter(stem(w) for w in query_words)
    first_word: dict[str, str] = {}
    for word in [*query_words, *response_words]:
        first_word.setdefault(stem(word), word)
    ordered = sorted(first_word, key=lambda s: -(3 * min(query_counts[s], 2) + min(response_counts[s], 4)))
    chosen = [first_word[s] for s in ordered][:_MAX_TOPICS]
    fallback = [w for w in words(query) if w not in chosen and len(w) <= _MAX_TOPIC_CHARACTERS] + [
        TEMPLATES["topic_conversation"],
        TEMPLATES["topic_turn"],
    ]
    return tuple(dict.fromkeys([*chosen, *fallback]))[: max(2, len(chosen))]


def _topic_words(text: str) -> list[str]:
    return [
        w
        for w in words(text)
        if 2 < len(w) <= _MAX_TOPIC_CHARACTERS and not w.isdigit() and w not in STOP_WORDS and w not in ASKING_WORDS and w.isalnum()
    ]
