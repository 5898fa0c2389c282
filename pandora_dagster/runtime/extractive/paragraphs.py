"""A paragraph's lines: list items with their points, table rows, section and tool headings. Knows lines; nothing of labels."""

import re

from pandora_dagster.contracts.words import SECTION_TITLES
from pandora_dagster.runtime.extractive.quotes import split_quotes

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
    if header[1:3] == ["Data Point", "Value"] and len(row) > 2:
        return [f"{row[0]} {row[1]}: {row[2]}"]
    if header[:1] == ["Claim"] and row:
        return [row[0]]
    return [line] if (line := ", ".join(f"{h}: {c}" for h, c in zip(header, row, strict=False) if c)) else []
