"""Words so long that no method could keep them but cut: hex, base64, one letter over and over. They stand whole or not at all.

Knows forms; what is left out is said in its place by its length.
"""

import re

_LONG = re.compile(r"(?<![^\s\"'`(>:=,|])[A-Za-z0-9+/=_\-]{81,}(?![\w])")
LEFT_OUT_WORD = re.compile(r"\[\d+ characters left out\]")
_SHORTEST, _LONGEST = 80, 600


def longest_word(target: int) -> int:
    """Characters of the longest word that stands whole in a text of `target` tokens: half of the smallest piece it is taken apart into."""
    return max(_SHORTEST, min(_LONGEST, target * 3 // 2))


def without_long_words(text: str, target: int) -> str:
    """`text` with `[400000 characters left out]` for each word that is too long for `target` tokens."""
    most = longest_word(target)
    return _LONG.sub(lambda word: word.group() if len(word.group()) <= most else f"[{len(word.group())} characters left out]", text)
