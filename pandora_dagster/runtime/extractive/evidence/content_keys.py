"""The content words of a text as questions and passages meet in them."""

from pandora_dagster.language.stop_words import function_words
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
