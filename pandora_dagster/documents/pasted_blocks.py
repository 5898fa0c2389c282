"""Splits a query into the user's own words and long pasted blocks (DECISIONS 3), by the form of its lines.

A block is a code fence, a quotation (`>`), or a run of machine-written lines: a log, a trace, data. Prose always counts as words.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_FENCE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n.*?(?:^\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_QUOTED = re.compile(r"(?:^>[^\n]*(?:\n|\Z)){3,}", re.MULTILINE)
_MACHINE = re.compile(
    r"^(?:\s{2,}\S|\t|[\[{}\])<|#]|\d{4}-\d\d-\d\d|\d\d:\d\d|at \S+\(|File \"|Traceback|(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL)\b)"
    r"|[;{}]\s*$|^[^\s,;]+(?:[,;\t][^\s,;]*){2,}$"
)
_QUOTED_SPEECH = re.compile(r"(?<!\w)\"[^\"\n]{12,}\"|\u201c[^\u201d\n]{12,}\u201d|\u00ab[^\u00bb\n]{12,}\u00bb")
"""A quoted sentence; shorter quotations are names and titles."""
_MACHINE_SHARE = 0.7
_SHORTEST_RUN = 5


@dataclass(frozen=True, slots=True)
class PastedBlock:
    """One block, verbatim, with the name by which the words refer to it."""

    name: str
    text: str
    reference: str
    """The text in its place among the words."""


def split_pasted(query: str, *, least: int, count: Callable[[str], int]) -> tuple[str, tuple[PastedBlock, ...]]:
    """The user's words with a reference in place of each pasted block of at least `least` tokens, and those blocks."""
    blocks: list[PastedBlock] = []
    words: list[str] = []
    at = 0
    for start, end in _spans(query):
        text = query[start:end].rstrip("\n")
        if start < at or count(text) < least:
            continue
        name = f"pasted_{len(blocks) + 1}"
        block = PastedBlock(name, text, f"[attached document {name}: {text.count(chr(10)) + 1} lines]")
        words += [query[at:start], block.reference]
        blocks.append(block)
        at = start + len(text)
    return "".join([*words, query[at:]]), tuple(blocks)


def own_words(query: str) -> str:
    """The words of the user, without blocks, quoted lines and text in quotation marks, which others may have written."""
    words, blocks = split_pasted(query, least=0, count=len)
    for block in blocks:
        words = words.replace(block.reference, "\n\n", 1)
    return _QUOTED_SPEECH.sub(" ", "\n".join(line for line in words.splitlines() if not line.lstrip().startswith(">")))


def _spans(query: str) -> list[tuple[int, int]]:
    found = [m.span() for pattern in (_FENCE, _QUOTED) for m in pattern.finditer(query)]
    return sorted([*found, *_runs(query)], key=lambda span: (span[0], -span[1]))


def _runs(query: str) -> Iterator[tuple[int, int]]:
    """Spans of paragraphs whose lines look mostly machine-written."""
    at = 0
    for paragraph in re.split(r"(\n[ \t]*\n)", query):
        lines = paragraph.split("\n")
        marked = sum(bool(_MACHINE.search(line)) for line in lines)
        if len(lines) >= _SHORTEST_RUN and marked >= _MACHINE_SHARE * len(lines):
            yield at, at + len(paragraph)
        at += len(paragraph)
