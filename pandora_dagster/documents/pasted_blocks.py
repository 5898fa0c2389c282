"""Splits a query into the user's own words and long pasted blocks, by the form of its lines.

A block is a code fence, a quotation (`>`), or a run of machine-written lines: a log, a trace, data. Prose is always the user's words. See
decision 3 (docs/decisions/03-a-query-over-its-limits.md).
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pandora_dagster.documents.delimited_blocks import fenced_spans

_QUOTED = re.compile(r"(?:^>[^\n]*(?:\n|\Z)){3,}", re.MULTILINE)
_MACHINE_LINE = re.compile(
    r"^(?:\s{2,}\S|\t|[\[{}\])<|#]|\d{4}-\d\d-\d\d|\d\d:\d\d|at \S+\(|File \"|Traceback|(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL)\b)"
    r"|[;{}]\s*$|^[^\s,;]+(?:[,;\t][^\s,;]*){2,}$"
)
_QUOTED_SPEECH = re.compile(r"(?<!\w)\"[^\"\n]{12,}\"|\u201c[^\u201c\u201d\n]{12,}\u201d|\u00ab[^\u00ab\u00bb\n]{12,}\u00bb")
"""A quoted sentence; shorter quotations are names and titles."""
_MIN_MACHINE_SHARE = 0.7
"""Share of machine-written lines from which a paragraph is a block."""
_MIN_RUN_LINES = 5


@dataclass(frozen=True, slots=True)
class PastedBlock:
    """One block, verbatim, with the name by which the user's words refer to it."""

    name: str
    text: str
    reference: str
    """The text that replaces the block among the user's words."""


def split_pasted(query: str, *, min_tokens: int, count: Callable[[str], int]) -> tuple[str, tuple[PastedBlock, ...]]:
    """The user's words with a reference in place of each pasted block of at least `min_tokens` tokens, and those blocks."""
    blocks: list[PastedBlock] = []
    words: list[str] = []
    position = 0
    for start, end in _block_spans(query):
        text = query[start:end].rstrip("\n")
        if start < position or count(text) < min_tokens:
            continue
        name = f"pasted_{len(blocks) + 1}"
        block = PastedBlock(name, text, f"[attached document {name}: {text.count(chr(10)) + 1} lines]")
        words += [query[position:start], block.reference]
        blocks.append(block)
        position = start + len(text)
    return "".join([*words, query[position:]]), tuple(blocks)


def own_words(query: str) -> str:
    """The words of the user, without blocks, quoted lines and text in quotation marks, which others may have written."""
    words, blocks = split_pasted(query, min_tokens=0, count=len)
    for block in blocks:
        words = words.replace(block.reference, "\n\n", 1)
    return _QUOTED_SPEECH.sub(" ", "\n".join(line for line in words.splitlines() if not line.lstrip().startswith(">")))


def short_query(query: str, max_tokens: int, count: Callable[[str], int]) -> str:
    """The query, else the words of the user in it, where they have at most `max_tokens`; else "": a longer one is a text by itself."""
    return next((text for text in (query, own_words(query).strip()) if count(text) <= max_tokens), "")


def _block_spans(query: str) -> list[tuple[int, int]]:
    """The spans of all blocks by their start, the longest first; they may overlap."""
    spans = [*fenced_spans(query, unclosed=True), *(quoted.span() for quoted in _QUOTED.finditer(query))]
    return sorted([*spans, *_machine_runs(query)], key=lambda span: (span[0], -span[1]))


def _machine_runs(query: str) -> Iterator[tuple[int, int]]:
    """Spans of paragraphs whose lines look mostly machine-written."""
    position = 0
    for paragraph in re.split(r"(\n[ \t]*\n)", query):
        lines = paragraph.split("\n")
        machine_lines = sum(bool(_MACHINE_LINE.search(line)) for line in lines)
        if len(lines) >= _MIN_RUN_LINES and machine_lines >= _MIN_MACHINE_SHARE * len(lines):
            yield position, position + len(paragraph)
        position += len(paragraph)
