"""Collection of the units of one text, with what holds for all that follow: message, speaker, headings, block."""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager

from pandora_dagster.documents.units.sentence_places import sentence_places
from pandora_dagster.documents.units.source_lines import JoinedLines, Line
from pandora_dagster.documents.units.unit import Unit, UnitKind

_NEAREST_HEADINGS = 3


class UnitBuilder:
    """Adds units in the order of the text."""

    def __init__(self, source: str, language: str) -> None:
        self.source, self.language = source, language
        self.units: list[Unit] = []
        self.message, self.speaker, self.block = 0, "", 0
        self._speaker: tuple[int, ...] = ()
        self._headings: list[tuple[int, int]] = []  # level, unit

    def open_message(self, speaker: str, start: int, end: int, text: str = "") -> None:
        """Begin a message; what follows is that speaker's."""
        self.message += 1
        self.speaker, self._speaker, self._headings = speaker, (), []
        self.block += 1
        if speaker:
            self._speaker = (self.add(UnitKind.SPEAKER, text or f"{speaker}:", start, end),)

    def open_heading(self, level: int, text: str, start: int, end: int) -> None:
        """Begin a section; what follows needs its heading and the nearest ones above it."""
        self._headings = [heading for heading in self._headings if heading[0] < level]
        self.block += 1
        self._headings.append((level, self.add(UnitKind.HEADING, text, start, end, level=level)))
        self.block += 1

    def open_block(self) -> None:
        self.block += 1

    @property
    def context(self) -> tuple[int, ...]:
        """Speaker and headings of what comes next."""
        return (*self._speaker, *(unit for _, unit in self._headings[-_NEAREST_HEADINGS:]))

    @contextmanager
    def without_context(self) -> Generator[None]:
        """Units that carry their own context, such as rows under a header of another message."""
        kept = self._speaker, self._headings
        self._speaker, self._headings = (), []
        yield
        self._speaker, self._headings = kept

    def add(
        self, kind: UnitKind, text: str, start: int, end: int, needs: Iterable[int] = (), *, level: int = 0, block: int | None = None
    ) -> int:
        """The number of the new unit."""
        order = len(self.units)
        needed = tuple(sorted(n for n in {*self.context, *needs} if n < order))
        self.units.append(
            Unit(order, kind, text, start, end, needed, self.message, self.speaker, self.block if block is None else block, level)
        )
        return order

    def add_line(self, kind: UnitKind, line: Line, needs: Iterable[int] = (), *, level: int = 0) -> int:
        """A line as it stands."""
        bare = line.stripped()
        return self.add(kind, line.text.rstrip(), bare.start, bare.end, needs, level=level)

    def add_lines(self, kind: UnitKind, lines: Sequence[Line], needs: Iterable[int] = ()) -> int:
        """Lines that are one unit."""
        return self.add(kind, "\n".join(line.text.rstrip() for line in lines), lines[0].start, lines[-1].end, needs)

    def add_sentences(self, kind: UnitKind, lines: Iterable[Line], needs: Iterable[int] = (), *, level: int = 0) -> list[int]:
        """The sentences of lines that belong together."""
        joined = JoinedLines(lines)
        return [
            self.add(kind, joined.text[start:end], joined.place(start), joined.place(end - 1) + 1, needs, level=level)
            for start, end in sentence_places(joined.text, self.language)
        ]

    def add_joined(self, kind: UnitKind, lines: Iterable[Line], needs: Iterable[int] = (), *, level: int = 0) -> None:
        """Lines that belong together as one unit."""
        joined = JoinedLines(lines)
        if joined.text:
            self.add(kind, joined.text, joined.place(0), joined.place(len(joined.text) - 1) + 1, needs, level=level)
