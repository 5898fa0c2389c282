"""What a question asks the index for: words, their beginnings, dates, an amount of money, one speaker."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from pandora_dagster.language.dates import MONTHS, query_date_terms
from pandora_dagster.language.relative_days import relative_day_terms
from pandora_dagster.language.terms import MONEY, TermReader, is_common, prefix_of

_PRICE_WORDS = ("cost", "price", "pay", "spend", "amount", "expens", "cheap", "charg", "total", "fee", "refund")
_MONEY_WEIGHT = 0.5
_COMMON_WEIGHT = 0.5
"""Of words such as `make` and `kind`: one half finds 1.5 points more of multi-hop evidence within 1,000 tokens."""
_MIN_NAME_LETTERS = 3
"""A name may be shortened to this many letters: `Mel` is Melanie."""
_PREFIX_LETTERS = 5
"""Letters of a prefix term."""
_NAME = re.compile(r"[^\W\d_]+")
_POSSESSIVE_NAME = re.compile(rf"({_NAME.pattern})(?:['’]s\b)?")


@dataclass(frozen=True, slots=True)
class SearchQuestion:
    """Terms with their weights, by what they are matched against."""

    words: Mapping[str, float]
    prefixes: Mapping[str, str]
    """Prefix term -> the five letters themselves, which a short word is stored as."""
    dates: tuple[str, ...]
    named_speakers: tuple[str, ...] = ()
    """The user's speakers whom it names."""
    message_days: tuple[str, ...] = ()
    """Date terms of the days on which the messages that it asks for were written."""

    @property
    def speaker(self) -> str:
        """The one person whom it names; "" where it names none or several."""
        return self.named_speakers[0] if len(self.named_speakers) == 1 else ""

    def terms(self) -> tuple[str, ...]:
        """Everything to look for, each once."""
        return tuple(dict.fromkeys((*self.words, *self.prefixes, *self.prefixes.values(), *self.dates, *self.message_days)))


def read_question(query: str, reader: TermReader, *, speakers: Iterable[str] = (), today: date | None = None) -> SearchQuestion:
    """Read a question; names of the user's speakers are no search words, because every other message has one.

    `today` is the day on which it is asked; None: `yesterday` and the like stay words.
    """
    named = _find_named_speakers(query, speakers)
    names = {term for name in named for term in reader.terms(" ".join((name, *named[name])))}
    dates = query_date_terms(query)
    language = reader.language(query)
    weights: dict[str, float] = defaultdict(float)
    for word in reader.words(query):
        for term in word if names.isdisjoint(word) else ():
            weights[term] += (_COMMON_WEIGHT if is_common(term, language) else 1.0) / len(word)
    words = tuple(weights)
    if any(word in words for word in _PRICE_WORDS) or "how much" in query.lower():
        weights[MONEY] = _MONEY_WEIGHT
    for term in dates:
        if term[1:] in MONTHS:
            weights.setdefault(reader.stem(term[1:]), 1.0)
    prefixes = {prefix: prefix[1:] for word in words if (prefix := prefix_of(word) or _prefix_of_short_word(word))}
    return SearchQuestion(weights, prefixes, dates, tuple(named), relative_day_terms(query, today) if today else ())


def strip_names(query: str, speakers: Iterable[str]) -> str:
    """The query without the words that name the user's speakers."""
    names = {word for words in _find_named_speakers(query, speakers).values() for word in words}
    return " ".join(_POSSESSIVE_NAME.sub(lambda match: "" if match[1].lower() in names else match[0], query).split())


def _prefix_of_short_word(word: str) -> str:
    """The prefix term of longer words that begin with a word of the prefix's length."""
    return prefix_of(f"{word}x") if len(word) == _PREFIX_LETTERS else ""


def _find_named_speakers(query: str, speakers: Iterable[str]) -> dict[str, set[str]]:
    """Speaker -> the words of the query that name them, a name's beginning included."""
    query_words = set(_NAME.findall(query.lower()))
    named: dict[str, set[str]] = {}
    for speaker in speakers:
        parts = _NAME.findall(speaker.lower())[:1]
        words = {w for w in query_words for part in parts if w == part or (len(w) >= _MIN_NAME_LETTERS and part.startswith(w))}
        if words:
            named[speaker] = words
    return named
