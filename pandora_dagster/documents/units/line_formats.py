"""Formats that are known by their lines: logs, diffs, delimited tables. A text is divided into stretches of one format each."""

import csv
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from pandora_dagster.documents.units.config_units import config_end
from pandora_dagster.documents.units.json_scanner import JsonValue, scan_json
from pandora_dagster.documents.units.source_lines import Line

RunEnd = tuple[int, bool]
"""Where a run of lines ends, and whether it is a stretch of the format."""


class LineFormat(StrEnum):
    """How a stretch of lines is read."""

    PROSE = "prose"
    LOG = "log"
    DIFF = "diff"
    TRACE = "trace"
    GRID = "grid"
    """A table of Markdown: its second line divides the header from the rows."""
    TABLE = "table"
    COLUMNS = "columns"
    CONFIG = "config"
    JSON = "json"
    LISTING = "listing"
    """A table as this program writes it: `# column | column`, then rows."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Lines of one format; `value` is what a stretch of JSON holds."""

    format: LineFormat
    lines: Sequence[Line]
    value: JsonValue | None = None


_STAMP = re.compile(
    r"\s{0,8}[\[(<]?"
    r"(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d{4}/\d\d/\d\d \d\d:|\d\d:\d\d:\d\d[ .,\]]|\w{3} +\d{1,2} \d\d:\d\d:|\d{1,2}/\w{3}/\d{4}:)"
)
_DIFF_START = re.compile(r"diff --git |Index: |--- \S|@@ -\d")
FILE_HEAD = "diff |index |new file|deleted file|similarity|rename |old mode|new mode|Index: |==="
"""How a line begins that names a file of a diff, or says what became of it."""
_DIFF_LINE = re.compile(rf"[-+ @\\]|{FILE_HEAD}|$")
_DELIMITERS = (",", ";", "\t")
_EXCEPTION_LINE, _FRAME_LINE = (
    re.compile(r"\s*(?:Exception in|Caused by:|(?:\w{1,80}\.){0,12}\w{0,80}(?:Error|Exception))\b"),
    re.compile(r"\s+at \S"),
)
_FENCE = re.compile(r"[ >]{0,12}(?:```|~~~)")
_CLOSING_FENCE = re.compile(r"[ >]{0,12}(?:`{3,}|~{3,})\s*")
_JSON = re.compile(
    r"(?:[\[(*]?(?:calls? |tool call:? )?(?P<call>[A-Za-z_][\w.-]{0,60})[ (](?=\{)|[^{\[\n]{0,80}: ?)?"
    r"[ \t]{0,80}(?=[{\[]\s{0,80}[\"{\[\]}\d-])"
)
"""At the start of a line, perhaps behind a label or the name of a tool."""
_CALL_CLOSING = re.compile(r"[)\]*]{0,3}")
_INLINE_JSON, _LINE_REMAINDER = (
    re.compile(r"(?<=\s)[\[{]\s{0,3}(?:\{\s{0,3})?\"(?=[\w-]{1,60}\":)"),
    re.compile(r"[^\w\n]{0,8}$", re.MULTILINE),
)
_VALUE_SEPARATOR = re.compile(r"[\s,]{0,80}(?=[{\[])")
_MAX_INLINE_JSON_CHARACTERS = 12
_COLUMN_GAP = re.compile(r"(?<=[^\s.!?:•*-])(?: {3,}|\t| {2,}(?=\d))(?=\S)")
_MAX_GAP_CHARACTERS = 400
"""Characters of a line in which gaps are counted."""
_PROSE = re.compile(r"(?!diff |Exception in|\S*(?:Error|Exception)\b)[^\W\d_](?:[^\t|:;, ]|,? (?=\S))*")
"""A line that begins no other format."""
_GRID_RULE = re.compile(r"[ >]{0,12}\|?[ \t]*:?-+:?[ \t]*+(?:\|[ \t]*:?-+:?[ \t]*+)*\|?[ \t]*")
_LONG_RUN_LINES = 50
"""A run of more lines that is no stretch of a format is not tried again from its later lines."""
_MIN_ROWS, _MAX_RULE_CHARACTERS = 3, 2_000
_MAX_CELL_CHARACTERS = 300
_MIN_FITTING_ROWS = 0.8
"""Share of the lines of a table that must have the width of the first one."""


def divide_lines(source: str, lines: Sequence[Line]) -> list[Stretch]:
    """The lines of `source` in order, divided into stretches; a fence that nothing closes is none."""
    return _LineDivider(source, lines).divide()


