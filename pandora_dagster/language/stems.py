"""Stems of words by Snowball, in all its languages; `snowballstemmer` uses PyStemmer, the same in C, where it is installed."""

from functools import cache, lru_cache
from threading import Lock
from typing import Protocol, cast

import snowballstemmer  # pyright: ignore[reportMissingTypeStubs]

_ALGORITHMS = {
    **{"ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english", "eo": "esperanto"},
    **{"es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi"},
    **{"hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian", "ne": "nepali", "nl": "dutch"},
    **{"no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "st": "sesotho"},
    **{"sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish"},
}


class _Stemmer(Protocol):
    def stemWord(self, word: str, /) -> str: ...  # noqa: N802 - the library's name


_STEMMER_LOCK = Lock()  # a stemmer keeps the word that it is working on


@cache
def _stemmer(language: str) -> _Stemmer | None:
    name = _ALGORITHMS.get(language)
    known = snowballstemmer.algorithms()
    return cast("_Stemmer", snowballstemmer.stemmer(name)) if name in known else None  # pyright: ignore[reportUnknownMemberType]


@lru_cache(maxsize=200_000)
def stem(word: str, language: str) -> str:
    """The stem of a lower-case word in a language (ISO 639-1); the word itself where Snowball has no such language."""
    with _STEMMER_LOCK:
        stemmer = _stemmer(language)
        return stemmer.stemWord(word) if stemmer else word
