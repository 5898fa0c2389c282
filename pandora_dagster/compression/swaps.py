"""Two values of one kind that changed places: each stands in a sentence with what only the other is about.

Knows facts, source and candidate. Values that the source says more than once, and rows of tables, are not judged here.
"""

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pandora_dagster.compression.candidate import Candidate
from pandora_dagster.compression.facts import NUMERIC, Fact
from pandora_dagster.compression.grounding import NO_SENTENCES, Source
from pandora_dagster.compression.language import content_stems
from pandora_dagster.compression.normal import padded

_BORDER = re.compile(r"[.!?;]\s+|\n")
_REACH = 240
_JUDGED = 60
"""Suspects at most: a text in which more values lost words of their sentences is a condensed one, not one with two in exchange."""


@dataclass(frozen=True, slots=True)
class _Suspect:
    """A value that stands without some words of its sentence: the content stems there, and here."""

    fact: Fact
    theirs: frozenset[str]
    here: frozenset[str]


def swapped(facts: Iterable[Fact], candidate: Candidate, source: Source) -> frozenset[int]:
    """Where those of `facts` begin that changed places with another of their kind."""
    found: set[int] = set()
    suspects = list(itertools.islice(_suspects(facts, candidate, source), _JUDGED))
    for one, other in itertools.combinations(suspects, 2):
        if one.fact.kind is other.fact.kind and _took(one, other) and _took(other, one):
            found |= {one.fact.start, other.fact.start}
    return frozenset(found)


def _took(one: _Suspect, other: _Suspect) -> bool:
    """Whether a value stands with words that only the other is about, and with none that only it is."""
    own, foreign = one.theirs - other.theirs, other.theirs - one.theirs
    return bool(own and one.here & foreign) and not one.here & own


def _suspects(facts: Iterable[Fact], candidate: Candidate, source: Source) -> Iterator[_Suspect]:
    lines: dict[int, _Sentences] = {}
    for fact in facts:
        if fact.kind not in NUMERIC or not fact.key:
            continue
        line = next(candidate.lines_of(fact.key), None)
        if line is None or "|" in candidate.lines[line] or candidate.lines[line].startswith(NO_SENTENCES):
            continue
        if line not in lines:
            lines[line] = _Sentences(candidate.lines[line])
        own = frozenset(content_stems(fact.text))
        spoken = lines[line].stems_with(fact.key)
        theirs = frozenset(content_stems(_around(fact, source.text))) - own
        has_more = len(spoken) > len(own) + len(theirs) or bool(spoken - own - theirs)
        if has_more and not theirs <= spoken and source.keys.stands_once(fact.key):
            yield _Suspect(fact, theirs, spoken - own)


class _Sentences:
    """The sentences of a line, to be found by the keys that stand in them."""

    def __init__(self, line: str) -> None:
        self._texts = _BORDER.split(line)
        self._padded = [padded(text) for text in self._texts]
        self._stems: dict[int, frozenset[str]] = {}
        self._with: defaultdict[str, list[int]] = defaultdict(list)
        for number, text in enumerate(self._padded):
            for word in dict.fromkeys(text.split()):
                self._with[word].append(number)

    def stems_with(self, key: str) -> frozenset[str]:
        """Content stems of the first sentence in which a key stands; none where it stands in none."""
        rarest = min((self._with.get(word, ()) for word in key.split()), key=len)
        number = next((n for n in rarest if f" {key} " in self._padded[n]), None)
        if number is None:
            return frozenset()
        if number not in self._stems:
            self._stems[number] = frozenset(content_stems(self._texts[number]))
        return self._stems[number]


def _around(fact: Fact, text: str) -> str:
    """The sentence of the source that a fact stands in; "" in a later generation of it, whose spans are another's."""
    if text[fact.start : fact.end] != fact.text:
        return ""
    before = _BORDER.split(text[max(0, fact.start - _REACH) : fact.start])[-1]
    return before + fact.text + _BORDER.split(text[fact.end : fact.end + _REACH])[0]
