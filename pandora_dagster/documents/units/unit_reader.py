"""The one reader of documents: any text as units that are kept whole or left out, never cut.

Every character of substance is in a unit. A unit's text is what is at its place, hard-wrapped lines joined; a JSON record is a row
under its header. A "sentence" of more than 2,000 characters without any end is divided at white space. Linear in the text; no text raises.
"""

from collections.abc import Sequence

from pandora_dagster.documents.units.line_formats import LineFormat, divide_lines
from pandora_dagster.documents.units.line_units import LineReader
from pandora_dagster.documents.units.markdown_units import MarkdownReader
from pandora_dagster.documents.units.record_units import RecordReader
from pandora_dagster.documents.units.source_lines import Line, trimmed
from pandora_dagster.documents.units.talk_turns import turns
from pandora_dagster.documents.units.unit import Unit
from pandora_dagster.documents.units.unit_builder import UnitBuilder
from pandora_dagster.language.detection import language_of


def read_units(text: str, language: str = "") -> tuple[Unit, ...]:
    """The units of `text` in order; its language is detected where none is given."""
    reader = _Reader(text, language or language_of(text))
    reader.read()
    return tuple(reader.builder.units)


class _Reader:
    def __init__(self, text: str, language: str) -> None:
        self.text = text
        self.builder = UnitBuilder(text, language)
        self.records = RecordReader(self.builder)
        self.line_reader = LineReader(self.builder, self.records)
        self.markdown = MarkdownReader(self.builder, self.line_reader)

    def read(self) -> None:
        lines = self.builder.lines
        talk = turns(lines)
        speakers: list[tuple[int, int | None]] = []
        number = 0
        for turn in talk:
            number += bool(turn.label) or not all(line.is_blank for line in turn.lines)
            if turn.resumes >= 0:
                speakers.append(speakers[turn.resumes])
                self.builder.resume_message(speakers[-1][0], turn.label, speakers[-1][1])
            else:
                place = turn.start, turn.end
                unit = self.builder.open_message(number, turn.label, turn.text, *place, in_document=turn.in_document)
                speakers.append((number, unit))
            self._content(turn.lines, _tool_of(turn.label))
        if not talk:
            self._content(lines)

    def _content(self, lines: Sequence[Line], tool: str = "") -> None:
        for stretch in divide_lines(self.text, trimmed(lines)):
            if stretch.format is LineFormat.PROSE:
                self.markdown.read(stretch.lines)
            else:
                self.line_reader.read(stretch, tool)


def _tool_of(label: str) -> str:
    """The tool whose result a message is; "" for other messages."""
    role, _, name = label.partition(" ")
    return name if role.lower() in ("tool", "action") else ""
