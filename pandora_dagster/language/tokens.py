"""The one tokenizer: words, names, values and codes of a text, each with the key under which equal ones meet."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from pandora_dagster.language.quantities import Quantity, quantities
from pandora_dagster.language.stems import stem
from pandora_dagster.language.stop_words import stop_words


class TokenKind(StrEnum):
    """What a token is."""

    WORD = "word"
    NAME = "name"
    VALUE = "value"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a text, `text` being its slice `start:end`."""

    kind: TokenKind
    key: str
    """Stem of a word or name; number, sign and unit of a value (`9 €`, `5 (attempt)` where there is no unit); a code in lower case."""
    text: str
    start: int
    end: int


_WIDE_SCRIPTS = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Scripts without spaces between words: every pair of their signs is a token."""
_LETTER, _WORD_CHARACTER, _ALPHANUMERIC = rf"[^\W\d_{_WIDE_SCRIPTS}]", rf"[^\W{_WIDE_SCRIPTS}]", rf"[^\W_{_WIDE_SCRIPTS}]"
"""A letter; a letter, digit or low line; a letter or digit."""
_TOKEN = re.compile(
    rf"(?P<code>(?<!{_WORD_CHARACTER})(?:{_WORD_CHARACTER}[\w.+-]{{0,63}}@[\w-]{{1,64}}\.[\w.]{{1,64}}|https?://[^\s)>\]\"']{{1,400}}"
    rf"|\d{{4}}-\d\d-\d\d(?:T[\d:.]+Z?)?|\d{{1,40}}(?:\.\d{{1,20}}){{2,6}}(?!\w)|(?=\d{{1,20}}{_LETTER}{{1,20}}\d){_WORD_CHARACTER}{{3,64}}"
    rf"|(?=[\d_/.:=-]{{0,40}}{_LETTER})(?:{_ALPHANUMERIC}{{1,64}}[_/.:=-]){{0,12}}{_LETTER}{{0,40}}\d{_WORD_CHARACTER}{{0,64}}(?:[-_./:]{_WORD_CHARACTER}{{1,64}}){{0,12}}"
    rf"|{_ALPHANUMERIC}{{1,64}}(?:_{_ALPHANUMERIC}{{1,64}}){{1,12}}|{_LETTER}{{2,64}}(?:\.{_WORD_CHARACTER}{{1,64}}){{1,12}}(?:\(\))?|[A-Z]{{2,12}}(?!{_WORD_CHARACTER}))|\#\d{{1,20}})"
    rf"|(?P<time>(?<!{_WORD_CHARACTER})\d{{1,2}} ?h(?: ?\d\d)?\b)|(?P<wide>[{_WIDE_SCRIPTS}])(?=(?P<next>[{_WIDE_SCRIPTS}]?))"
    rf"|(?P<word>{_LETTER}+(?:['’-]{_LETTER}+){{0,12}})"
)
"""Every repeat is bounded, so that no text takes more than linear time."""
_NUMERALS = {
    "en": "two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty sixty ninety hundred thousand",
    "de": "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf zwanzig",
    "fr": "deux trois quatre cinq six sept huit neuf dix onze douze vingt cent mille",
    "es": "dos tres cuatro cinco seis siete ocho",
    "nl": "twee drie vier vijf zes zeven negen tien",
    "it": "due tre quattro cinque sei sette otto nove",
    "pt": "dois três quatro cinco seis sete oito nove dez",
}
"""Numerals that lists of stop words have; they are values all the same."""
_NUMERAL_VALUES = {
    "en": (*range(2, 13), 15, 20, 30, 40, 50, 60, 90, 100, 1000),
    "fr": (*range(2, 13), 20, 100, 1000),
    "de": (*range(2, 13), 20),
}
"""The values of the numerals above, in their order; of the other languages they count up from two."""
_NUMERAL_PARTS, _NEXT_WORD = re.compile(r"[ -]"), re.compile(r"[ -]([^\W\d_]+)(?![\w-])")
_FIRST_FACTOR = 100
"""The numeral from which one multiplies what is before it."""
_POSSESSIVE = re.compile(r"['’]s?$")
_ALL_WORDS = re.compile(r"[^\W_]+(?:['’][^\W\d_]+)?")
_MIN_STANDALONE_DIGITS = 4
"""Digits below which a number without a unit says nothing without its subject."""


@cache
def _numerals() -> dict[str, int]:
    return {
        word: value
        for language, words in _NUMERALS.items()
        for word, value in zip(words.split(), _NUMERAL_VALUES.get(language, range(2, 11)), strict=False)
    }


def numeral_value(text: str) -> int | None:
    """The value of a number in words of any of the languages, such as `three` or `forty two`; None for other words."""
    first, *more = _NUMERAL_PARTS.split(text.lower())
    value = _numerals().get(first)
    for word in more:
        part = _numerals().get(word)
        if value is None or part is None or not _goes_on(value, part):
            return None
        value = value * part if part >= _FIRST_FACTOR else value + part
    return value


def _goes_on(value: int, part: int) -> bool:
    """Whether a numeral may follow a number in words: `two hundred`, `hundred forty`, `forty two`; not `two three`."""
    if part >= _FIRST_FACTOR:
        return value < part
    return value % _FIRST_FACTOR == 0 or (value % _FIRST_FACTOR >= 20 and value % 10 == 0 and part < 10)


def all_words(text: str) -> list[str]:
    """The lower-cased words of `text`, stop words and numbers included."""
    return [found[0].lower() for found in _ALL_WORDS.finditer(text)]


def tokens(text: str, language: str, *, stops: frozenset[str] | None = None) -> tuple[Token, ...]:
    """The tokens of `text` in order; a single capital letter is a name (`hepatitis A`). The words `stops` are no tokens: by default the
    stop words of the language and of English."""
    return tuple(_TokenScan(text, language, stop_words(language) | stop_words("en") if stops is None else stops).scan())


class _TokenScan:
    def __init__(self, text: str, language: str, stops: frozenset[str]) -> None:
        self.text, self.language, self.stops = text, language, stops
        self.numerals = frozenset(_NUMERALS.get(language, "").split())
        self.subject = ""

    def scan(self) -> Iterator[Token]:
        """The earliest; of those that begin together the longer one, a number before a code."""
        numbers = quantities(self.text, self.language)
        number = next(numbers, None)
        at = 0
        while True:
            found = _TOKEN.search(self.text, at)
            while number and number.start < at:
                number = next(numbers, None)
            if number and (not found or (number.start, -number.end) <= (found.start(), -found.end())):
                yield self.value(number)
                at = number.end
            elif found and (end := self.numeral_end(found)):
                at = end
                key = " ".join(_NUMERAL_PARTS.split(self.text[found.start() : at].lower()))
                yield self.token(TokenKind.VALUE, key, found.start(), at)
            elif found:
                at = found.end()
                yield from self.other(found)
            else:
                return

    def value(self, quantity: Quantity) -> Token:
        key = quantity.key
        if key == quantity.number and len(key) < _MIN_STANDALONE_DIGITS and self.subject:
            key = f"{key} ({self.subject})"
        return self.token(TokenKind.VALUE, key, quantity.start, quantity.end)

    def numeral_end(self, found: re.Match[str]) -> int:
        """Where a number in words ends that begins with a match, `forty two` and `forty-two` as one; 0 for another token."""
        words = _NUMERAL_PARTS.split((found["word"] or "").lower())
        if not self.numerals.issuperset(words) or numeral_value(found["word"]) is None:
            return 0
        end = found.end()
        while (further := _NEXT_WORD.match(self.text, end)) and further[1].lower() in self.numerals:
            if numeral_value(self.text[found.start() : further.end()]) is None:
                break
            end = further.end()
        return end

    def other(self, found: re.Match[str]) -> Iterator[Token]:
        start, end = found.span()
        if found["code"]:
            code = found["code"].rstrip(".:/-_")
            yield self.token(TokenKind.CODE, code.lower(), start, start + len(code))
        elif found["time"]:
            yield self.token(TokenKind.VALUE, found["time"].replace(" ", ""), start, end)
        elif found["wide"]:
            yield self.token(TokenKind.WORD, found["wide"] + found["next"], start, end + len(found["next"]))
        else:
            yield from self.word(found["word"], start)

    def word(self, text: str, start: int) -> Iterator[Token]:
        opened = self.text[max(0, start - 8) : start].rstrip("\"'“„«(*_ \t")[-1:] in ("", ".", "!", "?", ":", "\n", "-", "•")
        lower = _POSSESSIVE.sub("", text.lower())
        if len(text) == 1 and text.isupper() and not opened:
            if text != "I" or self.language != "en":  # the pronoun has its capital everywhere
                yield self.token(TokenKind.NAME, text, start, start + 1)
        elif len(lower) > 1 and lower not in self.stops:
            self.subject = stem(lower, self.language or "en")
            is_name = text[0].isupper() and not opened and self.language != "de"
            yield self.token(TokenKind.NAME if is_name else TokenKind.WORD, self.subject, start, start + len(text))

    def token(self, kind: TokenKind, key: str, start: int, end: int) -> Token:
        return Token(kind, key, self.text[start:end], start, end)


def words_within(words: Sequence[str], limit: int, *, first: Collection[str] = ()) -> str:
    """The words, or where they are over `limit` characters as many different ones as fit, in their order.

    Words of `first` are chosen before the others; a word that does not fit is left out whole.
    """
    whole = " ".join(words)
    if len(whole) <= limit:
        return whole
    unique = tuple(dict.fromkeys(words))
    chosen: set[str] = set()
    room = limit + 1
    for word in sorted(unique, key=lambda word: word not in first):
        if len(word) < room:
            chosen.add(word)
            room -= len(word) + 1
    return " ".join(word for word in unique if word in chosen)
