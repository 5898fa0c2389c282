"""The language of a text, by its script and its share of stop words, and of a short one by its letters; "" where nothing is known."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

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

_MIN_LOG_RATIO = 6.0
"""A language is clear above this difference of log probabilities: from English, or of English from the next one. Names and headings of one
or two words stay below."""


@cache
def _telltale_words(language: str) -> frozenset[str]:
    return frozenset(word for word in stop_words(language) if len(word) > 1)


def language_of(text: str) -> str:
    """ISO 639-1 code of the language that most of `text` is in; "" where no language is known by its script or stop words."""
    sample = text[:_SAMPLE_CHARACTERS]
    return script_language(sample) or _by_stop_words(sample, _LATIN_LANGUAGES)


def short_text_language(text: str) -> str:
    """As `language_of`, for a passage or a heading; English where no language is known, or where as many words are English stop words."""
    language = language_of(text)
    if language in ("", "en") or any(ch.isalpha() and not ch.isascii() for ch in text):
        return language or "en"
    words = frozenset(word.lower() for word in _WORD.findall(text))
    return language if len(words & stop_words(language)) > len(words & stop_words("en")) else "en"


def question_language(text: str) -> str:
    """As `clear_language`; English where no language is clear."""
    return clear_language(text) or "en"


def clear_language(text: str) -> str:
    """ISO 639-1 code of the language of a question; "" where none is clearly more probable than the others.

    A few words have too few stop words to count, so the model of py3langid decides by their letters. It is loaded for the first text whose
    stop words do not show English, because that takes 0.5 s.
    """
    sample = text[:_SAMPLE_CHARACTERS]
    if language := script_language(sample):
        return language
    if _by_stop_words(sample, _LATIN_LANGUAGES) == "en":
        return "en"
    if not any(map(str.isalpha, sample)):
        return ""
    probabilities = dict(_load_identifier()(sample))
    language = max(probabilities, key=probabilities.__getitem__)
    rivals = probabilities.keys() - {"en"} if language == "en" else {"en"}
    return language if probabilities[language] - max(map(probabilities.__getitem__, rivals)) > _MIN_LOG_RATIO else ""


@cache
def _load_identifier() -> Callable[[str], Sequence[tuple[str, float]]]:
    """The function that ranks the Latin languages for a text: (language, logarithm of its probability)."""
    identifier: Any = import_module("py3langid")  # reads a model
    identifier.set_languages(list(_LATIN_LANGUAGES))
    return identifier.rank


def script_language(text: str) -> str:
    """ISO 639-1 code of the language of a text in another script than Latin; "" for one in Latin script."""
    sample = text[:_SAMPLE_CHARACTERS]
    letters = sum(map(str.isalpha, sample))
    for script, languages in _SCRIPTS:
        if letters and len(script.findall(sample)) > _MIN_SHARE * letters:
            return languages[0] if len(languages) == 1 else _by_stop_words(sample, languages) or languages[0]
    return ""


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
