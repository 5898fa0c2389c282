"""Collects the units of one text, each with the message, speaker, headings and block that it is in."""

import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager

from pandora_dagster.documents.units.sentence_places import sentence_places
from pandora_dagster.documents.units.source_lines import JoinedLines, Line, LineLayout, lines_of
from pandora_dagster.documents.units.unit import Unit, UnitKind

_MAX_HEADINGS = 3
"""The nearest headings that a unit needs."""
_SUBSTANCE = re.compile(r"[^\s!-/:-@\[-`{-~—–…·•]")
"""Any sign but punctuation: lines that consist of marks say nothing."""


class UnitBuilder:
    """Adds units in the order of the text."""

    def __init__(self, source: str, language: str) -> None:
        self.source, self.language = source, language
        self.lines = lines_of(source)
        self.layout = LineLayout(self.lines)
        self.units: list[Unit] = []
        self.message, self.speaker, self.block = 0, "", 0
        self.fence = ""
        """The line that opens the fence around what is read now; "" outside."""
        self.label: tuple[int, ...] = ()
        """Units of the line that introduces what comes next, such as `Steps:`."""
        self._speaker: int | None = None
        self._headings: list[tuple[int, int]] = []  # level, unit
        self._context: tuple[int, ...] = ()
        """Speaker and headings of what comes next."""

    def open_message(self, number: int, speaker: str, text: str, start: int, end: int, *, in_document: bool = False) -> int | None:
        """Begin a message; what follows is that speaker's. The unit of the speaker is returned."""
        self.resume_message(number, speaker, None, in_document=in_document)
        unit = self.add(UnitKind.SPEAKER, text, start, end) if speaker else None
        self._open(unit, self._headings)
        return unit

    def resume_message(self, number: int, speaker: str, unit: int | None, *, in_document: bool = False) -> None:
        """Go on with an earlier message, whose speaker is that unit; the headings before it hold on where they are the document's."""
        self.message, self.speaker = number, speaker
        self._open(unit, self._headings if in_document else [])
        self.block += 1

    def open_heading(self, level: int, text: str, start: int, end: int) -> None:
        """Begin a section; what follows needs its heading and the nearest ones above it."""
        above = [heading for heading in self._headings if heading[0] < level]
        self._open(self._speaker, above)
        self.block += 1
        self._open(self._speaker, [*above, (level, self.add(UnitKind.HEADING, text, start, end, level=level))])
        self.block += 1

    def open_block(self) -> None:
        self.block += 1

    def _open(self, speaker: int | None, headings: list[tuple[int, int]]) -> None:
        self._speaker, self._headings, self.label = speaker, headings, ()
        above = [unit for _, unit in headings[-_MAX_HEADINGS:]]
        self._context = tuple(sorted(above if speaker is None else [speaker, *above]))

    @contextmanager
    def without_context(self) -> Generator[None]:
        """Units that carry their own context, such as rows under a header of another message."""
        speaker, headings = self._speaker, self._headings
        self._open(None, [])
        yield
        self._open(speaker, headings)

    def add(
        self, kind: UnitKind, text: str, start: int, end: int, needs: Iterable[int] = (), *, level: int = 0, block: int | None = None
    ) -> int:
        """The number of the new unit."""
        order = len(self.units)
        needed = tuple(sorted({*self._context, *needs})) if needs else self._context
        self.units.append(
            Unit(
                order, kind, text, start, end, needed, self.message, self.speaker, self.block if block is None else block, level, self.fence
            )
        )
        return order

    def add_line(self, kind: UnitKind, line: Line, needs: Iterable[int] = (), *, level: int = 0) -> int:
        """A line, unchanged."""
        bare = line.stripped()
        return self.add(kind, line.text.rstrip(), bare.start, bare.end, needs, level=level)

    def add_lines(self, kind: UnitKind, lines: Sequence[Line], needs: Iterable[int] = ()) -> int:
        """Lines that are one unit."""
        return self.add(kind, "\n".join(line.text.rstrip() for line in lines), lines[0].start, lines[-1].end, needs)

    def add_sentences(self, kind: UnitKind, lines: Iterable[Line], needs: Iterable[int] = (), *, level: int = 0) -> list[int]:
        """The sentences of lines that belong together."""
        joined = JoinedLines(lines, self.layout)
        return [
            self.add(kind, joined.shown[start:end], joined.place(start), joined.place(end - 1) + 1, needs, level=level)
            for start, end in sentence_places(joined.text, self.language)
            if _SUBSTANCE.search(joined.text, start, end)
        ]

    def add_joined(self, kind: UnitKind, lines: Iterable[Line], needs: Iterable[int] = (), *, level: int = 0) -> int | None:
        """Lines that belong together as one unit; None where they are empty."""
        joined = JoinedLines(lines, self.layout)
        if not _SUBSTANCE.search(joined.text):
            return None
        return self.add(kind, joined.shown, joined.place(0), joined.place(len(joined.text) - 1) + 1, needs, level=level)
