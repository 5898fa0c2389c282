"""Passages of a text: its paragraphs, each heading together with the paragraph under it. No character is changed."""

import re
from collections.abc import Iterator

_EMPTY_LINE = re.compile(r"\n[ \t]*\r?\n")
_HEADING = re.compile(r"#{1,6}[ \t][^\n]*\Z")
MAX_PASSAGE_CHARACTERS = 1_200
"""A longer paragraph is divided at a line end, else at a sentence end, else at a blank."""
Span = tuple[int, int]
"""Start and end of a passage in its text."""


def passages(text: str, *, max_characters: int = MAX_PASSAGE_CHARACTERS) -> tuple[Span, ...]:
    """The passages of `text` in order; only white space is between them."""
    spans: list[Span] = []
    heading: int | None = None
    """The start of a heading whose paragraph follows."""
    for begin, end in _paragraphs(text):
        start = begin if heading is None else heading
        heading = start if _HEADING.fullmatch(text[begin:end]) else None
        if heading is None:
            spans += _divide(text, start, end, max_characters)
    if heading is not None:
        spans += _divide(text, heading, len(text.rstrip()), max_characters)
    return tuple(spans)


def _paragraphs(text: str) -> Iterator[Span]:
    start = 0
    for end in (*(line.start() for line in _EMPTY_LINE.finditer(text)), len(text)):
        piece = text[start:end].rstrip()
        if paragraph := piece.lstrip():
            yield start + len(piece) - len(paragraph), start + len(piece)
        start = end


def _divide(text: str, start: int, stop: int, max_characters: int) -> Iterator[Span]:
    """Divide a paragraph into spans of at most `max_characters`, none shorter than a quarter of it where a better place exists."""
    while stop - start > max_characters:
        piece = text[start : start + max_characters]
        cut = next((at + 1 for mark in ("\n", ". ", " ") if (at := piece.rfind(mark, max_characters // 4)) > 0), max_characters)
        end = start + len(piece[:cut].rstrip())
        if end > start:
            yield start, end
        start += cut
        while start < stop and text[start].isspace():
            start += 1
    if start < stop:
        yield start, stop
