"""One spelling for words that are written in several: with accents and without, umlauts typed as two letters. Knows no stems."""

import re
from unicodedata import decomposition

_PLAIN = str.maketrans({"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"})
_TYPED = re.compile(r"(?<![aeouq])([aou])e(?=[b-df-hj-np-tv-z])")
"""Two letters that may be an umlaut: not in `queue` or `blue`."""


def unaccented(word: str) -> str:
    """A lower-case word with Latin letters alone where it has accents over them: `krüger` is `kruger`; other scripts stay."""
    return word if word.isascii() else "".join(map(_base, word.translate(_PLAIN)))


def umlauts_undone(word: str) -> str:
    """`krueger` as `kruger`; the word itself where it has no such two letters."""
    return _TYPED.sub(r"\1", word) if "e" in word else word


def _base(sign: str) -> str:
    """The letter under the accents of a composed Latin letter."""
    while not sign.isascii() and (parts := decomposition(sign)) and not parts.startswith("<"):
        base = chr(int(parts.split()[0], 16))
        if not (base.isascii() or decomposition(base)):
            break
        sign = base
    return sign
