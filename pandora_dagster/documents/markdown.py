"""Markdown tables: cells that can not break out of their row."""

import re
from collections.abc import Iterable, Sequence

from pandora_dagster.contracts.enums import SECTION_TITLES

# Code fences that what they hold can not close.

_TICKS = re.compile(r"`{3,}")


def code_fence(text: str, language: str = "") -> str:
    """`text` in a fence longer than any fence inside it."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def cell(value: object) -> str:
    """`value` as a table cell: one line, bars escaped; lists joined by commas."""
    text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - any list prints
    return " ".join(text.split()).replace("|", "\\|")


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; every row must have as many cells as there are headers."""
    lines = [f"| {' | '.join(headers)} |", f"|{'---|' * len(headers)}"]
    for row in rows:
        lines.append("| " + " | ".join(cell(value) for value, _ in zip(row, headers, strict=True)) + " |")
    return "\n".join(lines)


# Stored text as a pack quotes it: no line of it can pass for a line that the pack itself writes. Knows these lines; knows no packs.

_OWN = re.compile(
    rf"^(?=={{5}}|[^\S\n]*[0-6]\. (?:{'|'.join(SECTION_TITLES.values())}): |Speakers: |\[\d{{1,4}}\] Turn \d+ \()", re.MULTILINE
)
"""Headers of sources, the leads of a turn's pieces, the line that names its speakers, a quoted turn's first line."""


def escape_pack_lines(text: str) -> str:
    """`text` with a backslash before each line that would begin something: a source, a section, a speaker, another turn."""
    return _OWN.sub(r"\\", text)
