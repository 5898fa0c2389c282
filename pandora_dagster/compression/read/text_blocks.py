"""Markdown and plain text as blocks: headings, tables, fences, list items, sentences. Knows layout; `join` keeps order and form."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from pandora_dagster.compression.read.json_rows import LEFT_OUT
from pandora_dagster.compression.words.anaphora import goes_on, is_labelled, leans, turns
from pandora_dagster.compression.words.word_classes import sentences
from pandora_dagster.language.sentences import mask_inner_points

_HEADING = re.compile(r"#{1,6} \S")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_RULER = re.compile(r"\s*\|?\s*:?-{2,}[\s:|\-]*$")
_LABEL = re.compile(r"\*\*[^*\n]{1,60}(?::\*\*|\*\*:)|(?:\d{1,3}[.)] )?\w{1,24}(?: \w{1,24}){0,2}[.:]$")
_QUOTED = re.compile(r"(?:> ?)+")
_WROTE = re.compile(r"(?:> ?)*(?:.{0,160}(?:<[^<>\s]+@[^<>\s]+>|\b\d{4}\b|\d:\d\d).{0,120}|On .{0,200}):\s*$")
"""The line above a quotation in a mail: `On Mon, 5 May 2026 Ann Lee <ann@x.example> wrote:`"""
_FROM = re.compile(r"From: \S")
_SIGNATURE = re.compile(
    r"\s*(?:@\w|(?:(?:async|export|default|public|private|protected|static|abstract|final|pub|override|virtual|inline)\b[ (\w)]*?)?"
    r"\b(?:def|class|function|func|fn|interface|struct|enum|trait|impl|module|namespace|type)\s+\w)"
)
_CODE = re.compile(
    r"\s*(?:(?:def|class|import|from|return|if|elif|else|for|while|try|except|with|raise|async|await|func|fn|let|const|var|public|private|"
    r"static|#include|package|use|struct|impl|switch|case|break)\b.*[:;{)(\w\"']$|[\w.\[\]]+ ?[+\-*/]?= .|[})\]]+[;,]?$|[\w.]+\(.*\)[;:]?$|(?://|#|\"\"\"|/?\*).*)"
)
_CODE_SHARE, _CODE_LINES = 0.6, 8
_LONG_ITEM = 160
"""Characters from which on an item of several sentences is read sentence by sentence."""
_SMALL = re.compile(r"(?<=[a-z\d)][.!?])\s+(?=[a-z])")
"""Between two sentences in small letters."""
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
    WRITER = "writer"
    """`On Monday Ann wrote:` above what is quoted of her."""
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
    """Of a sentence behind the first of its line: the title of that line (`**Asked:**`, `Budget.`), without which it lacks its subject."""
    needs: int = -1
    """The number of the block that this one takes up, and says nothing sure without."""
    is_turned: bool = False
    """Whether the block that needs this one takes it back, judges or answers it: this one misleads without that."""
    is_signature: bool = False
    """Of a line of code: whether it names what the lines below it belong to."""


SPOKEN = frozenset((BlockKind.SENTENCE, BlockKind.ITEM))
HEADS = frozenset((BlockKind.HEADING, BlockKind.TABLE_HEAD, BlockKind.FENCE_HEAD, BlockKind.WRITER))
"""Blocks that stand only above others."""


def blocks(text: str, longest: int = _LONGEST, fence_longest: int | None = None) -> tuple[Block, ...]:
    """The blocks of a text, in order; a sentence of more than `longest` characters stands as several, and a fence of more than
    `fence_longest` by its lines, under its opening line. A fence that holds `_meta` stays whole: code reads it."""
    lines = text.split("\n")
    found = list(_code(lines, 0, len(lines), -1, 0, longest)) if is_code(text) else list(_blocks(lines, longest, fence_longest))
    return tuple(_related(found))


def is_code(text: str) -> bool:
    """Whether a text is a program's source: most of its first lines are code, and some name what others belong to."""
    lines = [line for line in text[:20_000].split("\n")[:400] if line.strip()]
    if len(lines) < _CODE_LINES or any(_FENCE.match(line) for line in lines) or not any(_SIGNATURE.match(line) for line in lines):
        return False
    return sum(bool(_CODE.match(line)) for line in lines) >= _CODE_SHARE * len(lines)


def _related(found: list[Block]) -> list[Block]:
    """Each sentence with the one it takes up, on its line or on the line above."""
    first = -1
    for number, block in enumerate(found):
        if block.kind not in SPOKEN:
            continue
        above = number - 1
        while above >= 0 and found[above].line > block.line - 2 and found[above].kind not in SPOKEN:
            above -= 1
        is_near = (
            above >= 0 and found[above].kind in SPOKEN and found[above].line >= block.line - 1 and _level(found[above]) == _level(block)
        )
        first = first if is_near and found[first].line == block.line else number
        if is_near and (turns(block.text) or (found[above].line < block.line and goes_on(found[above].text, block.text))):
            found[above] = replace(found[above], is_turned=True)
            found[number] = replace(block, needs=above, label="")
        elif first != number and not block.label and is_labelled(found[first].text):
            found[number] = replace(block, needs=first)
        elif _is_reply(found, number):
            found[number] = replace(block, needs=number - 1)
        elif is_near and leans(block.text) and (found[above].line == block.line or block.kind is BlockKind.SENTENCE):
            found[number] = replace(block, needs=above)
    return found


