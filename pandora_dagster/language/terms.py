"""Terms of a text, which the index stores and a query is reduced to: words without function words, stemmed.

Words are stemmed as English; in a text of another language its short stop words are left out and a word also has that language's stem: a
query of single words matches the English one. Accents are ignored, and `krueger` has the term of `Krüger` besides its own. Numbers stay
whole (`1,234.50` is `1234.5`, `$697.00` is `697`), and so do identifiers (`4WQ150`, `mia_li_3668`, `2024-05-26`); an identifier also gives
the words in it, a date its year, month and day. `tokens` reads values with their units; an index is asked for the number alone.
"""

import re
from collections import Counter
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache, lru_cache
from unicodedata import normalize

from pandora_dagster.language.dates import MONTHS
from pandora_dagster.language.detection import language_of
from pandora_dagster.language.stems import stem
from pandora_dagster.language.stop_words import function_words, stop_words
from pandora_dagster.language.word_forms import IRREGULAR_BASES, umlauts_undone, unaccented

_NUMBER_ALONE = r"\d+(?:,\d{3})*(?:\.\d+)?(?![^\W_]|[-_][^\W_])"
_TOKEN = re.compile(rf"{_NUMBER_ALONE}|[^\W_]+(?:[-_][^\W_]+)*")
_MARKS = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
    "\u0e31-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u17b4-\u17d3"
)
"""Marks that are written with a letter, such as the vowels of Hindi and Thai. To `re` they are no word characters, and words fell apart."""
_MARK = re.compile(f"[{_MARKS}]")
_MARKED_TOKEN = re.compile(rf"{_NUMBER_ALONE}|[^\W_][\w{_MARKS}]*(?:-[\w{_MARKS}]+)*")
_NUMBER = re.compile(r"[\d,.]+")
_ISO_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_PARTS = re.compile(r"[-_]")
_MONEY_SIGNS = "$€£¥"
_MONEY_WORDS = ("dollar", "eur", "pound", "usd", "gbp")
_MONEY = re.compile(rf"[{_MONEY_SIGNS}]\s?\d|\b\d+[,.]*\s?(?:dollars?|euros?|pounds?|usd|eur|gbp)\b")
MONEY = "#money"
"""The term of a text that names an amount of money; a question about a price asks for it."""
PREFIX_SIGN = "~"
_PREFIX_LETTERS = 5
_MAX_TERM_CHARACTERS = 64
_WILL_NOT = re.compile("won['\u2019]t")
"""Of the other contractions a function word is left; `won` is a word of its own."""
WITHOUT_BLANKS = re.compile("[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u2e80-\U0010ffff]")
"""Scripts that write without spaces between words, such as Thai and Chinese: every pair of signs is a term."""
_ENGLISH_FUNCTION_WORDS = function_words("en")
_MAX_FUNCTION_WORD_LETTERS = 3
"""Letters of a stop word of another language that is taken for a function word."""
Word = tuple[str, ...]
"""The terms of one word, each of which finds it: as a rule one."""


@dataclass(frozen=True, slots=True)
class TermCounts:
    """The result of one pass over a text: its terms with their counts, and its lower-cased words."""

    counts: Counter[str]
    words: frozenset[str]
    length: int
    """How many words have a term, `#money` included."""


@dataclass(frozen=True, slots=True)
class TermReader:
    """Reads the terms of texts. Thread-safe; words are remembered."""

    def terms(self, text: str) -> list[str]:
        """Terms of `text` in order, with repeats."""
        return [term for word in self.words(text) for term in word]

    def words(self, text: str) -> list[Word]:
        """The words of `text` that have terms, in order, with repeats."""
        language = self.language(text)
        return [word for token in _tokens(_lowered(text)) for word in _words_of(token, language)]

    def counts(self, text: str) -> Counter[str]:
        """The count of each term in `text`, with `#money` where it names an amount."""
        return self.read(text).counts

    def read(self, text: str) -> TermCounts:
        """The terms of `text` with their counts, and its words."""
        lower = _lowered(text)
        words = Counter(_tokens(lower))
        language = _dominant_foreign_language(language_of(text), words.keys())
        counts: Counter[str] = Counter()
        length = 0
        for token, count in words.items():
            for word in _words_of(token, language):
                length += count
                for term in word:
                    counts[term] += count
        if _names_money(lower):
            counts[MONEY] = 1
            length += 1
        return TermCounts(counts, frozenset(words), length)

    def language(self, text: str) -> str:
        """The language besides English whose stems the terms of `text` have; "" for none."""
        return _dominant_foreign_language(language_of(text), set(_tokens(_lowered(text))))

    def stem(self, word: str) -> str:
        return stem(IRREGULAR_BASES.get(word, word), "en")


