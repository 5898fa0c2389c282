"""Where the sentences of a paragraph stand that are units of their own."""

import re
from collections.abc import Iterator

from pandora_dagster.language.sentences import sentence_spans

_LONGEST = 2_000
"""Characters of a sentence without any end beyond which it is divided at white space, so that it can be shown at all."""
_NO_SENTENCE = re.compile(r"\W*\w{0,3}[.)]\W*")
"""`1.`, `(a)`: the number of what follows."""


def sentence_places(text: str, language: str) -> Iterator[tuple[int, int]]:
    """Start and end of each sentence of `text`, white space around it left out."""
    begun = -1
    for start, end in sentence_spans(text, language):
        first = start if begun < 0 else begun
        begun = first if _NO_SENTENCE.fullmatch(text[start : min(end, start + 12)]) else -1
        if begun < 0:
            yield from _divided(text, first, end)
    if begun >= 0:
        yield begun, len(text.rstrip())


def _divided(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while end - start > _LONGEST:
        cut = text.rfind(" ", start + 1, start + _LONGEST)
        if cut < 0:
            cut = start + _LONGEST
        yield start, cut
        start = cut + 1 if text[cut : cut + 1] == " " else cut
    if start < end:
        yield start, end
