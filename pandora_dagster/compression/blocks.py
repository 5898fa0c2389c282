"""Markdown and plain text as blocks: headings, tables, fences, list items, sentences. Knows layout; `join` keeps order and form."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from pandora_dagster.compression.language import sentences
from pandora_dagster.compression.records import LEFT_OUT

_HEADING = re.compile(r"#{1,6} \S")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_RULER = re.compile(r"\s*\|?\s*:?-{2,}[\s:|\-]*$")
_LABEL = re.compile(r"\*\*[^*\n]{1,60}\*\*:?|\w{1,24}(?: \w{1,24}){0,2}[.:]$|\w{1,24}(?: \w{1,24})?:(?= )")
_WORD = re.compile(r"[^\W\d_]{2}")
_LONGEST = 1_200
_LONGEST_FENCE = 2_000
"""Lines."""


class BlockKind(StrEnum):
    HEADING = "heading"
    TABLE_HEAD = "table_head"
    TABLE_ROW = "table_row"
    FENCE = "fence"
    FENCE_HEAD = "fence_head"
    FENCE_LINE = "fence_line"
    ITEM = "item"
    SENTENCE = "sentence"


@dataclass(frozen=True, slots=True)
class Block:
    """A piece that stands as a whole; `line` is where it begins, `under` the number of the heading, table head or fence above it."""

    kind: BlockKind
    text: str
    line: int
    under: int = -1
    closing: str = ""
    """Of a fence's head: what ends it."""
    label: str = ""
    """Of a sentence behind the first of its line: the line's label (`**Asked:**`, `Budget.`), without which it lacks its subject."""


HEADS = frozenset((BlockKind.HEADING, BlockKind.TABLE_HEAD, BlockKind.FENCE_HEAD))
"""Blocks that stand only above others."""


def blocks(text: str, longest: int = _LONGEST, fence_longest: int | None = None) -> tuple[Block, ...]:
    """The blocks of a text, in order; a sentence of more than `longest` characters stands as several, and a fence of more than
    `fence_longest` by its lines, under its opening line. A fence that holds `_meta` stays whole: code reads it."""
    return tuple(_blocks(text.split("\n"), longest, fence_longest))


def _blocks(lines: list[str], longest: int, fence_longest: int | None) -> Iterator[Block]:
    number = at = 0
    heading = table = -1
    announcing: list[tuple[int, int]] = []
    closings: defaultdict[str, list[int]] = defaultdict(list)
    for place, line in enumerate(lines):
        if (mark := line.strip()).startswith(("```", "~~~")):
            closings[mark].append(place)
    while at < len(lines):
        line = lines[at]
        if fence := _FENCE.match(line):
            end = _fence_end(lines, at, fence.group(1), closings)
            for block in _fence(lines, at, end, heading, number, longest, fence_longest):
                yield block
                number += 1
            at, table = end, -1
            continue
        for found in _of_line(lines, at, heading, table, longest):
            block = _announced(found, number, announcing)
            if block.kind is BlockKind.HEADING:
                heading, table = number, -1
            elif block.kind is BlockKind.TABLE_HEAD:
                table = number
            elif block.kind is not BlockKind.TABLE_ROW:
                table = -1
            yield block
            number += 1
        if not line.strip():
            table = -1
        at += 2 if is_table_head(lines, at) else 1


def _announced(block: Block, number: int, announcing: list[tuple[int, int]]) -> Block:
    """A list's item under the item that it is indented below, or under the line `Your flights:` before the list; `announcing` are
    the indentations and numbers of those above, kept up to date."""
    if block.kind is not BlockKind.ITEM:
        announcing[:] = [(-1, number)] if block.text.endswith(":") and block.kind is BlockKind.SENTENCE else []
        return block
    indent = len(block.text) - len(block.text.lstrip())
    while announcing and announcing[-1][0] >= indent:
        announcing.pop()
    above = announcing[-1][1] if announcing else block.under
    announcing.append((indent, number))
    return replace(block, under=above)