def _is_reply(found: Sequence[Block], number: int) -> bool:
    """Whether a line of a mail stands right below what is quoted and answered in it."""
    above = found[number - 1] if number else found[number]
    return above.kind in SPOKEN and _level(above) > _level(found[number])


def _level(block: Block) -> int:
    """How often a line of a mail is quoted."""
    mark = _QUOTED.match(block.text)
    return mark.group().count(">") if mark else 0


def _blocks(lines: list[str], longest: int, fence_longest: int | None) -> Iterator[Block]:
    number = at = 0
    heading = table = -1
    announcing: list[tuple[int, int]] = []
    writers: dict[int, int] = {}
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
            block = _written(_announced(found, number, announcing), number, writers)
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
    indent = len(block.text) - len(block.text.lstrip())
    if block.kind is BlockKind.SENTENCE and announcing and indent > announcing[-1][0] >= 0:
        return replace(block, under=announcing[-1][1])
    if block.kind is not BlockKind.ITEM:
        announcing[:] = [(-1, number)] if block.text.endswith(":") and block.kind is BlockKind.SENTENCE else []
        return block
    while announcing and announcing[-1][0] >= indent:
        announcing.pop()
    above = announcing[-1][1] if announcing else block.under
    announcing.append((indent, number))
    return replace(block, under=above)


def _written(block: Block, number: int, writers: dict[int, int]) -> Block:
    """A line of a mail under the line that says who wrote it; `writers` are those lines by how often they are quoted, kept up to
    date."""
    if block.kind not in SPOKEN:
        return block
    level = _level(block)
    if _FROM.match(block.text):
        writers.clear()
        writers[0] = number
    elif block.kind is BlockKind.SENTENCE and _WROTE.match(block.text):
        writers[level + 1] = number
        for deeper in [n for n in writers if n > level + 1]:
            del writers[deeper]
        return replace(block, kind=BlockKind.WRITER, under=writers.get(level, -1) if level else -1)
    elif level in writers and (level or block.under < 0):
        return replace(block, under=writers[level])
    return block


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
    yield from _code(lines, start + 1, end - 1, number, number + 1, longest)


def _code(lines: list[str], start: int, end: int, head: int, number: int, longest: int) -> Iterator[Block]:
    """Lines of code from block `number` on, each under the line that it is indented below, at last under `head`: what a function
    holds comes with the function's name."""
    above = [(-1, head)]
    for at in range(start, end):
        indent = len(lines[at]) - len(lines[at].lstrip())
        for piece in _pieces(lines[at].rstrip(), longest):
            while above[-1][0] >= indent:
                above.pop()
            yield Block(BlockKind.FENCE_LINE, piece, at, above[-1][1], is_signature=bool(_SIGNATURE.match(piece)))
            above.append((indent, number))
            number += 1


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
    elif _ITEM.match(line) and len(line) <= _LONGEST and (len(line) < _LONG_ITEM or len(sentences(line)) < 2):
        yield Block(BlockKind.ITEM, line.rstrip(), at, heading)
    else:
        mark = found.group() if (found := _QUOTED.match(line)) else ""
        label, indent = "", mark or line[: len(line) - len(line.lstrip())]
        line = line[len(mark) :]
        for number, sentence in enumerate(_with_words(line)):
            for piece in _pieces(sentence, longest):
                text, indent = indent + piece, mark
                kind = BlockKind.ITEM if number == 0 and _ITEM.match(line) and not mark else BlockKind.SENTENCE
                yield Block(kind, text, at, heading, label=label if number else "")
            if number == 0:
                label = found.group() if (found := _LABEL.match(sentence)) else ""


def _with_words(line: str) -> list[str]:
    """The sentences of a line; one without a word (`3/5`, `(4)`) stays with the one before: alone it says nothing."""
    found: list[str] = []
    for sentence in _ended(line):
        together = f"{found[-1]} {sentence}" if found and not _WORD.search(sentence) else ""
        if together and together in line:
            found[-1] = together
        else:
            found.append(sentence)
    return found


def _ended(line: str) -> list[str]:
    """The sentences of a line; one that begins with a small letter writes all of its sentences so."""
    found = sentences(line)
    if not line.lstrip()[:1].islower():
        return found
    return [part for sentence in found for part in _parted(sentence)]


def _parted(sentence: str) -> list[str]:
    ends = list(_SMALL.finditer(mask_inner_points(sentence)))
    starts = [0, *(end.end() for end in ends)]
    return [sentence[a:b] for a, b in zip(starts, [*(end.start() for end in ends), len(sentence)], strict=True)]


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