def is_common(term: str, language: str = "en") -> bool:
    """Whether a term is one of a stop word of English or of `language`: a word that says little by itself."""
    return term in _common_terms("en") or term in _common_terms(language)


def _dominant_foreign_language(language: str, words: AbstractSet[str]) -> str:
    """The language of a text of these words where that is not English and more of them are its stop words than function words of English:
    a short question shares words with several languages."""
    if language in ("", "en"):
        return ""
    listed = stop_words(language)
    return language if len(words & listed - _ENGLISH_FUNCTION_WORDS) > len(words & _ENGLISH_FUNCTION_WORDS - listed) else ""


def prefix_of(term: str) -> str:
    """The first five letters of a longer word, as a term of its own: `comput` and `computation` share it; "" for other terms."""
    return f"{PREFIX_SIGN}{term[:_PREFIX_LETTERS]}" if len(term) > _PREFIX_LETTERS and term.isalpha() else ""


@cache
def _common_terms(language: str) -> frozenset[str]:
    return frozenset(term for listed in stop_words(language) for term in _word(listed, language))


@lru_cache(maxsize=200_000)
def _words_of(token: str, language: str) -> tuple[Word, ...]:
    return tuple(word for word in _read_token(token, language) if word and len(max(word, key=len)) <= _MAX_TERM_CHARACTERS)


def _read_token(token: str, language: str) -> Iterable[Word]:
    if _NUMBER.fullmatch(token):
        return ((_plain_number(token),),)
    if date := _ISO_DATE.fullmatch(token):
        month = MONTHS[max(0, int(date[2]) - 1) : int(date[2])]
        return ((token,), (date[1],), *((stem(name, "en"),) for name in month), (str(int(date[3])),))
    if not token.isascii() and WITHOUT_BLANKS.search(token):
        return ((pair,) for pair in _pairs(token))
    parts = _PARTS.split(token)
    if len(parts) == 1:
        return (_word(token, language),)
    whole = ((unaccented(token),),) if "_" in token or any(c.isdigit() for c in token) else ()
    return (*whole, *(_word(p, "" if whole else language) for p in parts if p.isalpha() and len(p) > 1))


def _word(word: str, language: str) -> Word:
    foreign = language not in ("", "en")
    if word in _ENGLISH_FUNCTION_WORDS or (foreign and len(word) <= _MAX_FUNCTION_WORD_LETTERS and word in stop_words(language)):
        return ()
    plain = unaccented(word)
    if not word.isalpha():
        return (plain,)
    stems = [stem(IRREGULAR_BASES.get(plain, plain), "en"), *([unaccented(stem(word, language))] if foreign else ())]
    return tuple(dict.fromkeys((*stems, *map(umlauts_undone, stems))))


def _tokens(lower: str) -> list[str]:
    has_marks = not lower.isascii() and _MARK.search(lower)
    return (_MARKED_TOKEN if has_marks else _TOKEN).findall(lower)


def _lowered(text: str) -> str:
    lower = text.lower() if text.isascii() else normalize("NFC", text.lower())
    return _WILL_NOT.sub(" ", lower) if "won" in lower else lower


def _names_money(lower: str) -> bool:
    """The pattern is tried only where a sign or a word of money is: it costs as much as all the rest."""
    return any(sign in lower for sign in (*_MONEY_SIGNS, *_MONEY_WORDS)) and bool(_MONEY.search(lower))


def _plain_number(token: str) -> str:
    plain = token.replace(",", "")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def _pairs(token: str) -> tuple[str, ...]:
    return (token,) if len(token) < 3 else tuple(token[i : i + 2] for i in range(len(token) - 1))
