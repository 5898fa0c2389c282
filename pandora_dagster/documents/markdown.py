"""Markdown tables, code fences and escaping of quoted text: no content can end its cell, its fence or its quotation."""

import re
from collections.abc import Iterable, Sequence

from pandora_dagster.contracts.enums import SECTION_TITLES

_FENCE_MARKS = re.compile(r"`{3,}")


def code_fence(text: str, language: str = "") -> str:
    """`text` in a fence longer than any fence inside it."""
    longest_run = max((len(run) for run in _FENCE_MARKS.findall(text)), default=2)
    fence = "`" * (longest_run + 1)
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


_PACK_LINE = re.compile(
    rf"^(?=[=]{{5}}|[^\S\n]*[0-6]\. (?:{'|'.join(SECTION_TITLES.values())}): |Speakers: |\[\d{{1,4}}\] Turn \d+ \()", re.MULTILINE
)
"""The beginnings of lines that a prompt pack writes itself: source headers, number and title before a quoted section, the speakers'
line, the first line of a quoted turn."""


def escape_pack_lines(text: str) -> str:
    """`text` with a backslash before each line that looks like one that a prompt pack writes itself."""
    return _PACK_LINE.sub(r"\\", text)
