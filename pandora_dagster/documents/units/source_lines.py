"""Lines of a text with their places, and lines joined to one text whose places are known."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_BREAK = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its break; `start` is where it begins in the source."""

    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def is_blank(self) -> bool:
        return not self.text or self.text.isspace()

    @property
    def indent(self) -> int:
        return len(self.text) - len(self.text.lstrip())

    def stripped(self) -> "Line":
        return Line(self.text.strip(), self.start + self.indent)

    def after(self, count: int) -> "Line":
        """The line without its first `count` characters."""
        return Line(self.text[count:], self.start + count)


def lines_of(text: str) -> list[Line]:
    """The lines of `text`; `\\n`, `\\r\\n` and `\\r` end one."""
    lines: list[Line] = []
    at = 0
    for found in _BREAK.finditer(text):
        lines.append(Line(text[at : found.start()], at))
        at = found.end()
    lines.append(Line(text[at:], at))
    return lines


class JoinedLines:
    """Lines joined by single blanks, each position of which has its place in the source."""

    def __init__(self, lines: Iterable[Line]) -> None:
        parts: list[str] = []
        self._at: list[int] = []
        self._source: list[int] = []
        length = 0
        for line in map(Line.stripped, lines):
            if line.text:
                self._at.append(length)
                self._source.append(line.start)
                parts.append(line.text)
                length += len(line.text) + 1
        self.text = " ".join(parts)

    def place(self, position: int) -> int:
        """Where the character at `position` stands in the source."""
        part = max(0, bisect_right(self._at, position) - 1)
        return self._source[part] + position - self._at[part]


def filled(lines: Sequence[Line]) -> list[Line]:
    """The lines that are not blank."""
    return [line for line in lines if not line.is_blank]


def trimmed(lines: Sequence[Line]) -> Sequence[Line]:
    """The lines without blank ones at both ends."""
    first, last = 0, len(lines)
    while first < last and lines[first].is_blank:
        first += 1
    while last > first and lines[last - 1].is_blank:
        last -= 1
    return lines[first:last]
