"""Numbers written as words with what they count, parts of a whole, and ranges: `nine days`, `more than a third of`, `from 11 to 8`.

Knows the number words of English; knows nothing of facts. Linear in the text.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from pandora_dagster.compression.facts.canonical_values import Value, plain_number, spelling
from pandora_dagster.compression.facts.fact_types import FactKind
from pandora_dagster.compression.words.word_classes import FUNCTION_WORDS, stem

_ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDERED = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
_WORDS = (
    {word: n for n, word in enumerate(_ONES.split())}
    | {word: 10 * n for n, word in enumerate(_TENS.split(), 2)}
    | {"couple": 2, "both": 2, "dozen": 12}
)
_ORDINALS = {word: n for n, word in enumerate(_ORDERED.split(), 1)}
_VAGUE = frozenset(("zero", "one", "first", "both"))
"""Number words that mostly count nothing."""
_SECONDS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_MONTHS = {"month": 1, "year": 12}
_TOKEN = re.compile(r"\d+(?:st|nd|rd|th)\b|\d[\d,]*(?:\.\d+)?|[^\W\d_]+|[.;:!?\n,|]")
_INITIALS = "".join(sorted({word[0] for word in (*_WORDS, *_ORDINALS)}))
_NUMBERED = re.compile(
    rf"\b(?=[{_INITIALS}])(?:{'|'.join(sorted({*_WORDS, *_ORDINALS}, key=len, reverse=True))})(?![^\W\d_])"
    r"|\d+(?:st|nd|rd|th)\b|\d[\d,]*(?:\.\d+)?",
    re.IGNORECASE,
)
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
_QUARTER = re.compile(r"Q([1-4])")
_REACH, _NOUNS = 6, 2
_BOUNDS = {
    ">": "more than|over|above|at least|exceeding",
    "<": "less than|fewer than|under|below|at most|up to",
    "~": "about|around|nearly|almost|roughly|approximately",
}
_PART = re.compile(
    r"\b(?:(?:an?|one|two|three)[ \-](half|thirds?|quarters?|fifths?|tenths?)|(half))(?=\s+(?:of|the|their|its|our|all)\b)", re.IGNORECASE
)
_BOUND = re.compile(rf"\b({'|'.join(_BOUNDS.values())})\s+$", re.IGNORECASE)
_LONGEST_BOUND = 24
"""Characters before a part in which its bound stands."""
_PERCENT = {"half": "50", "third": "33", "quarter": "25", "fifth": "20", "tenth": "10"}
_AMOUNT, _UNIT = r"\d[\d,]*(?:\.\d+)?", r"(?: ?%| [a-z]+)?"
_SPANS = (
    (re.compile(rf"\b(?:from|between) (?P<sign>[$€£]?)(?P<one>{_AMOUNT}){_UNIT} (?:to|and) (?P=sign)(?P<other>{_AMOUNT})"), False),
    (
        re.compile(
            rf"(?<![\w\-/.,$€£])(?P<sign>[$€£]?)(?P<one>{_AMOUNT}){_UNIT}(?: to | ?\u2013 ?|-)(?P=sign)(?P<other>{_AMOUNT})(?![\w\-/])"
        ),
        False,
    ),
    (re.compile(rf"\bto (?P<sign>[$€£]?)(?P<one>{_AMOUNT}){_UNIT},? (?:up |down )?from (?P=sign)(?P<other>{_AMOUNT})"), True),
)


@dataclass(frozen=True, slots=True)
class _CountedThing:
    """A number with the stems of what may be counted by it, nearest first; `written` is the number as it stands, `text` all from it to
    the nearest."""

    number: str
    is_ordinal: bool
    nouns: tuple[str, ...]
    written: str
    text: str


class Counts:
    """What a text counts, once for any number of questions."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._counted = tuple(_read(text, stops=".;:!?\n|"))

    @cached_property
    def spellings(self) -> frozenset[Value]:
        """The numbers that stand as words, as values are spelled."""
        named = [c for c in self._counted if not c.is_ordinal and not c.written[0].isdigit()]
        amounts = (spelling(FactKind.QUANTITY, f"{c.number} {c.nouns[0]}") for c in named if c.nouns)
        return frozenset(amounts) | frozenset((FactKind.NUMBER, c.number) for c in named)

    def has_ordinal(self, text: str) -> bool:
        """Whether `10th` stands as tenth, and `Q3` as third quarter."""
        if found := _ORDINAL.fullmatch(text):
            return any(c.is_ordinal and c.number == found.group(1) for c in self._counted)
        quarter = _QUARTER.fullmatch(text)
        return bool(quarter) and any(c.is_ordinal and c.number == quarter.group(1) and "quarter" in c.nouns for c in self._counted)

    @cached_property
    def _by_noun(self) -> dict[tuple[str, bool], set[str]]:
        found: defaultdict[tuple[str, bool], set[str]] = defaultdict(set)
        for counted in self._counted:
            for noun in counted.nouns:
                found[noun, counted.is_ordinal].add(counted.number)
        return found

    @cached_property
    def _lengths(self) -> frozenset[tuple[str, float]]:
        return frozenset(length for c in self._counted for noun in c.nouns if (length := _length(c.number, noun)))

    @cached_property
    def parts(self) -> frozenset[tuple[str, str]]:
        """Parts of a whole, each with the bound before it."""
        return frozenset(part for part, _ in _parts(self._text))

    @cached_property
    def spans(self) -> frozenset[tuple[str, str]]:
        return frozenset(span for span, _ in _spans(self._text))

    def miscounted(self, text: str) -> Iterator[str]:
        """What `text` counts or measures in words, or gives as a part or a range, where this text has another number."""
        yield from (c.text for c in _read(text, stops=".;:!?\n|,") if self._is_other(c))
        known = frozenset(part for _, part in self.parts)
        for said, written in _parts(text):
            if said not in self.parts and (said[1] in known or not re.search(rf"\b{_PERCENT[said[1]]}", self._text)):
                yield written
        ends = frozenset(end for span in self.spans for end in enumerate(span))
        for span, written in _spans(text):
            if span not in self.spans and ((span[1], span[0]) in self.spans or any(end in ends for end in enumerate(span))):
                yield written

    def _is_other(self, counted: _CountedThing) -> bool:
        if counted.written[0].isdigit() or counted.written in _VAGUE or not counted.nouns:
            return False
        if not counted.is_ordinal and (length := _length(counted.number, counted.nouns[0])):
            return length not in self._lengths
        known = next((numbers for noun in counted.nouns if (numbers := self._by_noun.get((noun, counted.is_ordinal)))), None)
        return known is not None and counted.number not in known


