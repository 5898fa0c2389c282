"""The content words of a text as questions and passages meet in them."""

from pandora_dagster.language.stop_words import function_words, stop_words
from pandora_dagster.language.tokens import TokenKind, tokens
from pandora_dagster.runtime.extractive.words.word_matching import META_WORDS


def content_keys(text: str, language: str, *, asking: bool = False) -> tuple[str, ...]:
    """Stems of words and names, codes, and numbers without unit: `how many jars` asks for `9 jars`, `jar 77` is not `77 euros`, but near.

    `asking`: without words that are about asking (`did we talk about`).
    """
    found = (
        t
        for t in tokens(text, language, stops=function_words(language) | function_words("en"))
        if t.text != "I" and not (asking and t.text.lower() in META_WORDS)
    )
    return tuple(t.key.partition(" ")[0] if t.kind is TokenKind.VALUE else t.key for t in found)


def common_keys(text: str, language: str) -> frozenset[str]:
    """The content words of `text` that stand in lists of stop words: `order` and `room` name things, `use` and `make` say little."""
    stops = function_words(language) | function_words("en")
    listed = stop_words(language) | stop_words("en")
    return frozenset(t.key for t in tokens(text, language, stops=stops) if t.text.lower() in listed)