class _LineDivider:
    """Reads the lines from the first to the last: lines of prose are collected until a stretch of another format begins."""

    def __init__(self, source: str, lines: Sequence[Line]) -> None:
        self.source, self.lines = source, list(lines)
        self.stretches: list[Stretch] = []
        self.prose: list[Line] = []
        self.json_read_until = -1  # no JSON value begins before this character
        self.tried_until: dict[LineFormat, int] = {}  # no stretch of the format begins before this line

    def divide(self) -> list[Stretch]:
        at = 0
        closers = [i for i, line in enumerate(self.lines) if _CLOSING_FENCE.fullmatch(line.text)]
        while at < len(self.lines):
            line = self.lines[at]
            if line.is_blank:
                self.prose.append(line)
                at += 1
            elif _FENCE.match(line.text):
                next_closer = bisect_right(closers, at)
                closer = closers[next_closer] if next_closer < len(closers) else at
                self.prose += self.lines[at : closer + 1] if closer > at else []
                at = closer + 1
            elif values := self._json_values(line):
                for value in values:
                    at = self._add_json(at, value)
            elif not _PROSE.fullmatch(line.text) and (stretch := self._formatted_stretch(at)):
                self._close_prose()
                self.stretches.append(stretch)
                at += len(stretch.lines)
            else:
                self.prose.append(line)
                at += 1
        self._close_prose()
        return self.stretches

    def _close_prose(self) -> None:
        if self.prose:
            self.stretches.append(Stretch(LineFormat.PROSE, self.prose))
            self.prose = []

    def _json_values(self, line: Line) -> list[JsonValue]:
        """The values that begin in this line, and those that follow them without words between."""
        if "{" not in line.text and "[" not in line.text:
            return []
        begin = _JSON.match(self.source, line.start)
        if not begin:
            return self._json_at_line_end(line)
        if begin.end() < self.json_read_until:
            return []
        values: list[JsonValue] = []
        start: int | None = begin.end()
        while start is not None:
            value, whole, end = scan_json(self.source, start, self.lines[-1].end)
            values += [value] if value else whole
            self.json_read_until = end
            if value and begin["call"]:
                value.call, value.name_start = begin["call"], begin.start()
                closing = _CALL_CLOSING.match(self.source, end)
                value.end = closing.end() if closing else end
                break
            following = _VALUE_SEPARATOR.match(self.source, end, self.lines[-1].end) if value else None
            start = following.end() if following else None
        return [v for v in values if v.value and (v.call or v.end - v.start > _MAX_INLINE_JSON_CHARACTERS)]

    def _json_at_line_end(self, line: Line) -> list[JsonValue]:
        """The value behind the words of this line, where nothing follows it."""
        begin = _INLINE_JSON.search(self.source, line.start, line.end)
        if not begin or begin.start() < self.json_read_until:
            return []
        value, _, self.json_read_until = scan_json(self.source, begin.start(), self.lines[-1].end)
        following = _LINE_REMAINDER.match(self.source, self.json_read_until)
        return [value] if value and value.value and following else []

    def _add_json(self, at: int, value: JsonValue) -> int:
        """Add the text before a value as prose, and the value. Returns the line to read next; what follows the value in its last line is a
        line of its own."""
        while self.lines[at].end <= value.start:
            self.prose.append(self.lines[at])
            at += 1
        before = self.source[self.lines[at].start : value.start_with_name]
        if any(map(str.isalnum, before)):
            self.prose.append(Line(before, self.lines[at].start))
        self._close_prose()
        self.stretches.append(Stretch(LineFormat.JSON, (), value=value))
        while self.lines[at].end < value.end:
            at += 1
        line = self.lines[at]
        self.lines[at] = Line(self.source[value.end : line.end], value.end)
        return at if any(map(str.isalnum, self.lines[at].text)) else at + 1

    def _formatted_stretch(self, at: int) -> Stretch | None:
        """The stretch that begins in this line. A long run that was tried in vain is not tried again from its later lines."""
        for line_format, find_end in _END_FINDERS.items():
            if at < self.tried_until.get(line_format, 0):
                continue
            end, is_stretch = find_end(self.lines, at)
            if is_stretch:
                return Stretch(line_format, self.lines[at:end])
            if end - at > _LONG_RUN_LINES:
                self.tried_until[line_format] = end
        return None


def _trace_end(lines: Sequence[Line], at: int) -> RunEnd:
    """The frames of an exception, with the line that names it before or behind them."""
    text = lines[at].text
    is_python = text.lstrip().startswith("Traceback (most recent call last):")
    if not is_python and not (_EXCEPTION_LINE.match(text) and at + 1 < len(lines) and _FRAME_LINE.match(lines[at + 1].text)):
        return at, False
    end = at + 1
    while end < len(lines) and not lines[end].is_blank and (lines[end].text[:1] in " \t" or lines[end].text.startswith("Caused by:")):
        end += 1
    if is_python and end < len(lines) and not lines[end].is_blank:
        end += 1
    return end, True