def _length(number: str, noun: str) -> tuple[str, float] | None:
    """A time by seconds or by months."""
    amount = float(number)
    if noun in _SECONDS:
        return "s", amount * _SECONDS[noun]
    return ("months", amount * _MONTHS[noun]) if noun in _MONTHS else None


def _read(text: str, stops: str) -> Iterator[_CountedThing]:
    for found in _NUMBERED.finditer(text):
        written = found.group().lower()
        if read := _number(written):
            nouns = list(_nouns(islice(_TOKEN.finditer(text, found.end()), _REACH), stops))
            end = nouns[0].end() if nouns else found.end()
            yield _CountedThing(*read, tuple(stem(n.group().lower()) for n in nouns), written, text[found.start() : end])


def _number(token: str) -> tuple[str, bool] | None:
    """A number and whether it is an ordinal one."""
    if token in _WORDS:
        return str(_WORDS[token]), False
    if token in _ORDINALS:
        return str(_ORDINALS[token]), True
    if found := _ORDINAL.fullmatch(token):
        return found.group(1), True
    return (plain_number(token), False) if token[0].isdigit() else None


def _nouns(tokens: Iterable[re.Match[str]], stops: str) -> Iterator[re.Match[str]]:
    left = _NOUNS
    for found in tokens:
        token = found.group()
        if token in stops or not left:
            return
        lowered = token.lower()
        if token[0].isalpha() and lowered not in FUNCTION_WORDS and lowered not in _WORDS:
            left -= 1
            yield found


def _parts(text: str) -> Iterator[tuple[tuple[str, str], str]]:
    """Parts of a whole, each with the sign of the bound before it, and as written."""
    for found in _PART.finditer(text):
        bound = _BOUND.search(text, max(0, found.start() - _LONGEST_BOUND), found.start())
        part = (found.group(1) or found.group(2)).lower().removesuffix("s")
        yield (_sign(bound.group(1)) if bound else "", part), text[bound.start() if bound else found.start() : found.end()]


def _sign(bound: str) -> str:
    return next(sign for sign, words in _BOUNDS.items() if bound.lower() in words.split("|"))


def _spans(text: str) -> Iterator[tuple[tuple[str, str], str]]:
    for form, is_turned in _SPANS:
        for found in form.finditer(text):
            one, other = plain_number(found["one"]), plain_number(found["other"])
            yield ((other, one) if is_turned else (one, other)), found.group()
