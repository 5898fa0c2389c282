"""The language of a text, by its script and its share of stop words; "" where nothing is known."""

import re
from collections import Counter
from functools import cache

from pandora_dagster.language.stop_words import stop_words

_SAMPLE_CHARACTERS = 20_000
"""Characters at the beginning of a text that are looked at."""
_WORD = re.compile(r"[^\W\d_]+")
_LATIN_LANGUAGES = (
    "en", "de", "fr", "es", "it", "nl", "pt", "pl", "sv", "da", "no", "fi", "cs", "hu", "ro", "tr", "ca", "id", "sk", "sl", "hr",
)  # fmt: skip
_CYRILLIC_LANGUAGES = ("ru", "uk", "bg")
_ARABIC_LANGUAGES = ("ar", "fa", "ur")
_SCRIPTS = (
    (re.compile(r"[\u3040-\u30ff]"), ("ja",)),
    (re.compile(r"[\uac00-\ud7af]"), ("ko",)),
    (re.compile(r"[\u0400-\u04ff]"), _CYRILLIC_LANGUAGES),
    (re.compile(r"[\u0590-\u05ff]"), ("he",)),
    (re.compile(r"[\u0600-\u06ff]"), _ARABIC_LANGUAGES),
    (re.compile(r"[\u0370-\u03ff]"), ("el",)),
    (re.compile(r"[\u0900-\u097f]"), ("hi", "mr")),
    (re.compile(r"[\u0e00-\u0e7f]"), ("th",)),
    (re.compile(r"[\u4e00-\u9fff]"), ("zh",)),
)
"""In this order: Japanese has Chinese characters too."""
_MIN_SHARE = 0.1
"""Signs of a script in a text of that language; stop words among the words of one in Latin script."""


@cache
def _telltale_words(language: str) -> frozenset[str]:
    return frozenset(word for word in stop_words(language) if len(word) > 1)


def language_of(text: str) -> str:
    """ISO 639-1 code of the language that most of `text` is in; "" where no language is known by its script or stop words."""
    sample = text[:_SAMPLE_CHARACTERS]
    letters = sum(map(str.isalpha, sample))
    for script, languages in _SCRIPTS:
        if letters and len(script.findall(sample)) > _MIN_SHARE * letters:
            return languages[0] if len(languages) == 1 else _by_stop_words(sample, languages) or languages[0]
    return _by_stop_words(sample, _LATIN_LANGUAGES)


def _by_stop_words(text: str, languages: tuple[str, ...]) -> str:
    """The language with the most stop words; a longer list has more by chance, so that the root of its length divides."""
    words = Counter(word.lower() for word in _WORD.findall(text))
    total = words.total()
    best, most = "", 0.0
    for language in languages:
        known = _telltale_words(language)
        hits = sum(count for word, count in words.items() if word in known)
        share = hits / len(known) ** 0.5
        if share > most and hits > 1 and hits > _MIN_SHARE * total:
            best, most = language, share
    return best


def short_text_language(text: str) -> str:
    """As `language_of`; English where no language is known, or where as many of the words are English stop words."""
    language = language_of(text)
    if language in ("", "en") or any(ch.isalpha() and not ch.isascii() for ch in text):
        return language or "en"
    said = frozenset(word.lower() for word in _WORD.findall(text))
    return language if len(said & stop_words(language)) > len(said & stop_words("en")) else "en"
