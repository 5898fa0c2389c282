"""Lines of a text with their positions, and lines joined to one text whose characters keep their positions in the source."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_MAX_WIDTH, _MIN_WRAPPED_LINE = 130, 30
"""Width of hard-wrapped text, and length of a line in it that goes on in the next one."""
_QUOTES = re.compile(r"^(?:>\s?)+")
_ITEM = re.compile(r"\s*(?:[-*•+>|#\[{}\"]|\(?\d{1,3}[.)]\s|\(?[a-z][.)]\s|.{1,40}?:\s|\d{4}-\d\d-\d\d|\.\. |::)")
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
    for line_break in _BREAK.finditer(text):
        lines.append(Line(text[at : line_break.start()], at))
        at = line_break.end()
    lines.append(Line(text[at:], at))
    return lines


class LineLayout:
    """How wide the lines of a text are, which shows whether they are hard-wrapped."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._starts = [line.start for line in lines]
        bare = [_QUOTES.sub("", line.text).rstrip() for line in lines]
        self._lengths = [len(text) for text in bare]
        self._items = [bool(_ITEM.match(text)) for text in bare]
        self._widths: list[int] = []
        for i, line in enumerate(lines):
            if i == len(self._widths):
                end = i + 1
                while end < len(lines) and lines[end].is_blank == line.is_blank:
                    end += 1
                self._widths += [max(self._lengths[i:end])] * (end - i)

    def width(self, line: Line) -> int:
        """Length of the longest line of the block that contains the line."""
        return self._widths[self._index(line)]

    def is_wrapped(self, before: Line, line: Line) -> bool:
        """Whether the first word of `line` would not have fitted into the line before, and neither is an item or a row."""
        place = self._index(before)
        width, length = self._widths[place], self._lengths[place]
        first = line.text.split(maxsplit=1)[:1] or [""]
        fits = length + 1 + len(first[0]) <= width
        return not fits and width <= _MAX_WIDTH and length >= _MIN_WRAPPED_LINE and not self._items[self._index(line)]

    def _index(self, line: Line) -> int:
        return max(0, bisect_right(self._starts, line.start) - 1)


class JoinedLines:
    """Lines joined to one text; `place` gives the position in the source of each of its characters.

    `text` has single blanks between the lines; `shown`, of the same length, has a line break where a line may not be hard-wrapped.
    """

    def __init__(self, lines: Iterable[Line], layout: LineLayout) -> None:
        self._at: list[int] = []
        self._source: list[int] = []
        parts: list[str] = []
        shown: list[str] = []
        before: Line | None = None
        length = 0
        for line in map(Line.stripped, lines):
            if line.text:
                if before:
                    parts.append(" ")
                    shown.append(" " if layout.is_wrapped(before, line) else "\n")
                    length += 1
                self._at.append(length)
                self._source.append(line.start)
                parts.append(line.text)
                shown.append(line.text)
                length += len(line.text)
                before = line
        self.text, self.shown = "".join(parts), "".join(shown)

    def place(self, position: int) -> int:
        """The position in the source of the character at `position`."""
        part = bisect_right(self._at, position) - 1 if len(self._at) > 1 else 0
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