def _grid_end(lines: Sequence[Line], at: int) -> RunEnd:
    if "|" not in lines[at].text or at + 1 == len(lines) or not _GRID_RULE.fullmatch(lines[at + 1].text[:_MAX_RULE_CHARACTERS]):
        return at, False
    if lines[at].text.strip(" >|").count("|") != lines[at + 1].text.strip(" >|").count("|"):
        return at, False
    return _run_end(lines, at, lambda line: "|" in line.text), True


def _listing_end(lines: Sequence[Line], at: int) -> RunEnd:
    if not lines[at].text.startswith("# ") or " | " not in lines[at].text:
        return at, False
    end = _run_end(lines, at, lambda line: " | " in line.text)
    return end, end - at > 1


def _config_end(lines: Sequence[Line], at: int) -> RunEnd:
    return config_end(lines, at, is_first=not lines[at].start)


def _run_end(lines: Sequence[Line], at: int, belongs: Callable[[Line], bool]) -> int:
    while at < len(lines) and belongs(lines[at]):
        at += 1
    return at


def _log_end(lines: Sequence[Line], at: int) -> RunEnd:
    """Two or more lines with a time at their start, with the indented lines between them."""
    end, stamped_lines, stretch_end = at, 0, at
    if not _STAMP.match(lines[at].text):
        return at, False
    while end < len(lines):
        if _STAMP.match(lines[end].text):
            stamped_lines += 1
            stretch_end = end + 1
        elif not (lines[end].text.startswith((" ", "\t")) and not lines[end].is_blank) and end - stretch_end > 1:
            break
        end += 1
    return stretch_end, stamped_lines > 1


def _diff_end(lines: Sequence[Line], at: int) -> RunEnd:
    """From a file's or hunk's head to the first line that begins like none of a diff."""
    end = at
    if not _DIFF_START.match(lines[at].text):
        return at, False
    signs = heads = 0
    while end < len(lines) and _DIFF_LINE.match(lines[end].text):
        if lines[end].is_blank and not (end + 1 < len(lines) and lines[end + 1].text[:1] in ("+", "-", "@", " ", "d")):
            break
        signs += lines[end].text.startswith(("+", "-"))
        heads += lines[end].text.startswith(("@@", "+++ ", "diff "))
        end += 1
    return end, heads > 0 and signs > 0


def _table_end(lines: Sequence[Line], at: int) -> RunEnd:
    """Three or more lines with as many cells each; lines whose quoting is broken are single rows of it."""
    first, farthest = lines[at].text, at
    for mark in _DELIMITERS:
        count = first.count(mark)
        if count < 2 or ". " in first or (mark != "\t" and f"{mark} " in first and first.count(f"{mark} ") == count):
            continue
        fits = partial(_may_be_row, mark=mark, count=count)
        end = _run_end(lines, at, fits)
        farthest = max(farthest, end)
        if end - at >= _MIN_ROWS:
            width = len(cells_of(first, mark))
            fitting = sum(len(cells_of(line.text, mark)) == width for line in lines[at:end])
            if fitting >= _MIN_FITTING_ROWS * (end - at):
                return end, True
    return farthest, False


def _columns_end(lines: Sequence[Line], at: int) -> RunEnd:
    """Lines with as many wide gaps each, as commands print tables. Of an indented block, which is literal text, all lines have them."""
    gaps = len(_COLUMN_GAP.findall(lines[at].text[:_MAX_GAP_CHARACTERS]))
    if not gaps or lines[at].text.lstrip().startswith("|"):
        return at, False
    end = _run_end(lines, at, lambda line: len(_COLUMN_GAP.findall(line.text[:_MAX_GAP_CHARACTERS])) >= min(gaps, 2))
    is_whole = not lines[at].indent or end == len(lines) or lines[end].is_blank
    return end, is_whole and end - at >= (2 if gaps > 1 else _MIN_ROWS)


def _may_be_row(line: Line, mark: str, count: int) -> bool:
    return line.text.count(mark) >= count and len(line.text) < count * _MAX_CELL_CHARACTERS


_END_FINDERS: dict[LineFormat, Callable[[Sequence[Line], int], RunEnd]] = {
    LineFormat.LOG: _log_end,
    LineFormat.DIFF: _diff_end,
    LineFormat.TRACE: _trace_end,
    LineFormat.GRID: _grid_end,
    LineFormat.LISTING: _listing_end,
    LineFormat.CONFIG: _config_end,
    LineFormat.TABLE: _table_end,
    LineFormat.COLUMNS: _columns_end,
}


def cells_of(line: str, mark: str) -> list[str]:
    """The cells of one row; a row with broken quoting is divided at its marks."""
    try:
        cells = next(csv.reader([line], delimiter=mark, strict=True), [line])
    except csv.Error:
        cells = line.split(mark)
    return [" ".join(cell.split()) for cell in cells]
