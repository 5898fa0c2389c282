"""Whether two wordings of a fact say the same values: numbers, dates, names, a denial. Pure; knows English forms, no meaning."""

import re
from difflib import SequenceMatcher

from pandora_dagster.text.dates import MONTHS, WEEKDAYS
from pandora_dagster.text.stopwords import STOP_WORDS
from pandora_dagster.text.words import TermReader

_VALUE_WORD = re.compile(r"[^\W_]+(?:[.,:'’-]?[^\W_]+)*")
_DENIES = re.compile(r"\b(?:not?|never|none|nobody|nothing|neither|nor|cannot|without|stopped|quit)\b|n['’]t\b", re.IGNORECASE)
_DEGREE = re.compile(r"\b(?:hardly|rarely|seldom|barely|scarcely|almost|sometimes|only)\b")
_NUMBERS = """
two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty
thirty forty fifty sixty seventy eighty ninety hundred thousand million once twice half
"""
_COUNTS = frozenset(_NUMBERS.split())
_CALENDAR = frozenset((*MONTHS, *WEEKDAYS)) - {"may", "march"}


def changes_value(old: str, new: str, reader: TermReader) -> bool:
    """Whether `new` says another value than `old`: a figure, date or name that only one of them holds, a denial of one alone, or one
    telling word in the place of another. Where it does, `new` is no better wording of `old`, but what holds instead."""
    one, other = set(reader.counts(old)), set(reader.counts(new))
    if _figures(old, reader) != _figures(new, reader) or bool(_DENIES.search(old)) != bool(_DENIES.search(new)):
        return True
    alone = [*_unshared(old, other, reader), *_unshared(new, one, reader)]
    return bool(alone) or _swaps(old, new, reader) or bool(set(_DEGREE.findall(old.lower())) ^ set(_DEGREE.findall(new.lower())))


def _figures(text: str, reader: TermReader) -> frozenset[str]:
    """Everything with a digit, figures in plain form, numbers in words, and the names of days and months."""
    lower = text.lower()
    worded = {word for word in _VALUE_WORD.findall(lower) if word in _COUNTS or word in _CALENDAR}
    return frozenset({term for term in reader.counts(text) if any(c.isdigit() for c in term)} | worded)


def _unshared(text: str, others: set[str], reader: TermReader) -> list[str]:
    """Capitalised words of `text` that the other wording does not hold in any case or form."""
    named = [word for word in _VALUE_WORD.findall(text) if word[0].isupper() and reader.stem(word.lower()) not in STOP_WORDS]
    return [word for word in named if not set(reader.counts(word)) <= others]


def _swaps(old: str, new: str, reader: TermReader) -> bool:
    """Whether telling words stand in the place of others in the same sentence, however many, or go with what stands there."""
    before, after = _VALUE_WORD.findall(old.lower()), _VALUE_WORD.findall(new.lower())
    everywhere_before, everywhere_after = set(reader.counts(" ".join(before))), set(reader.counts(" ".join(after)))
    for kind, i, i_end, j, j_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        one, other = set(reader.counts(" ".join(before[i:i_end]))), set(reader.counts(" ".join(after[j:j_end])))
        if kind == "replace" and one - other and other - one and not one <= everywhere_after and not other <= everywhere_before:
            return True
    return False
