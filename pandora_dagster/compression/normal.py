"""The form in which values are compared. Knows spelling and white space; knows nothing of what a value means.

Two spellings are one key when they differ in case and in signs other than letters, digits, `$` and `%` only
(the measure of "literally there"). Letters of every script count, so that Arabic or Chinese text has keys too.
"""

import re
import unicodedata

_BETWEEN = re.compile(r"(?:[^\w$%]|_)+")
_GROUPED = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_WORD = re.compile(r"[^\W_]+")
_UNSPACED = (
    "\u0e01-\u0e33\u0e40-\u0e46\u0e81-\u0eb3\u0ec0-\u0ec6\u1000-\u102a\u1780-\u17b3"
    "\u3005-\u3007\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
)
"""Letters of scripts that set no blank between words: Thai, Lao, Burmese, Khmer, kana, Han."""
_TOUCHING = f"{_UNSPACED}\u05d0-\u05ea\u0620-\u064a\u0671-\u06d3\uac00-\ud7af"
"""Letters that stand directly before or after a number: those, and Hebrew, Arabic, Hangul."""
_DIGITS = {chr(n): str(unicodedata.decimal(chr(n))) for n in range(0x80, 0x1FC00) if unicodedata.category(chr(n)) == "Nd"}
_PLAIN = _DIGITS | {
    "\uff05": "%",
    "\u066a": "%",
    "\uff04": "$",
    "\uffe5": "\u00a5",
    "\u066b": ".",
    "\u066c": ",",
    "\uff1a": ":",
    "\uff0e": ".",
}
"""Digits and signs of numbers of other scripts, each as one sign of ours."""
_SPELLED = re.compile(f"[{''.join(_PLAIN)}]")
_OTHER = re.compile(f"[{''.join(_PLAIN)}{_TOUCHING}]")
_ALONE = re.compile(f"[{_UNSPACED}]")
_LETTER = re.compile(f"[{_TOUCHING}]")
_TOUCH = re.compile(f"(?<=[{_TOUCHING}])(?=[a-zA-Z\\d$%])|(?<=[a-zA-Z\\d$%])(?=[{_TOUCHING}])")


def key(text: str) -> str:
    """`text` lower-cased, every run of other signs one space: `HAT-001, Economy` -> `hat 001 economy`.

    In a script without blanks each letter is a word: what stands inside a sentence is found there."""
    lowered = text.lower()
    if has_other_script(lowered):
        lowered = _ALONE.sub(r" \g<0> ", apart(lowered))
    return _BETWEEN.sub(" ", lowered).strip()


def has_other_script(text: str) -> bool:
    """Whether a text has letters that touch numbers, or numbers in other signs than ours."""
    return not text.isascii() and bool(_OTHER.search(text))


def plain(text: str) -> str:
    """`text` with every digit and sign of a number as ours, sign for sign: the same length."""
    return text if text.isascii() else _SPELLED.sub(lambda found: _PLAIN[found.group()], text)


def apart(text: str) -> str:
    """`plain(text)` with a blank between a number and the letters that touch it: `1299\u5143` -> `1299 \u5143`."""
    return _TOUCH.sub(" ", plain(text)) if has_other_script(text) else text


def unlettered(text: str) -> str:
    """`plain(text)` with a blank for each letter that touches numbers: the same length."""
    return _LETTER.sub(" ", plain(text))


def padded(text: str) -> str:
    """`key(text)` with a space on both sides, to search keys on word borders."""
    return f" {key(text)} "


def stands_in(value_key: str, padded_text: str) -> bool:
    """Whether a key occurs on word borders in a text that `padded` made."""
    return f" {value_key} " in padded_text


def words(text: str) -> list[str]:
    """Lower-cased runs of letters and digits, in order."""
    return _WORD.findall(apart(text.lower()))


def ungrouped(text: str) -> str:
    """`text` with its thousands in one: `1,299 EUR` -> `1299 EUR`."""
    return _GROUPED.sub("", text)
