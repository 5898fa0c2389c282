"""A sentence without the words that it can spare: deletes, never rewrites, and never turns what is said.

Who does it, to whom, whether it is, was, may or will be, and under which condition: the words that tell this stay, like negations
and what they stand before, digits and every protected span. The speaker's own `I` goes: the line names the speaker.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from pandora_dagster.compression.language import CONJUNCTIONS, FILLERS, FUNCTION_WORDS, PREPOSITIONS, is_negation, word_set

_WORD = re.compile(r"\S+")
_KNOWN = 16_384
"""Words of which it is remembered what they are: few words are most of a text."""
_CLOSING = "])"
_DENIED = 2
"""Words behind a negation that stay, up to the end of their clause: they are what it denies."""
_LETTERS = re.compile(r"[^a-z]")
_SPARED = (
    word_set(
        "a an the i me my mine myself im ive we us our ours weve it its itself this that these those thats theres heres of in on at for "
        "about as am is are do does did doing have has had been being let lets and so then just really very too also even quite rather "
        "pretty actually definitely absolutely totally super completely truly certainly especially such own there here now well around like"
    )
    | (FILLERS - word_set("no nope yes yeah yep yup sorry love loved loving right kind bit way wait"))
) & FUNCTION_WORDS
_OBJECTS = word_set("it this that these those")
_BOUNDS = word_set("before after until since because if unless when while by from without")
_JOINING = PREPOSITIONS | CONJUNCTIONS
"""Between two values: `8 to 12`, `10 euros for 6 March`."""
_PAUSES = ",;:?"
_BE = word_set("am is are been being")
_PARTICIPLE = re.compile(r"\w+(?:ed|[^aeiou]en|wn|ght|elt)$")
"""Behind a form of `be`: what is done to somebody, who does not do it."""


def telegraph(sentence: str, protected: Sequence[tuple[int, int]]) -> str:
    """What of `sentence` tells something; `protected` are (start, end) in it."""
    found = list(_WORD.finditer(sentence))
    kept: list[str] = []
    denied = 0
    for at, match in enumerate(found):
        word, after = match.group(), found[at + 1].group() if at + 1 < len(found) else ""
        denied = 0 if word.lower() in CONJUNCTIONS else denied
        if (
            denied
            or _joins(word, kept, after)
            or _stays(word, after, match.span(), protected)
            or (kept and _is_object(word, kept[-1], after))
        ):
            kept.append(word)
            denied = _DENIED if is_negation(word) else max(denied - 1, 0)
            denied = 0 if word[-1] in ".,;:!?" else denied
        elif kept and _leaves_its_mark(word[-1], kept[-1]):
            kept[-1] += word[-1]
    return " ".join(kept)


def _stays(word: str, after: str, span: tuple[int, int], protected: Sequence[tuple[int, int]]) -> bool:
    for start, end in protected:
        if start < span[1] and span[0] < end:
            return True
    if _has_digit(word):
        return True
    bare = _bare(word)
    if not bare:
        return not word.isascii()
    if bare == "to":
        return after[:1].isupper() or after[:1].isdigit()
    if bare in _BE and _PARTICIPLE.match(_bare(after)):
        return True
    return bare not in _SPARED or is_negation(word)


def _joins(word: str, kept: Sequence[str], after: str) -> bool:
    """Whether a word stands between two values, which are one without it, or another."""
    return word.lower() in _JOINING and _has_digit(after) and any(_has_digit(before) for before in kept[-2:])


def _leaves_its_mark(mark: str, before: str) -> bool:
    """Whether what ends a deleted word passes to the word before: brackets close, pauses and questions stay what they are."""
    return (mark in _CLOSING and mark not in before) or (mark in _PAUSES and before[-1].isalnum())


def _is_object(word: str, before: str, after: str) -> bool:
    """Whether a pronoun stands where what is done to it was said just before: `fix it, ...`, `need it before ...`."""
    is_end = word[-1] in ",;:" or _bare(after) in _BOUNDS
    return _bare(word) in _OBJECTS and is_end and before[-1].isalnum() and _bare(before) not in CONJUNCTIONS


@lru_cache(_KNOWN)
def _has_digit(word: str) -> bool:
    return any(c.isdigit() for c in word)


@lru_cache(_KNOWN)
def _bare(word: str) -> str:
    return _LETTERS.sub("", word.lower().replace("\u2019", "'"))
