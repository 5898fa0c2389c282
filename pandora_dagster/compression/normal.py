"""The form in which values are compared. Knows spelling and white space; knows nothing of what a value means.

Two spellings are one key when they differ in case and in signs other than letters, digits, `$` and `%` only
(the measure of "literally there"). Letters of every script count, so that Arabic or Chinese text has keys too.
"""

import re

_BETWEEN = re.compile(r"(?:[^\w$%]|_)+")
_GROUPED = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_WORD = re.compile(r"[^\W_]+")


def key(text: str) -> str:
    """`text` lower-cased, every run of other signs one space: `HAT-001, Economy` -> `hat 001 economy`."""
    return _BETWEEN.sub(" ", text.lower()).strip()


def padded(text: str) -> str:
    """`key(text)` with a space on both sides, to search keys on word borders."""
    return f" {key(text)} "


def stands_in(value_key: str, padded_text: str) -> bool:
    """Whether a key occurs on word borders in a text that `padded` made."""
    return f" {value_key} " in padded_text


def words(text: str) -> list[str]:
    """Lower-cased runs of letters and digits, in order."""
    return _WORD.findall(text.lower())


def ungrouped(text: str) -> str:
    """`text` with its thousands in one: `1,299 EUR` -> `1299 EUR`."""
    return _GROUPED.sub("", text)
