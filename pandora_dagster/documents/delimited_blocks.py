"""Blocks between an opening and a closing line, such as code fences and front matter, found in one pass over the text.

One pattern of the form `^open.*?^close` reads to the end of the text from every opening that is never closed, which takes quadratic time.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

CODE_FENCE = re.compile(r"^[ \t]*```([A-Za-z]*)[ \t]*\n", re.MULTILINE)
CODE_FENCE_END = re.compile(r"^[ \t]*```[ \t]*$", re.MULTILINE)

_FENCE_LINE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DelimitedBlock:
    """`opening`: the match of the opening; `body`: the text between; `start` and `end`: the place of the whole block."""

    opening: re.Match[str]
    closing: re.Match[str]

    @property
    def body(self) -> str:
        return self.opening.string[self.opening.end() : self.closing.start()]

    @property
    def start(self) -> int:
        return self.opening.start()

    @property
    def end(self) -> int:
        return self.closing.end()


def delimited_blocks(text: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> Iterator[DelimitedBlock]:
    """Every block from an opening to the next closing; an opening inside a block does not count, one without a closing ends the search."""
    position = 0
    while (start := opening.search(text, position)) and (end := closing.search(text, start.end())):
        yield DelimitedBlock(start, end)
        position = max(end.end(), start.end())


def code_fences(text: str) -> Iterator[tuple[str, str]]:
    """The language and the content of each code fence."""
    return ((block.opening[1], block.body) for block in delimited_blocks(text, CODE_FENCE, CODE_FENCE_END))


def fenced_spans(text: str, *, unclosed: bool = False) -> Iterator[tuple[int, int]]:
    """Start and end of each Markdown code block: from a line of three or more backticks or tildes to the next line of the same ones.

    `unclosed`: a fence that is never closed takes the rest of the text, as Markdown renders it; else it is no block.
    """
    lines = list(_FENCE_LINE.finditer(text))
    closings: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        if line[0].strip(" \t") == line[1]:
            closings.setdefault(line[1], []).append(number)
    next_line = 0
    for number, line in enumerate(lines):
        if number < next_line:
            continue
        numbers = closings.get(line[1], [])
        position = bisect_right(numbers, number)
        if position < len(numbers):
            yield line.start(), lines[numbers[position]].end()
            next_line = numbers[position] + 1
        elif unclosed:
            yield line.start(), len(text)
            return


def block_body(block: str) -> str:
    """The lines of a code block between its fences."""
    return block[block.find("\n") + 1 : block.rfind("\n") + 1]


def without_code_blocks(text: str) -> str:
    """The text with a blank in place of each code block."""
    pieces: list[str] = []
    position = 0
    for start, end in fenced_spans(text):
        pieces.append(text[position:start])
        position = end
    return " ".join([*pieces, text[position:]])
