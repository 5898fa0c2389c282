"""Markdown tables: cells that can not break out of their row."""

from collections.abc import Iterable, Sequence


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
