"""The text of the units that are kept: in order, tables together under their header, a counted mark for every run left out."""

from collections.abc import Collection, Sequence

from pandora_dagster.compression.selection.omission_marks import Omission, omission_mark
from pandora_dagster.documents.units.unit import Unit, UnitKind

_TABLE = (UnitKind.ROW, UnitKind.HEADER)
_PROSE = (UnitKind.SENTENCE, UnitKind.QUOTE)
_SETS = (UnitKind.ROW, UnitKind.ITEM)
"""Kinds whose units do not follow from each other: one mark after the last of them counts what is left out of the table or list."""


def render(units: Sequence[Unit], kept: Collection[int], earlier: dict[int, list[Omission]] | None = None) -> str:
    """The kept units as text. `earlier`: what earlier compressions left out before each unit."""
    page = _Page(earlier or {})
    for unit in table_order(units):
        page.write(unit) if unit.order in kept else page.skip(unit)
    page.close(len(units))
    return "\n".join(page.lines)


def table_order(units: Sequence[Unit]) -> list[Unit]:
    """The units in order, but the rows of a table follow its header, wherever they were."""
    first: dict[int, int] = {}
    keys: list[tuple[int, int]] = []
    for unit in units:
        place = first.setdefault(unit.block, unit.order) if unit.kind in _TABLE else unit.order
        keys.append((place, unit.order))
    return [u for _, u in sorted(zip(keys, units, strict=True), key=lambda pair: pair[0])]


class _Page:
    """Lines as they are written, and what was left out since the last one."""

    def __init__(self, earlier: dict[int, list[Omission]]) -> None:
        self.lines: list[str] = []
        self._earlier = earlier
        self._gap = self._marks = 0
        self._kind = UnitKind.SENTENCE
        self._before: Unit | None = None

    def skip(self, unit: Unit) -> None:
        self._recall(unit.order)
        if not unit.is_context:
            self._leave(1, unit.kind)

    def write(self, unit: Unit) -> None:
        self._recall(unit.order)
        before = self._before
        self._before = unit
        mark = ""
        inside = before is not None and unit.kind in _SETS and before.kind in (unit.kind, UnitKind.HEADER) and before.block == unit.block
        if not unit.is_context and self._gap and not inside:
            mark = f"{self._mark()}: "
        same = before is not None and before.message == unit.message
        if before is not None and before.kind is UnitKind.SPEAKER and same and unit.kind is not UnitKind.HEADER:
            self.lines[-1] = f"{self.lines[-1]} {mark}{unit.text}"
        elif before is not None and same and unit.kind in _PROSE and before.kind is unit.kind and before.block == unit.block and not mark:
            self.lines[-1] += f" {unit.text}"
        else:
            self.lines.append(mark + unit.text)
        if unit.kind is UnitKind.HEADER and unit.text.startswith("|") and "\n" not in unit.text:
            self.lines.append("|" + "---|" * unit.text.strip().strip("|").count("|") + "---|")

    def close(self, end: int) -> None:
        self._recall(end)
        if self._gap:
            self.lines.append(self._mark())

    def _mark(self) -> str:
        mark = omission_mark(self._gap, self._kind, is_first=not self._marks)
        self._marks += 1
        self._gap = 0
        return mark

    def _leave(self, count: int, kind: UnitKind) -> None:
        self._kind = kind if not self._gap or kind is self._kind else UnitKind.SENTENCE
        self._gap += count

    def _recall(self, order: int) -> None:
        for one in self._earlier.get(order, ()):
            self._leave(one.count, one.kind)
