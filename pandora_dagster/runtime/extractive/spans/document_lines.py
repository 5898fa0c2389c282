"""A paragraph's lines: list items with their points, table rows, section and tool headings. Knows lines; nothing of labels."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from pandora_dagster.contracts.enums import SECTION_TITLES
from pandora_dagster.runtime.extractive.words.answer_templates import TEMPLATES

# What was said, as one line: `(2026-01-04) Ann: One sentence. Another.` Knows that form, writes it and reads it back. `(2026-01-04,
# no longer current)` stands before what something newer contradicts.

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


class SpokenLine(Protocol):
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


def quote(sentences: Sequence[SpokenLine]) -> str:
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


RULE = re.compile(r"^[\s|:*_=-]*$")
_BULLET = re.compile(r"^(\s*)(?:[-*+•]|\d{1,3}[.)])\s+(.*)$")
_SECTION = re.compile(rf"^[0-6]\. (?:{'|'.join(SECTION_TITLES.values())}): ")
_TOOL_HEAD = re.compile(r"^Result \d+: [\w.]+$|^Result:$|^(?:\*\*)?Arguments:(?:\*\*)?(?:\s|$)|^\*\*Status:\*\* ")
_RESULT_OF = re.compile(r"^Result \d+: ([\w.]+)$")
_TURN_CELL = re.compile(r"^(\d{1,9})(?: \[\d{1,4}\]| \(unlinked\))?$")
_FIGURES = re.compile(r"^\*\*(?:Topic|Quality Score|Age|Expires|Expired|Top Results):\*\*")
_SUMMARY = re.compile(r"^\*\*Summary:\*\* ")
_SCALE = frozenset(("high", "medium", "low"))


def plain(line: str) -> str:
    """A line without its list mark, quotation mark and the section title that an excerpt puts before it."""
    bare = _SUMMARY.sub("", _SECTION.sub("", line.strip()))
    found = _BULLET.match(bare)
    return (found.group(2) if found else bare).strip().lstrip(">").strip()


def said_by_person(line: str, *, before: bool) -> bool:
    """Whether a quoted turn's line is of its query: the title of a section decides for the lines that follow; `before` is that so far."""
    found = _SECTION.match(line.strip())
    return found.group().startswith("0.") if found else before


def given_by_tool(line: str, *, before: str) -> str:
    """The tool whose result a quoted turn's line belongs to: a result's heading names it, the title of a section ends it."""
    section = _SECTION.match(line.strip())
    found = _RESULT_OF.match(_SECTION.sub("", line.strip()))
    return found.group(1) if found else "" if section else before


def frames(line: str) -> bool:
    """Whether a line only frames what follows (a tool result's heading, status, arguments; the figures of cached research)."""
    bare = _SECTION.sub("", line.strip())
    return bool(_TOOL_HEAD.match(bare) or _FIGURES.match(bare))


def items(lines: list[str]) -> list[list[str]]:
    """The lines of a paragraph; the indented points below a point go with it."""
    found: list[list[str]] = []
    for line in lines:
        point = _BULLET.match(line)
        if point and point.group(1) and found and _BULLET.match(found[-1][0]):
            found[-1].append(line)
        elif line.strip():
            found.append([line])
    return found


def is_table(lines: list[str]) -> bool:
    """Whether the paragraph is a Markdown table."""
    return len(lines) > 1 and lines[0].lstrip().startswith("|") and bool(RULE.match(lines[1]))


def cells(line: str) -> list[str]:
    """The cells of a table row, unescaped."""
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [c.replace("\\|", "|").strip() for c in re.split(r"(?<!\\)\|", inner)]


def is_page_table(header: list[str]) -> bool:
    """Whether the rows of a table are fields of visited pages: address, name, value."""
    return header[:3] == ["URL", "Data Point", "Value"]


def turn_of(row: list[str]) -> int | None:
    """The turn number that stands in a row's first cell."""
    found = _TURN_CELL.match(row[0]) if row else None
    return int(found.group(1)) if found else None


def told(header: list[str], row: list[str]) -> list[str]:
    """A row of section 2 as its facts, as `key: value` or as its claim; of another table as `column: value` pairs."""
    if "Key Facts" in header:
        kept = [c for c in row if c and not _TURN_CELL.match(c) and c.lower() not in _SCALE]
        return [fact for cell in kept for part in split_quotes(cell) if (fact := part.strip())]
    if header[:2] == ["Preference", "Value"] and len(row) > 1:
        return [f"{row[0]}: {row[1]}"]
    if header[:1] == ["Claim"] and row:
        return [row[0]]
    return [line] if (line := ", ".join(f"{h}: {c}" for h, c in zip(header, row, strict=False) if c)) else []
