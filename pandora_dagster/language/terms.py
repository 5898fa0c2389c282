"""Terms of a text, which the index stores and a query is reduced to: tokens without stop words, stemmed.

Words are lower-cased and stemmed (Snowball, English). In a text whose function words are German, French, Spanish or Italian these are
stop words too, and a word also has that language's stem: a query of single words matches the English one. Accents are ignored, and
`krueger` has the term of `Krüger` besides its own. Numbers stay whole (`1,234.50` is `1234.5`, `$697.00` is `697`), and so do
identifiers (`4WQ150`, `mia_li_3668`, `2024-05-26`); an identifier also gives the words in it, a date its year, month and day.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock
from typing import Protocol, cast
from unicodedata import normalize

import snowballstemmer  # pyright: ignore[reportMissingTypeStubs]

from pandora_dagster.language.dates import MONTHS
from pandora_dagster.language.stop_words import FOREIGN_STOP_WORDS, STOP_WORDS, language_of
from pandora_dagster.language.word_forms import IRREGULAR_BASES, umlauts_undone, unaccented

_TOKEN = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?![^\W_]|[-_][^\W_])|[^\W_]+(?:[-_][^\W_]+)*")
_NUMBER = re.compile(r"[\d,.]+")
_ISO_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_PARTS = re.compile(r"[-_]")
_MONEY_SIGNS = "$€£¥"
_MONEY_WORDS = ("dollar", "eur", "pound", "usd", "gbp")
_MONEY = re.compile(rf"[{_MONEY_SIGNS}]\s?\d|\b\d[\d,.]*\s?(?:dollars?|euros?|pounds?|usd|eur|gbp)\b")
MONEY = "#money"
"""The term of a text that names an amount of money; a question about a price asks for it."""
PREFIX_SIGN = "~"
_PREFIX = 5
_LONGEST_TERM = 64
_WILL_NOT = re.compile("won['\u2019]t")
"""Of the other contractions a stop word is left; `won` is a word of its own."""
_REMEMBERED = 100_000
_WIDE = 0x2E80
"""From this code point on, scripts write without spaces between words: every pair of signs is a term."""


class _Stems(Protocol):
    def stemWord(self, word: str, /) -> str: ...  # noqa: N802 - the library's name


Word = tuple[str, ...]
"""The terms of one word, each of which finds it: as a rule one."""
_NO_STOPS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class TermCounts:
    """The result of one pass over a text: its terms with their counts, and its lower-cased words."""

    counts: Counter[str]
    words: frozenset[str]
    length: int
    """How many words have a term, `#money` included."""


class TermReader:
    """Reads the terms of texts, with a cache of stems. Thread-safe."""

    def __init__(self) -> None:
        self._one_at_a_time = Lock()  # a stemmer keeps the word that it is working on
        self._stemmers = {name: cast("_Stems", snowballstemmer.stemmer(name)) for name in ("english", *FOREIGN_STOP_WORDS)}  # pyright: ignore[reportUnknownMemberType]
        self._known: dict[str, dict[str, tuple[Word, ...]]] = {language: {} for language in ("", *FOREIGN_STOP_WORDS)}

    def terms(self, text: str) -> list[str]:
        """Terms of `text` in order, with repeats."""
        return [term for word in self.words(text) for term in word]

    def words(self, text: str) -> list[Word]:
        """The words of `text` that have terms, in order, with repeats."""
        tokens = _TOKEN.findall(_lowered(text))
        language = language_of(set(tokens))
        return [word for token in tokens for word in self._words_of(token, language)]

    def counts(self, text: str) -> Counter[str]:
        """The count of each term in `text`, with `#money` where it names an amount."""
        return self.read(text).counts

    def read(self, text: str) -> TermCounts:
        """The terms of `text` with their counts, and its words."""
        lower = _lowered(text)
        words = Counter(_TOKEN.findall(lower))
        language = language_of(words.keys())
        counts: Counter[str] = Counter()
        length = 0
        known = self._known[language]
        for token, count in words.items():
            found = known.get(token)
            for word in self._words_of(token, language) if found is None else found:
                length += count
                for term in word:
                    counts[term] += count
        if _names_money(lower):
            counts[MONEY] = 1
            length += 1
        return TermCounts(counts, frozenset(words), length)

    def stem(self, word: str, language: str = "english") -> str:
        with self._one_at_a_time:
            return self._stemmers[language].stemWord(IRREGULAR_BASES.get(word, word) if language == "english" else word)

    def _words_of(self, token: str, language: str) -> tuple[Word, ...]:
        known = self._known[language]
        found = known.get(token)
        if found is None:
            if len(known) >= _REMEMBERED:
                known.clear()
            found = known[token] = tuple(w for w in self._read_token(token, language) if w and len(max(w, key=len)) <= _LONGEST_TERM)
        return found

    def _read_token(self, token: str, language: str) -> Iterable[Word]:
        if _NUMBER.fullmatch(token):
            return ((_plain_number(token),),)
        if date := _ISO_DATE.fullmatch(token):
            return ((token,), (date[1],), *self._month(int(date[2])), (str(int(date[3])),))
        if ord(max(token)) >= _WIDE:
            return ((pair,) for pair in _pairs(token))
        parts = _PARTS.split(token)
        if len(parts) == 1:
            return (self._word(token, language),)
        whole = ((unaccented(token),),) if "_" in token or any(c.isdigit() for c in token) else ()
        return (*whole, *(self._word(p, language) for p in parts if p.isalpha() and len(p) > 1))

    def _month(self, number: int) -> tuple[Word, ...]:
        return tuple((self.stem(name),) for name in MONTHS[max(0, number - 1) : number])

    def _word(self, word: str, language: str) -> Word:
        if word in STOP_WORDS or word in FOREIGN_STOP_WORDS.get(language, _NO_STOPS):
            return ()
        plain = unaccented(word)
        if not word.isalpha():
            return (plain,)
        stems = [self.stem(plain), *([unaccented(self.stem(word, language))] if language else ())]
        return tuple(dict.fromkeys((*stems, *map(umlauts_undone, stems))))


def _lowered(text: str) -> str:
    lower = text.lower() if text.isascii() else normalize("NFC", text.lower())
    return _WILL_NOT.sub(" ", lower) if "won" in lower else lower


def _names_money(lower: str) -> bool:
    """The pattern is tried only where a sign or a word of money stands: it costs as much as all the rest."""
    return any(sign in lower for sign in (*_MONEY_SIGNS, *_MONEY_WORDS)) and bool(_MONEY.search(lower))


def prefix_of(term: str) -> str:
    """The first five letters of a longer word, as a term of its own: `comput` and `computation` share it; "" for other terms."""
    return f"{PREFIX_SIGN}{term[:_PREFIX]}" if len(term) > _PREFIX and term.isalpha() else ""


def _plain_number(token: str) -> str:
    plain = token.replace(",", "")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def _pairs(token: str) -> tuple[str, ...]:
    return (token,) if len(token) < 3 else tuple(token[i : i + 2] for i in range(len(token) - 1))
