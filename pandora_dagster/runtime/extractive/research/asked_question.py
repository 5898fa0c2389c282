"""A question as the loop reads it: what it is about, what it asks of it, and the queries for it.

Everything is taken from the question's own words: no fact of the user, no earlier turn and no page goes into a query.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from pandora_dagster.contracts.web.research_decisions import MAX_QUERY_CHARACTERS
from pandora_dagster.language.detection import question_language
from pandora_dagster.language.requests.asked_values import AskedKind, asked_kind, without_asking_words
from pandora_dagster.language.stop_words import ASKING_WORDS, function_words, stop_words
from pandora_dagster.language.terms import TermReader
from pandora_dagster.language.tokens import words_within

_WORD = re.compile(r"[^\W_]+(?:[-/][^\W_]+)*")
_ACCORDING_TO_MAKER = re.compile(
    r"\baccording to (?:its|the) (?:maker|manufacturer)\b|\blaut hersteller\b|\bher?stellerangaben?\b", re.IGNORECASE
)
_PREVIOUS_PRICE = re.compile(
    r"\bbefore\b|\bpreviously\b|\boriginal(?:ly)?\b|\bvorher\b|\bursprünglich\b|\bfrüher\b|\bavant\b", re.IGNORECASE
)
_AT_SITE = re.compile(r"\b(?:at|from|bei|von|chez|bij|en)\s((?:[A-Z][\w-]{0,40}\s?){1,4})")
_ASKING = r"(?:how|when|what|which|who|where|wie|wann|was|welche[mnrs]?|wer|wo)"
_TWO_QUESTIONS = re.compile(rf"\b(?:and|und|when to|wann bis) {_ASKING}\b", re.IGNORECASE)
_ASKS_WAY = re.compile(
    r"^(?:how (?:do|does|did|can|could|should|to)|why|wie (?:kann|mach|muss|soll)\w*|warum|weshalb|wieso|comment|pourquoi)\b",
    re.IGNORECASE,
)
_SUPERLATIVE = re.compile(r"\b(?:most|least|best|worst|[a-z]{3,20}est)\b|\bam [a-zäöüß]{3,20}sten\b|\b[a-zäöüß]{3,20}ste[nrs]?\b")
_NO_SUPERLATIVES = frozenset({"test", "latest", "newest", "request", "interest", "forest", "rest", "guest", "letzten", "ersten"})
_YEAR = re.compile(r"(?:19|20)\d\d")
_MATTERLESS = ASKING_WORDS | {"current", "currently", "today", "now", "latest", "aktuell", "heute", "jetzt"}
"""Words about the asking, and about the time of asking: pages are read now."""
READER = TermReader()


def terms_of(text: str) -> frozenset[str]:
    """The terms of a text, those of a compound with a number apart: `Arc-60` has `arc` and `60`."""
    return frozenset(READER.terms(text)) | frozenset(
        READER.terms(re.sub(r"(?<=[^\W\d_])[-_/]?(?=\d)|(?<=\d)[-_/](?=[^\W\d_])|[-_/]", " ", text))
    )


@dataclass(frozen=True)
class AskedQuestion:
    """A question with what its form says."""

    text: str
    titles: tuple[str, ...] = ()
    """Titles of hits and pages: a German noun among their words is taken for a name."""

    @cached_property
    def language(self) -> str:
        return question_language(self.text)

    @cached_property
    def kind(self) -> AskedKind:
        return asked_kind(self.text)

    @cached_property
    def asks_maker(self) -> bool:
        return bool(_ACCORDING_TO_MAKER.search(self.text))

    @cached_property
    def asks_twice(self) -> bool:
        """Whether it asks for two things (`which ... and how many`, `from when to when`): no single statement is known to answer both."""
        return bool(_TWO_QUESTIONS.search(self.text))

    @cached_property
    def asks_way(self) -> bool:
        """Whether it asks for a way or a reason: that a statement shares its words does not make it one."""
        return self.kind is AskedKind.TEXT and bool(_ASKS_WAY.match(self.text))

    @cached_property
    def superlatives(self) -> frozenset[str]:
        """Terms of its superlatives: whoever answers compares, so that a statement must have the superlative itself."""
        words = (word for found in _SUPERLATIVE.findall(self.text) for word in _WORD.findall(found) if word != "am")
        return terms_of(" ".join(word for word in words if word not in _NO_SUPERLATIVES))

    @cached_property
    def asks_previous_price(self) -> bool:
        return self.kind is AskedKind.MONEY and bool(_PREVIOUS_PRICE.search(self.text))

    @cached_property
    def _title_words(self) -> frozenset[str]:
        return frozenset(word for title in self.titles for word in _WORD.findall(title))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The words that name a thing: with a digit, with a capital letter inside the sentence, or a number behind such a word.
        German writes every noun with a capital letter, so that one inside the sentence must also be in a title."""
        words = list(_WORD.finditer(self.text))
        names: list[str] = []
        for place, found in enumerate(words):
            word, before, after = found[0], words[place - 1][0] if place else "", words[place + 1][0] if place + 1 < len(words) else ""
            if any(character.isdigit() for character in word):
                is_name = not word.isdigit() or before[:1].isupper() or bool(_YEAR.fullmatch(word))
            else:
                is_name = word[0].isupper() and place > 0 and word.lower() not in stop_words(self.language)
                is_name &= self.language != "de" or after[:1].isdigit() or not word[1:].islower() or word in self._title_words
            if is_name:
                names.append(word)
        return tuple(dict.fromkeys(names))

    @cached_property
    def sites(self) -> tuple[str, ...]:
        """The names behind a preposition of place, which may be those of sites; every name where there is none."""
        behind = {word for found in _AT_SITE.finditer(self.text) for word in _WORD.findall(found[1])}
        return tuple(name for name in self.names if name in behind) or self.names

    @cached_property
    def name_terms(self) -> frozenset[str]:
        return terms_of(" ".join(self.names))

    @cached_property
    def matter_terms(self) -> frozenset[str]:
        """What is asked of the named thing: the other words, without those that say the kind of value."""
        text = _PREVIOUS_PRICE.sub(" ", _ACCORDING_TO_MAKER.sub(" ", without_asking_words(self.text, self.kind)))
        words = [word for word in _WORD.findall(text) if word.lower() not in _MATTERLESS | _functions(self.language)]
        return terms_of(" ".join(words)) - self.name_terms

    @cached_property
    def terms(self) -> frozenset[str]:
        return self.name_terms | self.matter_terms

    def queries(self) -> tuple[str, ...]:
        """The question's own words without function words, then its names alone; of a long question its names before other words."""
        words = [w for w in _WORD.findall(self.text) if w.lower() not in ASKING_WORDS | _functions(self.language)]
        lists = (words, self.names if len(self.names) > 1 else ())
        texts = (words_within(listed, MAX_QUERY_CHARACTERS, first=self.names) for listed in lists)
        return tuple(dict.fromkeys(text for text in texts if text))


def _functions(language: str) -> frozenset[str]:
    """Words that say nothing in a query; in English the shorter list, since `order` or `room` may be what is asked."""
    foreign: frozenset[str] = function_words(language) if language != "en" else frozenset()
    return function_words("en") | foreign


def share(wanted: Iterable[str], held: frozenset[str]) -> float:
    """The share of `wanted` in `held`; 1 for none wanted. Words of five letters and more also meet by their beginning."""
    terms = tuple(wanted)
    if not terms:
        return 1.0
    return sum(is_held(term, held) for term in terms) / len(terms)


def is_held(term: str, held: frozenset[str]) -> bool:
    """Whether a term is among others, or begins or is begun by one of at least five letters: `weigh` and `weight`."""
    if term in held:
        return True
    return (
        len(term) >= 5
        and term.isalpha()
        and any(len(other) >= 5 and other.isalpha() and (other.startswith(term) or term.startswith(other)) for other in held)
    )
