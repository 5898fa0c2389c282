"""Names that changed places around a verb: `Ann owes Ben` against `Ben owes Ann`.

Knows the names of two texts and the order in which they stand; knows English voices, nothing of what a verb means.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pandora_dagster.compression.facts.fact_types import FactKind
from pandora_dagster.compression.facts.value_finder import FoundValue
from pandora_dagster.compression.read.dialogue_lines import unspoken
from pandora_dagster.compression.words.query_words import Stemmer
from pandora_dagster.compression.words.word_classes import OPENERS, STOP_WORDS, sentences, word_set

_TOKEN = re.compile(r"[^\W\d_][\w'\u2019\-]*|[^\w\s.$€£¥%]")
_BETWEEN = 8
"""Words at most between two names of which one verb tells."""
_PASSIVE = word_set("by is are was were been being be get gets got")
_MUTUAL = word_set(
    "met meet meets meeting marry marries married divorced friend friends colleague neighbour neighbor cousin sibling twin with"
)
"""Words that tell the same of both."""
_POSSESSIVE = re.compile(r"['\u2019]s?$")


@dataclass(frozen=True, slots=True)
class _Relation:
    """One name, the verb behind it, another name; `sentence` is where they stand."""

    left: frozenset[str]
    verb: str
    is_passive: bool
    right: frozenset[str]
    sentence: str

    @property
    def pairs(self) -> Iterator[tuple[str, str, bool, str]]:
        yield from ((one, self.verb, self.is_passive, other) for one in self.left for other in self.right)


def reversed_relations(text: str, values: Iterable[FoundValue], source: str, theirs: Iterable[FoundValue]) -> Iterator[str]:
    """Sentences of `text` in which names stand around a verb in the order opposite to that of `source`, which nowhere has theirs."""
    names = name_words(values) | name_words(theirs)
    stemmer = Stemmer()
    said = {pair for relation in _relations(source, names, stemmer) for pair in relation.pairs} if names else set[object]()
    for relation in _relations(text, names, stemmer) if said else ():
        own = list(relation.pairs)
        if not any(pair in said for pair in own) and any((other, verb, voice, one) in said for one, verb, voice, other in own):
            yield relation.sentence


def name_words(values: Iterable[FoundValue]) -> frozenset[str]:
    """The words of proper names, as written."""
    found = (word for value in values if value.kind is FactKind.NAME for word in _TOKEN.findall(value.text))
    return frozenset(bare for word in found if (bare := _POSSESSIVE.sub("", word))[:1].isupper() and bare.lower() not in OPENERS)


def _relations(text: str, names: frozenset[str], stemmer: Stemmer) -> Iterator[_Relation]:
    for line in text.split("\n"):
        said = unspoken(line)
        if _tells_of_two(_TOKEN.findall(said), names):
            for sentence in sentences(said):
                yield from _of_sentence(sentence, names, stemmer)


def _tells_of_two(tokens: Iterable[str], names: frozenset[str]) -> bool:
    return sum(token in names for token in tokens) > 1


def _of_sentence(sentence: str, names: frozenset[str], stemmer: Stemmer) -> Iterator[_Relation]:
    tokens = _TOKEN.findall(sentence)
    if not _tells_of_two(tokens, names):
        return
    left: tuple[str, ...] = ()
    between: list[str] = []
    pending: tuple[tuple[str, ...], list[str]] | None = None
    for token in [*tokens, ","]:
        if token in names and (not between or left):
            if between:
                pending, left, between = (left, between), (), []
            left = (*left, token)
            continue
        if pending and not _POSSESSIVE.search(token):
            yield from _relation(*pending, left, sentence, stemmer)
        pending = None
        if not token[0].isalpha() or token.lower() in ("and", "or") or _POSSESSIVE.sub("", token) in names:
            left, between = (), []
        elif left:
            between.append(token.lower())


def _relation(left: tuple[str, ...], between: list[str], right: tuple[str, ...], sentence: str, stemmer: Stemmer) -> Iterator[_Relation]:
    told = [word for word in between if word not in STOP_WORDS]
    if told and len(between) <= _BETWEEN and not any(word in _MUTUAL for word in between):
        verb = stemmer.all_terms(told[0])[0]
        yield _Relation(frozenset(left), verb, any(word in _PASSIVE for word in between), frozenset(right), sentence)
