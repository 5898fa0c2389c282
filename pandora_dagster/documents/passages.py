"""Passages of a text: its paragraphs, each heading together with the paragraph under it. No character is changed."""

import re
from collections.abc import Iterator

_PARAGRAPH = re.compile(r"\S.*?(?=\s*(?:\n[ \t]*\r?\n|\Z))", re.DOTALL)
_HEADING = re.compile(r"#{1,6}[ \t][^\n]*\Z")
LONGEST_PASSAGE = 1_200
"""Characters of a passage: a longer paragraph is divided at a line end, else at a sentence end, else at a blank."""
Span = tuple[int, int]
"""Begin and end of a passage in its text."""


def passages(text: str, *, longest: int = LONGEST_PASSAGE) -> tuple[Span, ...]:
    """The passages of `text` in order; only white space is between them."""
    found: list[Span] = []
    heading: int | None = None
    for paragraph in _PARAGRAPH.finditer(text):
        start = paragraph.start() if heading is None else heading
        heading = start if _HEADING.fullmatch(paragraph.group()) else None
        if heading is None:
            found += _divide(text, start, paragraph.end(), longest)
    if heading is not None:
        found += _divide(text, heading, len(text.rstrip()), longest)
    return tuple(found)


def _divide(text: str, start: int, stop: int, longest: int) -> Iterator[Span]:
    while stop - start > longest:
        piece = text[start : start + longest]
        cut = next((at + 1 for mark in ("\n", ". ", " ") if (at := piece.rfind(mark, longest // 4)) > 0), longest)
        end = start + len(piece[:cut].rstrip())
        if end > start:
            yield start, end
        start += cut
        start += len(text[start:stop]) - len(text[start:stop].lstrip())
    if start < stop:
        yield start, stop
