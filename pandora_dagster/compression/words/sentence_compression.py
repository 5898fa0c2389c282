"""A sentence without the words that it can spare: deletes, never rewrites, and never turns what is said.

Who does it, to whom, whether it is, was, may or will be, and under which condition: the words that tell this stay, like negations
and what they stand before, digits and every protected span. The speaker's own `I` goes: the line names the speaker.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from pandora_dagster.compression.words.word_classes import CONJUNCTIONS, FILLERS, FUNCTION_WORDS, PREPOSITIONS, is_negation, word_set

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
_PAUSES, _STOPS = ",;:?", ".,;:!?"
_REACH = 4
"""Words behind a negation in which what it points at stays: `not send anything there`."""
_POINTING = word_set("there here it this that these those")
_SUBJECTS = word_set("i we it there")
_ASKING = word_set("can could may might shall should will would must is are am was were do does did have has had")
_LEADING = word_set("however but though although because if when unless until before after since while and or")
_BARE = word_set("have need want")
_BE = word_set("am is are been being")
_DO = word_set("do does did have has had is are am was were")
_PARTICIPLE = re.compile(r"\w+(?:ed|[^aeiou]en|wn|ght|elt)$")
"""Behind a form of `be`: what is done to somebody, who does not do it."""


@dataclass(frozen=True, slots=True)
class _Word:
    """What is known of a word wherever it stands."""

    bare: str
    """Its Latin letters, small."""
    has_digit: bool
    is_negation: bool
    is_conjunction: bool
    joins: bool
    is_spared: bool
    """Whether it goes, unless what stands behind it holds it."""


def telegraph(sentence: str, protected: Sequence[tuple[int, int]]) -> str:
    """What of `sentence` tells something; `protected` are (start, end) in it."""
    spans = [match.span() for match in _WORD.finditer(sentence)]
    written = [sentence[start:end] for start, end in spans]
    read = [_read(word) for word in written]
    written.append("")
    read.append(_read(""))
    kept: list[str] = []
    denied, since = 0, _REACH
    is_question = sentence.rstrip().endswith("?")
    for at, span in enumerate(spans):
        word, own, after = written[at], read[at], read[at + 1]
        if own.is_conjunction:
            denied = 0
        if (
            denied
            or not own.is_spared
            or (own.joins and after.has_digit and any(_read(before).has_digit for before in kept[-2:]))
            or _holds(own, written[at + 1], after)
            or _is_protected(span, protected)
            or (kept and own.bare in _OBJECTS and _is_object(word, kept[-1], after))
            or (since < _REACH and own.bare in _POINTING and (word[-1] in _STOPS or not written[at + 1]))
            or (is_question and _asks(at, read))
            or (kept and own.bare in _SUBJECTS and after.bare in _BARE and read[at - 1].bare in _LEADING)
        ):
            kept.append(word)
            denied = _DENIED if own.is_negation else max(denied - 1, 0)
            denied = 0 if word[-1] in _STOPS else denied
            since = 0 if own.is_negation else _REACH if word[-1] in _STOPS else since + 1
        elif kept and _leaves_its_mark(word[-1], kept[-1]):
            kept[-1] += word[-1]
    return " ".join(kept)


@lru_cache(_KNOWN)
def _read(word: str) -> _Word:
    lowered = word.lower()
    bare = _LETTERS.sub("", lowered.replace("\u2019", "'"))
    has_digit = any(c.isdigit() for c in word)
    is_turning = is_negation(word)
    is_spared = not has_digit and ((bare in _SPARED or bare == "to") and not is_turning if bare else word.isascii())
    return _Word(bare, has_digit, is_turning, lowered in CONJUNCTIONS, lowered in _JOINING, is_spared)


def _holds(word: _Word, written: str, after: _Word) -> bool:
    """Whether the word behind holds a word that could be spared: `to Rome`, `was given`."""
    if word.bare == "to":
        return written[:1].isupper() or written[:1].isdigit()
    return (word.bare in _BE and bool(_PARTICIPLE.match(after.bare))) or (word.bare in _DO and after.bare == "not")


def _asks(at: int, read: Sequence[_Word]) -> bool:
    """Whether a word opens a question that without it reads as a statement or an order: `Is there ...?`, `Could we ...?`"""
    return at <= 1 and read[0].bare in _ASKING and read[1].bare in _SUBJECTS


def _is_protected(span: tuple[int, int], protected: Sequence[tuple[int, int]]) -> bool:
    return bool(protected) and any(start < span[1] and span[0] < end for start, end in protected)


def _leaves_its_mark(mark: str, before: str) -> bool:
    """Whether what ends a deleted word passes to the word before: brackets close, pauses and questions stay what they are."""
    return (mark in _CLOSING and mark not in before) or (mark in _PAUSES and before[-1].isalnum())


def _is_object(word: str, before: str, after: _Word) -> bool:
    """Whether a pronoun stands where what is done to it was said just before: `fix it, ...`, `need it before ...`."""
    is_end = word[-1] in ",;:" or after.bare in _BOUNDS
    return is_end and before[-1].isalnum() and _read(before).bare not in CONJUNCTIONS
