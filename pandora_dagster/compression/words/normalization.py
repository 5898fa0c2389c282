"""The form in which values are compared. Knows spelling and white space; knows nothing of what a value means.

Two spellings are one key when they differ in case and in signs other than letters, digits, `$` and `%` only
(the measure of "literally there"). Letters of every script count, so that Arabic or Chinese text has keys too.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator

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
_ASCII = bytes(range(0x80))
_ALONE = re.compile(f"[{_UNSPACED}]")
_LETTER = re.compile(f"[{_TOUCHING}]")
_TOUCH = re.compile(f"(?<=[{_TOUCHING}])(?=[a-zA-Z\\d$%])|(?<=[a-zA-Z\\d$%])(?=[{_TOUCHING}])")
_HEAD, _MANY = 24, 200
"""Characters by which a longer text is looked for; and so many texts of one length are worth a reading of their own."""


def key(text: str) -> str:
    """`text` lower-cased, every run of other signs one space: `HAT-001, Economy` -> `hat 001 economy`.

    In a script without blanks each letter is a word: what stands inside a sentence is found there."""
    lowered = text.lower()
    if has_other_script(lowered):
        lowered = _ALONE.sub(r" \g<0> ", apart(lowered))
    return _BETWEEN.sub(" ", lowered).strip()


def has_other_script(text: str) -> bool:
    """Whether a text has letters that touch numbers, or numbers in other signs than ours."""
    return not text.isascii() and bool(_OTHER.search(_beyond_ascii(text)))


def _beyond_ascii(text: str) -> str:
    """The characters of a text beyond ASCII, in order: few, where it is written in Latin letters."""
    return text.encode("utf-8", "surrogatepass").translate(None, _ASCII).decode("utf-8", "surrogatepass")


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


def standing_in(texts: Iterable[str], text: str) -> frozenset[str]:
    """Those of `texts` that stand in `text`, sign for sign. Many of one length are looked for in one reading of it."""
    by_length: defaultdict[int, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for wanted in dict.fromkeys(texts):
        by_length[min(len(wanted), _HEAD)][wanted[:_HEAD]].append(wanted)
    found: set[str] = set()
    for length, heads in by_length.items():
        if len(heads) < _MANY:
            found.update(wanted for group in heads.values() for wanted in group if wanted in text)
            continue
        for at in range(len(text) - length + 1):
            if (head := text[at : at + length]) in heads:
                found.update(wanted for wanted in heads[head] if text.startswith(wanted, at))
    return frozenset(found)


class KeyIndex:
    """Where keys stand in a text that `padded` made: many can be asked for without reading it again for each."""

    def __init__(self, padded_text: str) -> None:
        self.words = padded_text.split()
        self.places: defaultdict[str, list[int]] = defaultdict(list)
        for place, word in enumerate(self.words):
            self.places[word].append(place)

    def find(self, value_key: str) -> Iterator[int]:
        """Places in `words` at which a key begins, in order; none for an empty one."""
        parts = value_key.split()
        if not all(part in self.places for part in parts):
            return
        ahead = min(range(len(parts)), key=lambda n: len(self.places[parts[n]]), default=-1)
        for place in self.places[parts[ahead]] if parts else ():
            begin = place - ahead
            if begin >= 0 and self.words[begin : begin + len(parts)] == parts:
                yield begin

    def has(self, value_key: str) -> bool:
        """Whether a key stands there on word borders."""
        return next(self.find(value_key), None) is not None

    def count(self, value_key: str) -> int:
        """How often a key stands there; what shares a border with the one before is not counted."""
        length, number, end = len(value_key.split()), 0, -1
        for place in self.find(value_key):
            if place > end:
                number, end = number + 1, place + length
        return number


def words(text: str) -> list[str]:
    """Lower-cased runs of letters and digits, in order."""
    lowered = text.lower()
    return _WORD.findall(lowered if lowered.isascii() else apart(lowered))


def ungrouped(text: str) -> str:
    """`text` with its thousands in one: `1,299 EUR` -> `1299 EUR`."""
    return _GROUPED.sub("", text)
