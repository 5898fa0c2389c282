"""The language of a text of a few words, where stop words alone mislead: `has` is English and Spanish."""

from pandora_dagster.language.detection import language_of
from pandora_dagster.language.stop_words import stop_words
from pandora_dagster.language.tokens import all_words


def short_text_language(text: str) -> str:
    """As `language_of`; English where no language is known, or where as many of the words are English stop words."""
    language = language_of(text)
    if language in ("", "en") or any(ch.isalpha() and not ch.isascii() for ch in text):
        return language or "en"
    said = frozenset(all_words(text))
    return language if len(said & stop_words(language)) > len(said & stop_words("en")) else "en"
