"""Units of logs, diffs, delimited tables and code."""

import re
from collections.abc import Sequence

from pandora_dagster.documents.units.config_units import add_config
from pandora_dagster.documents.units.line_formats import FILE_HEAD, LineFormat, Stretch
from pandora_dagster.documents.units.record_units import RecordReader
from pandora_dagster.documents.units.source_lines import Line, filled, trimmed
from pandora_dagster.documents.units.unit import UnitKind
from pandora_dagster.documents.units.unit_builder import UnitBuilder

_ERROR = re.compile(
    r"^\s*(?:\w{1,80}\.){0,12}\w{0,80}(?:Error|Exception|Failure)\b[: ]"
    r"|^\W{0,40}(?:ERROR|FATAL|FAILED|E\d{3})\b|\b(?:ERROR|FATAL|CRITICAL)\b"
)
_MAX_WHOLE_CODE_CHARACTERS = 400
"""Characters up to which code is not divided at empty lines."""
_MAX_UNIT_LINES = 12
"""Lines after which a unit of code ends, and a hunk is divided at the next unchanged line."""
_FILE_LINE = re.compile(rf"--- |\+\+\+ |{FILE_HEAD}")


class LineReader:
    """Adds the units of stretches that are no prose."""

    def __init__(self, builder: UnitBuilder, records: RecordReader) -> None:
        self.builder, self.records = builder, records

    def read(self, stretch: Stretch, tool: str = "") -> None:
        """Add the units of a stretch; `tool` names the tool whose result it is."""
        self.builder.open_block()
        # the units of the line that introduces the stretch: its units need them
        label, self.builder.label = self.builder.label, ()
        if stretch.value:
            self.records.read(stretch.value, tool)
        elif stretch.format is LineFormat.LOG:
            self._log(stretch.lines)
        elif stretch.format is LineFormat.TRACE:
            self.code(stretch.lines, label)
        elif stretch.format is LineFormat.DIFF:
            self._diff(stretch.lines)
        elif stretch.format is LineFormat.CONFIG:
            add_config(self.builder, stretch.lines)
        elif stretch.format is LineFormat.COLUMNS:
            self._columns(stretch.lines, label)
        elif stretch.format is LineFormat.GRID:
            self._table(stretch.lines[0], stretch.lines[2:], label)
        elif stretch.format is LineFormat.TABLE:
            self._table(stretch.lines[0], stretch.lines[1:], label)
        else:
            self._listing(stretch.lines)

    def code(self, lines: Sequence[Line], needs: Sequence[int] = ()) -> None:
        """Add code, divided at empty lines where it is long, and after 12 lines always; a line that names an error is a unit of its own.

        `needs`: units, by their order, that each of these needs."""
        lines = trimmed(lines)
        whole = sum(len(line.text) for line in lines) <= _MAX_WHOLE_CODE_CHARACTERS
        held: list[Line] = []

        def close() -> None:
            if part := trimmed(held):
                self.builder.add_lines(UnitKind.CODE, part, needs)
            held.clear()

        for line in lines:
            is_error = bool(_ERROR.search(line.text[:400]))
            if is_error or len(held) == _MAX_UNIT_LINES or (line.is_blank and not whole):
                close()
            if is_error:
                self.builder.add_line(UnitKind.ERROR, line, needs)
            else:
                held.append(line)
        close()

    def _log(self, lines: Sequence[Line]) -> None:
        for line in filled(lines):
            self.builder.add_line(UnitKind.ERROR if _ERROR.search(line.text[:400]) else UnitKind.LOG, line)

    def _diff(self, lines: Sequence[Line]) -> None:
        """By hunk, signs kept; the lines that name the file are its header. A long hunk is divided before unchanged lines."""
        head_lines: list[Line] = []
        hunk: list[Line] = []
        header_units: tuple[int, ...] = ()

        def close() -> None:
            if hunk:
                self.builder.add_lines(UnitKind.HUNK, hunk, header_units)
                hunk.clear()

        for line in filled(lines):
            text = line.text
            # inside a hunk, "--- " before a space or nothing is a removed line ("+++ " an added one), not the name of a file
            if _FILE_LINE.match(text) and not (hunk and text.startswith(("--- ", "+++ ")) and not text[4:5].strip()):
                close()
                head_lines.append(line)
                continue
            if head_lines:
                header_units = (self.builder.add_lines(UnitKind.HEADER, head_lines),)
                head_lines = []
            if text.startswith("@@") or (len(hunk) >= _MAX_UNIT_LINES and text[:1] not in "+-" and hunk[-1].text[:1] in "+-"):
                close()
            hunk.append(line)
        close()
        if head_lines:
            self.builder.add_lines(UnitKind.HEADER, head_lines)

    def _table(self, head: Line, rows: Sequence[Line], needs: Sequence[int]) -> None:
        header = self.builder.add_line(UnitKind.HEADER, head, needs)
        for line in rows:
            self.builder.add_line(UnitKind.ROW, line, (header,))

    def _columns(self, lines: Sequence[Line], needs: Sequence[int]) -> None:
        """The first line is the header where it has no digit and the second has one."""
        has_header = not any(map(str.isdigit, lines[0].text)) and any(map(str.isdigit, lines[1].text))
        if has_header:
            needs = (self.builder.add_line(UnitKind.HEADER, lines[0], needs),)
        for line in lines[has_header:]:
            self.builder.add_line(UnitKind.ROW, line, needs)

    def _listing(self, lines: Sequence[Line]) -> None:
        """Add rows under their `# ` headers, without speaker or headings: the message before one in a shortened text may be another's."""
        header: tuple[int, ...] = ()
        speaker, self.builder.speaker = self.builder.speaker, ""
        with self.builder.without_context():
            for line in lines:
                if line.text.startswith("# "):
                    header = (self.builder.add_line(UnitKind.HEADER, line),)
                else:
                    self.builder.add_line(UnitKind.ROW, line, header)
        self.builder.speaker = speaker
