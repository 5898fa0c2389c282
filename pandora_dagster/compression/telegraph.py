"""A sentence without its function words: deletes, never rewrites.

Keeps order, negations and what they stand before, digits and every protected span.
"""

import re
from collections.abc import Sequence

from pandora_dagster.compression.language import CONJUNCTIONS, DEEDS, FUNCTION_WORDS, is_negation, word_set

_WORD = re.compile(r"\S+")
_CLOSING = "])"
_DENIED = 2
"""Words behind a negation that stay, up to the end of their clause: they are what it denies."""
_LETTERS = re.compile(r"[^a-z]")
_NUMBER_WORDS = word_set(
    "one two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty sixty seventy eighty ninety hundred "
    "thousand million billion dozen half twice once first second third must only least most before after until"
)


def telegraph(sentence: str, protected: Sequence[tuple[int, int]]) -> str:
    """What of `sentence` carries content; `protected` are (start, end) in it."""
    kept: list[str] = []
    denied = 0
    for found in _WORD.finditer(sentence):
        word = found.group()
        denied = 0 if word.lower() in CONJUNCTIONS else denied
        if denied or _stays(word, found.span(), protected):
            kept.append(word)
            denied = _DENIED if is_negation(word) else max(denied - 1, 0)
            denied = 0 if word[-1] in ".,;:!?" else denied
        elif kept and word[-1] in _CLOSING and word[-1] not in kept[-1]:
            kept[-1] += word[-1]
    return " ".join(kept)


def _stays(word: str, span: tuple[int, int], protected: Sequence[tuple[int, int]]) -> bool:
    if any(start < span[1] and span[0] < end for start, end in protected) or any(c.isdigit() for c in word):
        return True
    bare = _LETTERS.sub("", word.lower().replace("\u2019", "'"))
    if not bare:
        return not word.isascii()
    return bare not in FUNCTION_WORDS or bare in DEEDS or bare in _NUMBER_WORDS or is_negation(word)
