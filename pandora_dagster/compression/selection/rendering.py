"""The text of the units that are kept, each on lines of its own: in order, tables under their header, marks where units are left out."""

from collections.abc import Collection, Mapping, Sequence

from pandora_dagster.compression.selection.omission_marks import Omission, omission_mark
from pandora_dagster.documents.units.unit import Unit, UnitKind

_TABLE = (UnitKind.ROW, UnitKind.HEADER)
_SETS = (UnitKind.ROW, UnitKind.ITEM)
"""Kinds whose units do not follow from each other: what is left out of a table or list is marked after the last of them."""
_BETWEEN_COUNTS = 1_000
"""Characters from one count to the next, so that counts take about a fiftieth of a text."""


def render(units: Sequence[Unit], kept: Collection[int], earlier: Mapping[int, Sequence[Omission]] | None = None) -> str:
    """The kept units as text. `earlier`: what earlier compressions left out before each unit."""
    page = _Page(earlier or {})
    for unit in table_order(units):
        page.write(unit) if unit.order in kept else page.skip(unit)
    return page.text(len(units))


def table_order(units: Sequence[Unit]) -> list[Unit]:
    """The units in order, but the rows of a table follow its header, wherever they were."""
    first: dict[int, int] = {}
    keys: list[tuple[int, int]] = []
    for unit in units:
        place = first.setdefault(unit.block, unit.order) if unit.kind in _TABLE else unit.order
        keys.append((place, unit.order))
    return [u for _, u in sorted(zip(keys, units, strict=True), key=lambda pair: pair[0])]


def _labels(before: Unit, unit: Unit) -> bool:
    """Whether a speaker's name is on the line of his first unit: `Ann: ...`; the head of a mail is on a line of its own."""
    return before.kind is UnitKind.SPEAKER and before.text.rstrip("*").endswith(":") and unit.kind is not UnitKind.HEADER


class _Page:
    """Lines as they are written, and how much was left out before each."""

    def __init__(self, earlier: Mapping[int, Sequence[Omission]]) -> None:
        self._lines: list[str] = []
        self._gaps: dict[int, int] = {}
        """Line -> units left out before it."""
        self._begun = 0
        """The line with which the last paragraph, list or table begins."""
        self._earlier = earlier
        self._gap = 0
        self._kinds: set[UnitKind] = set()
        self._before: Unit | None = None

    def skip(self, unit: Unit) -> None:
        self._recall(unit.order)
        if not unit.is_context:
            self._leave(1, unit.kind)

    def write(self, unit: Unit) -> None:
        self._recall(unit.order)
        before = self._before
        self._before = unit
        inside = before is not None and unit.kind in _SETS and before.kind in (unit.kind, UnitKind.HEADER) and before.block == unit.block
        is_gap = self._gap > 0 and not unit.is_context and not inside
        if before and before.message == unit.message and _labels(before, unit):
            self._lines[-1] += f" {unit.text}"
        else:
            self._lines.append(unit.text)
        if unit.kind is not UnitKind.HEADING and not (before and before.block == unit.block):
            self._begun = len(self._lines) - 1
        if is_gap:
            self._gaps[len(self._lines) - 1] = self._gap
            self._gap = 0
        if unit.kind is UnitKind.HEADER and unit.text.startswith("|") and "\n" not in unit.text:
            self._lines.append("|" + "---|" * (unit.text.strip().strip("|").count("|") + 1))

    def text(self, end: int) -> str:
        """All lines, an empty one at each gap. A count is of what is left out since the count before it; the last one also counts what
        follows it, and is alone on a line only behind a table of Markdown, which it would break."""
        self._recall(end)
        if self._gap and not self._gaps and self._lines and not self._lines[self._begun].startswith("|"):
            self._gaps[self._begun] = 0
        last = max(self._gaps, default=-1)
        waiting = written = 0
        kind = next(iter(self._kinds)) if len(self._kinds) == 1 else UnitKind.SENTENCE
        is_first = True
        lines: list[str] = []
        for place, line in enumerate(self._lines):
            prefix = ""
            if place in self._gaps:
                waiting += self._gaps[place] + (self._gap if place == last else 0)
                prefix = "\n" if self._gaps[place] and place else ""
                if written >= _BETWEEN_COUNTS or place == last:
                    prefix += f"{omission_mark(waiting, kind, is_first=is_first)}: "
                    waiting = written = 0
                    is_first = False
            lines.append(prefix + line)
            written += len(line)
        if last < 0 and self._gap:
            lines.append(omission_mark(self._gap, kind, is_first=True))
        return "\n".join(lines)

    def _leave(self, count: int, kind: UnitKind) -> None:
        self._kinds.add(kind)
        self._gap += count

    def _recall(self, order: int) -> None:
        for one in self._earlier.get(order, ()):
            self._leave(one.count, one.kind)