def _fence(lines: list[str], start: int, end: int, heading: int, number: int, longest: int, fence_longest: int | None) -> Iterator[Block]:
    """A fence as one block, or its opening line (which is block `number`) and the lines below it, each under the line that it is
    indented below, so that what a function holds comes with the function's name."""
    is_meta = _is_meta(lines, start)
    closing = [_mark(lines[start])] if is_meta and lines[end - 1].strip() != _mark(lines[start]) else []
    whole = Block(BlockKind.FENCE, "\n".join((*lines[start:end], *closing)), start, heading)
    if fence_longest is None or len(whole.text) <= fence_longest or end <= start + 2 or is_meta:
        yield whole
        return
    yield Block(BlockKind.FENCE_HEAD, lines[start].rstrip(), start, heading, closing=lines[end - 1].strip())
    above = [(-1, number)]
    for at in range(start + 1, end - 1):
        indent = len(lines[at]) - len(lines[at].lstrip())
        for piece in _pieces(lines[at].rstrip(), longest):
            number += 1
            while above[-1][0] >= indent:
                above.pop()
            yield Block(BlockKind.FENCE_LINE, piece, at, above[-1][1])
            above.append((indent, number))


def _fence_end(lines: list[str], start: int, mark: str, closings: Mapping[str, Sequence[int]]) -> int:
    """One past the closing fence; a fence that never closes is its first line only, a `_meta` block what is indented below it.
    `closings`: the lines of each mark."""
    if _is_meta(lines, start):
        at = start + 2
        while at < len(lines) and lines[at][:1].isspace():
            at += 1
        return at + 1 if at < len(lines) and lines[at].strip() == mark else at
    found = closings.get(mark, ())
    at = bisect_right(found, start)
    return found[at] + 1 if at < len(found) and found[at] < start + _LONGEST_FENCE else start + 1


def _is_meta(lines: list[str], start: int) -> bool:
    """Whether a fence holds `_meta`, which code reads."""
    return start + 1 < len(lines) and lines[start + 1].strip() == "_meta:"


def _mark(line: str) -> str:
    """The signs that open a fence, and close it."""
    found = _FENCE.match(line)
    return found.group(1) if found else ""


def _of_line(lines: list[str], at: int, heading: int, table: int, longest: int) -> Iterator[Block]:
    line = lines[at]
    if not line.strip():
        return
    if is_table_head(lines, at):
        yield Block(BlockKind.TABLE_HEAD, f"{line}\n{lines[at + 1]}", at, heading)
    elif table >= 0 and ("|" in line or LEFT_OUT.fullmatch(line)):
        yield Block(BlockKind.TABLE_ROW, line, at, table)
    elif _HEADING.match(line) and len(line) <= _LONGEST:
        yield Block(BlockKind.HEADING, line, at)
    elif _ITEM.match(line) and len(line) <= _LONGEST:
        yield Block(BlockKind.ITEM, line.rstrip(), at, heading)
    else:
        label, indent = "", line[: len(line) - len(line.lstrip())]
        for number, sentence in enumerate(_with_words(line)):
            for piece in _pieces(sentence, longest):
                text, indent = indent + piece, ""
                yield Block(BlockKind.SENTENCE, text, at, heading, label=label if number else "")
            if number == 0:
                label = found.group() if (found := _LABEL.match(sentence)) else ""


def _with_words(line: str) -> list[str]:
    """The sentences of a line; one without a word (`3/5`, `(4)`) stays with the one before: alone it says nothing."""
    found: list[str] = []
    for sentence in sentences(line):
        together = f"{found[-1]} {sentence}" if found and not _WORD.search(sentence) else ""
        if together and together in line:
            found[-1] = together
        else:
            found.append(sentence)
    return found


def is_table_head(lines: list[str], at: int) -> bool:
    """Whether a Markdown table begins at a line: its names, and the ruler below them."""
    return at + 1 < len(lines) and "|" in lines[at] and len(lines[at + 1]) <= _LONGEST and bool(_RULER.match(lines[at + 1]))


def _pieces(sentence: str, longest: int) -> Iterator[str]:
    """A sentence, or stretches of one that is longer than any, ended at white space where there is some."""
    at = 0
    while len(sentence) - at > longest:
        space = sentence.rfind(" ", at + longest // 2, at + longest)
        end = space if space > 0 else at + longest
        yield sentence[at:end].strip()
        at = end
    if (rest := sentence[at:]).strip():
        yield rest if at == 0 else rest.strip()
