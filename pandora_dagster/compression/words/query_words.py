"""A question taken apart: what it asks for, whom it names, what it only says to give an instruction.

Knows the grammar of instructions in English; made from no data set.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import cast

import snowballstemmer  # pyright: ignore[reportMissingTypeStubs]

from pandora_dagster.compression.words.normalization import words
from pandora_dagster.compression.words.word_classes import FUNCTION_WORDS, word_set

_INSTRUCTIONS = word_set(
    "summarize summarise summary summaries discuss discusses discussed discussing discussion discussions describe describes described "
    "explain explains explained outline mention mentions mentioned talk talks talked talking speak spoke speaking ask asks asked asking "
    "answer answers answered question questions opinion opinions view views viewpoint perspective perspectives attitude attitudes idea "
    "ideas thought thoughts believe believed belief consider considers considered considering consideration propose proposes proposed "
    "proposal suggest suggests suggested suggestion suggestions recommend recommended recommendation agree agreed agreement disagree "
    "disagreed disagreement argue argued conclude concluded conclusion conclusions decide decides decided decision decisions reason "
    "reasons respond responded response introduce introduced introduction present presents presented presentation "
    "point points issue issues matter topic topics subject aspect aspects part parts detail details information content "
    "contents meeting meetings group team member members participant participants people person speaker speakers professor everyone "
    "main major overall general whole different several various concerning regarding related relate about according toward towards "
    "plan plans planned"
)
_CIRCUMSTANCE = re.compile(
    r"\b(?:when|while|during|in)\b (?:\w+ ){0,4}?"
    r"(?:discuss(?:ing|ion of|ion about)|talking about|making|judging|considering|evaluat(?:ing|ion)|talking|speaking of)\b",
    re.IGNORECASE,
)
_BROAD = re.compile(
    r"\b(?:summari[sz]e|outline|what (?:did|was|were) (?:the )?"
    r"(?:group|team|everyone|participants?|meeting|they)|whole meeting|discussion (?:about|of|on))\b",
    re.IGNORECASE,
)
_CIRCUMSTANCE_SHARE, _MOST = 0.6, 1.5
_FRONT = 8


@dataclass(frozen=True, slots=True)
class Question:
    """Weighted stems, the speakers that are named, and whether a whole topic is asked for."""

    terms: dict[str, float]
    speakers: frozenset[str]
    is_broad: bool


class Stemmer:
    """Snowball stems of content words; each word is stemmed once."""

    def __init__(self) -> None:
        snowball = snowballstemmer.stemmer("english")  # pyright: ignore[reportUnknownMemberType]
        self._stem_word = cast("Callable[[str], str]", snowball.stemWord)  # pyright: ignore[reportUnknownMemberType]
        self._known: dict[str, str] = {}

    def terms(self, text: str) -> list[str]:
        return [self._stem(w) for w in words(text) if w not in FUNCTION_WORDS]

    def all_terms(self, text: str) -> list[str]:
        """Stems of all words, small ones too."""
        return [self._stem(w) for w in words(text)]

    def asked(self, text: str) -> list[str]:
        """Terms of a question, without the words that only instruct."""
        return [self._stem(w) for w in words(text) if w not in FUNCTION_WORDS and w not in _INSTRUCTIONS]

    def _stem(self, word: str) -> str:
        if (known := self._known.get(word)) is None:
            known = self._known[word] = self._stem_word(word)
        return known


def read_question(query: str, speakers: Iterable[str], known: Iterable[str], stemmer: Stemmer) -> Question:
    """Take a query apart. `known` are the stems of the text: a question without any of them falls back to all its words."""
    plain = f" {' '.join(words(query))} "
    named = frozenset(s for s in speakers if s and f" {' '.join(words(s))} " in plain)
    circumstance = _CIRCUMSTANCE.search(query)
    cut = circumstance.start() if circumstance and circumstance.start() > _FRONT else len(query)
    terms: Counter[str] = Counter()
    for part, share in ((query[:cut], 1.0), (query[cut:], _CIRCUMSTANCE_SHARE)):
        for term, times in Counter(stemmer.asked(_without(part, named))).items():
            terms[term] += share * min(times, _MOST)  # pyright: ignore[reportArgumentType]
    standing = frozenset(known)
    for instead in (stemmer.asked(query), stemmer.terms(query)):
        if not any(term in standing for term in terms):
            terms = Counter(instead)
    is_broad = bool(_BROAD.search(query)) and not re.search(r"\bwhen\b", query)
    return Question({term: float(weight) for term, weight in terms.items()}, named, is_broad)


def _without(text: str, names: Iterable[str]) -> str:
    plain = f" {' '.join(words(text))} "
    for name in sorted(names, key=len, reverse=True):
        plain = plain.replace(f" {' '.join(words(name))} ", " ", 1)
    return plain
