"""The words of a query or a passage that say what it is about, and their stems."""

import re

from pandora_dagster.language.stems import stem as stem_in
from pandora_dagster.language.stop_words import ASKING_WORDS, function_words, stop_words
from pandora_dagster.language.tokens import TokenKind, tokens

_WORD = re.compile(r"\d+(?:[.,:]\d+)+|[^\W_]+(?:['’](?:[^\W\d_]{1,2})\b)?")
_TAIL = re.compile(r"['’](?:[^\W\d_]{1,2})$")
STOP_WORDS = frozenset[str]().union(*map(stop_words, ("de", "fr", "es", "it"))) - stop_words("en") | function_words("en")
"""Words that say nothing about what a text is about."""


def stem(word: str) -> str:
    """The English stem of a lower-case word, for comparisons across languages: what equals another keeps equal."""
    return stem_in(word, "en")


def words(text: str) -> list[str]:
    """The words of `text` in lower case; numbers and ids whole, possessive tails cut."""
    return [_TAIL.sub("", w) for w in _WORD.findall(text.lower())]


def terms(text: str) -> tuple[str, ...]:
    """Stems of the words of `text` that are no stop words, in order, with repetitions."""
    return tuple(stem(w) for w in words(text) if w not in STOP_WORDS)


def content_words(text: str) -> tuple[str, ...]:
    """The words of a query that say what it is about, each once, in order, in lower case."""
    return tuple(dict.fromkeys(w for w in words(text) if w not in STOP_WORDS and w not in ASKING_WORDS))


def content_keys(text: str, language: str, *, asking: bool = False) -> tuple[str, ...]:
    """Stems of words and names, codes, and numbers without unit: `how many jars` asks for `9 jars`, `jar 77` is not `77 euros`, but near.

    `asking`: without words that are about asking (`did we talk about`).
    """
    found = (
        t
        for t in tokens(text, language, stops=function_words(language) | function_words("en"))
        if t.text != "I" and not (asking and t.text.lower() in ASKING_WORDS)
    )
    return tuple(t.key.partition(" ")[0] if t.kind is TokenKind.VALUE else t.key for t in found)
