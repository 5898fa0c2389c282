"""The form in which values are compared. Knows spelling and white space; knows nothing of what a value means.

Two spellings are one key when they differ in case and in signs other than letters, digits, `$` and `%` only
(the measure of "literally there"). Letters of every script count, so that Arabic or Chinese text has keys too.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

_BETWEEN = re.compile(r"(?:[^\w$%]|_)+")
_WORD = re.compile(r"[^\W_]+")
_HEAD, _MANY = 24, 200
"""Characters by which a longer text is looked for; and so many texts of one length are worth a reading of their own."""


def key(text: str) -> str:
    """`text` lower-cased, every run of other signs one space: `HAT-001, Economy` -> `hat 001 economy`."""
    return _BETWEEN.sub(" ", text.lower()).strip()


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

    def stands_once(self, value_key: str) -> bool:
        """Whether a key stands there, and nowhere behind that."""
        found = self.find(value_key)
        first = next(found, None)
        return first is not None and all(place <= first + len(value_key.split()) for place in found)


def words(text: str) -> list[str]:
    """Lower-cased runs of letters and digits, in order."""
    return _WORD.findall(text.lower())
