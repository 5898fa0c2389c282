"""A text in pieces that fit a compression call, split at structural borders only (DECISIONS 9). Joined again, it is the text.

Divides between sections, fences, paragraphs, lines and sentences; cuts none of them. A piece larger than a call and without a border
inside is condensed by structure, without a model.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.execution.fit.call_budget import TokenCountFunction

ChunkMethod = Literal["verbatim", "model", "structure"]
_FENCE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n.*?(?:^\1[ \t]*(?:\n|\Z)|\Z)", re.MULTILINE | re.DOTALL)
_META = re.compile(r"^`{3,}yaml\n_meta:")
_PARAGRAPH = re.compile(r".*?(?:\n[ \t]*\n+|\Z)", re.DOTALL)
_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_SENTENCE = re.compile(r".+?(?:[.!?]\s+|\Z)", re.DOTALL)
_SMALLEST = 40
"""Tokens below which a piece stays unchanged: a call would not make it shorter."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One piece of a text and its method of compression."""

    text: str
    tokens: int
    way: ChunkMethod


def split_text(text: str, *, size: int, count: TokenCountFunction) -> tuple[Chunk, ...]:
    """`text` in chunks of at most `size` tokens where it has borders; section 0, headings and `_meta` blocks stay verbatim."""
    chunks: list[Chunk] = []
    for piece, is_fixed in _pieces(text):
        if is_fixed:
            chunks.append(Chunk(piece, count(piece), "verbatim"))
        else:
            chunks += _merge_neighbours(_split_at_borders(piece, size, count), size, count)
    return tuple(chunks)


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """The stretches of the text, and whether each must stay verbatim."""
    document = ContextDocument.parse(text)
    yield from _fence_aware_pieces(document.preamble)
    for section in document.sections:
        if section.number == 0:
            yield section.text, True
        else:
            yield section.heading, True
            yield from _fence_aware_pieces(section.body)


def _fence_aware_pieces(text: str) -> Iterator[tuple[str, bool]]:
    at = 0
    for fence in _FENCE.finditer(text):
        if _META.match(fence.group()):
            if text[at : fence.start()]:
                yield text[at : fence.start()], False
            yield fence.group(), True
            at = fence.end()
    if text[at:]:
        yield text[at:], False


def _split_at_borders(text: str, size: int, count: TokenCountFunction) -> Iterator[str]:
    """Paragraphs with their fences whole; of those over `size` the lines, of lines over `size` the sentences."""
    for paragraph in _paragraphs(text):
        if count(paragraph) <= size or paragraph.lstrip().startswith(("```", "~~~")):
            yield paragraph
            continue
        for line in _LINE.findall(paragraph):
            yield from [line] if count(line) <= size or line.lstrip()[:1] in "{[" else _SENTENCE.findall(line)


def _paragraphs(text: str) -> Iterator[str]:
    at = 0
    for fence in _FENCE.finditer(text):
        yield from (p for p in _PARAGRAPH.findall(text[at : fence.start()]) if p)
        yield fence.group()
        at = fence.end()
    yield from (p for p in _PARAGRAPH.findall(text[at:]) if p)


def _merge_neighbours(parts: Iterator[str], size: int, count: TokenCountFunction) -> list[Chunk]:
    """Neighbours together as long as they fit."""
    chunks: list[Chunk] = []
    held, tokens = "", 0
    for part in parts:
        cost = count(part)
        if held and tokens + cost > size:
            chunks.append(_text_chunk(held, tokens, size))
            held, tokens = "", 0
        held, tokens = held + part, tokens + cost
    return [*chunks, _text_chunk(held, tokens, size)] if held else chunks


def _text_chunk(text: str, tokens: int, size: int) -> Chunk:
    way: ChunkMethod = "structure" if tokens > size else "verbatim" if tokens < _SMALLEST else "model"
    return Chunk(text, tokens, way)
