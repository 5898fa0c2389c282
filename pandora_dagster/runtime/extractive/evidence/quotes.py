"""What was said, as one line: `(2026-01-04) Ann: One sentence.`; writes that form and reads it back.

`(2026-01-04, no longer current)` precedes what something newer contradicts.
"""

import re
from dataclasses import dataclass

from pandora_dagster.runtime.extractive.answer_templates import TEMPLATES

OUTDATED_MARK = f", {TEMPLATES['no_longer']}"
"""Follows the day of what no longer holds."""
_TOOL_PREFIX = "tool "
"""Precedes the name of a tool, in the place of a speaker."""
_DAY = rf"\d{{4}}-\d{{2}}-\d{{2}}(?:{re.escape(OUTDATED_MARK)})?"
_QUOTE_FORM = re.compile(rf"\(({_DAY})\) (?:([^\W\d_][\w .'-]{{0,30}}): )?(?=\S)")
_QUOTE_SEPARATOR = re.compile(rf"; (?=\({_DAY}\) )")


@dataclass(frozen=True, slots=True)
class Quote:
    """A quote that was read. `date`: its day, perhaps with OUTDATED_MARK; `speaker` and `tool` are "" where none is named."""

    date: str
    speaker: str
    tool: str
    text: str


def format_quote(text: str, *, date: str = "", speaker: str = "", tool: str = "") -> str:
    """`text` on one line, under date and speaker as far as these are known; what a tool gave under the tool's name."""
    line = " ".join(text.split())
    named = speaker or (_TOOL_PREFIX + tool if tool else "")
    said = f"{named}: {line}" if named else line
    return f"({date}) {said}" if date else said


def read_quote(text: str) -> Quote | None:
    """Undo `format_quote`; None where `text` has no date."""
    found = _QUOTE_FORM.match(text)
    if found is None:
        return None
    speaker = found.group(2) or ""
    tool = speaker.removeprefix(_TOOL_PREFIX) if speaker.startswith(_TOOL_PREFIX) else ""
    return Quote(found.group(1), "" if tool else speaker, tool, text[found.end() :])


def split_quotes(cell: str) -> list[str]:
    """The facts of a table cell that are joined by `; `: where the first has a date, each does."""
    return _QUOTE_SEPARATOR.split(cell) if _QUOTE_FORM.match(cell) else cell.split("; ")
