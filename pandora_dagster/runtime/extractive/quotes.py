"""What was said, as one line: `(2026-01-04) Ann: One sentence. Another.` Knows that form, writes it and reads it back.

`(2026-01-04, no longer current)` stands before what something newer contradicts.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from pandora_dagster.runtime.extractive.templates import TEMPLATES

GAP = " … "
"""Stands where a sentence between two was left out."""
OVER = f", {TEMPLATES['no_longer']}"
"""Follows the day of what no longer holds."""
TOOL = "tool "
"""Stands before the name of a tool where a speaker's stands otherwise."""
_DAY = rf"\((\d{{4}}-\d{{2}}-\d{{2}}(?:{OVER})?)\) "
_FORM = re.compile(rf"{_DAY}(?:([^\W\d_][\w .'-]{{0,30}}): )?(?=\S)")
_DATED = re.compile(_DAY)
_NEXT = re.compile(rf"; (?=\(\d{{4}}-\d{{2}}-\d{{2}}(?:{OVER})?\) )")
_ENDED = re.compile(r"[.!?…:;,][\"')\]]*$|[^\w\"')\]]$")


@dataclass(frozen=True, slots=True)
class Quote:
    """A quote that was read; `parts` are what stood together without a gap, `speaker` is "" where none is named."""

    date: str
    speaker: str
    parts: tuple[str, ...]
    tool: str = ""
    """The tool that gave it, in a speaker's place."""


class Said(Protocol):
    """A sentence with its place among others."""

    @property
    def text(self) -> str: ...
    @property
    def speaker(self) -> str: ...
    @property
    def tool(self) -> str: ...
    @property
    def date(self) -> str: ...
    @property
    def place(self) -> int: ...


def quote(sentences: Sequence[Said]) -> str:
    """Sentences of one speaker of one day, in their order, under date and name as far as these are known; what a tool gave under
    the tool's."""
    ordered = sorted(sentences, key=lambda s: s.place)
    first = ordered[0]
    line = _line(first.text)
    for before, sentence in pairwise(ordered):
        line = _ended(line) + (" " if sentence.place == before.place + 1 else GAP) + _line(sentence.text)
    speaker = first.speaker or (TOOL + first.tool if first.tool else "")
    said = f"{speaker}: {_ended(line)}" if speaker else line
    return f"({first.date}) {said}" if first.date else said


def read_quote(text: str) -> Quote | None:
    """Undo `quote`; None where `text` is none."""
    found = _FORM.match(text)
    if found is None:
        return None
    speaker, parts = found.group(2) or "", tuple(text[found.end() :].split(GAP))
    tool = speaker.removeprefix(TOOL) if speaker.startswith(TOOL) else ""
    return Quote(found.group(1), "" if tool else speaker, parts, tool)


def split_quotes(cell: str) -> list[str]:
    """The facts of a table cell that are joined by `; `: where the first bears its date, each does."""
    return _NEXT.split(cell) if _DATED.match(cell) else cell.split("; ")


def _line(text: str) -> str:
    return " ".join(text.split())


def _ended(line: str) -> str:
    return line if _ENDED.search(line) else f"{line}."
