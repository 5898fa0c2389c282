"""Where the sentences of a paragraph stand that are units of their own."""

import re
from collections.abc import Iterator

from pandora_dagster.documents.units.clauses import clause_places
from pandora_dagster.language.sentences import sentence_spans

_LONGEST = 2_000
"""Characters of a sentence without any end beyond which it is divided at white space, so that it can be shown at all."""
_NO_SENTENCE = re.compile(r"\W*\w{0,3}[.)]\W*")
"""`1.`, `(a)`: the number of what follows."""
_ASKS = re.compile(r"[?？][\s\"”’»)]*$")
_ANSWER = re.compile(
    r"[\"“„«]?(?:[-–—] |(?:yes|no|none|nope|ja|nein|doch|oui|non|si|sí|no|nee|sim|não|tak|nie|はい|いいえ|да|нет)\b)", re.IGNORECASE
)
_SHORT_QUESTION = 160
"""A short question and the yes or no behind it are one unit."""
_NUMBER_END = re.compile(r"(?:^|[\s(])(?:\d{1,2}|[A-Za-z])\.$")
"""`that 1.`, `am 3.`: whether the point ends a sentence is not known, so that what follows belongs to it."""


def sentence_places(text: str, language: str) -> Iterator[tuple[int, int]]:
    """Start and end of each sentence of `text`, white space around it left out."""
    begun = -1
    spans = list(sentence_spans(text, language))
    for (start, end), behind in zip(spans, [*(start for start, _ in spans[1:]), len(text)], strict=True):
        first = start if begun < 0 else begun
        asks = _ASKS.search(text[max(start, end - 4) : end]) and end - start < _SHORT_QUESTION and _ANSWER.match(text[behind : behind + 24])
        unfinished = (
            asks or _NUMBER_END.search(text[max(start, end - 6) : end]) or (end - start < 12 and _NO_SENTENCE.fullmatch(text[start:end]))
        )
        begun = first if unfinished and end - first < _LONGEST else -1
        if begun < 0:
            for clause in clause_places(text, first, end, language):
                yield from _divided(text, *clause)
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
