"""The text of the units that are kept, each on lines of its own: in order, tables under their header, code in its fence, marks where units
are left out."""

import re
from collections.abc import Collection, Mapping, Sequence

from pandora_dagster.compression.selection.omission_marks import Omission, omission_mark
from pandora_dagster.documents.units.unit import Unit, UnitKind

_TABLE_KINDS = (UnitKind.ROW, UnitKind.HEADER)
_SET_KINDS = (UnitKind.ROW, UnitKind.ITEM)
"""Kinds whose units do not follow from each other: what is left out of a table or list is marked after the last of them."""
_BAR = re.compile(r"(?<!\\)\|")
"""A bar between two cells; an escaped one belongs to its cell."""
_CHARACTERS_BETWEEN_COUNTS = 1_000
"""Characters from one count to the next, so that counts take about a fiftieth of a text."""


def render(units: Sequence[Unit], kept: Collection[int], earlier: Mapping[int, Sequence[Omission]] | None = None) -> str:
    """The kept units as text. `earlier`: what earlier compressions left out before each unit."""
    page = _Page(earlier or {})
    for unit in table_order(units):
        if unit.order in kept:
            page.write(unit)
        else:
            page.skip(unit)
    return page.text(len(units))


def table_order(units: Sequence[Unit]) -> list[Unit]:
    """The units in order, but the rows of a table follow its header, wherever they were."""
    first_of_table: dict[int, int] = {}  # the key is computed in order: the first unit of a table gives the place of all
    return sorted(units, key=lambda u: first_of_table.setdefault(u.block, u.order) if u.kind in _TABLE_KINDS else u.order)


def _is_on_one_line(before: Unit, unit: Unit) -> bool:
    """Whether `before` is a speaker's name on the line of his first unit: `Ann: ...`; the head of a mail is on a line of its own."""
    return before.kind is UnitKind.SPEAKER and before.text.rstrip("*").endswith(":") and unit.kind is not UnitKind.HEADER


class _Page:
    """Lines as they are written, and how much was left out before each."""

    def __init__(self, earlier: Mapping[int, Sequence[Omission]]) -> None:
        self._lines: list[str] = []
        self._gaps: dict[int, int] = {}
        """Line -> units left out before it."""
        self._block_start = 0
        """The line with which the last paragraph, list or table begins."""
        self._verbatim_lines: set[int] = set()
        """Fences and the code in them: a mark is on a line of its own before these."""
        self._earlier = earlier
        self._uncounted = 0
        """Units left out since the last line."""
        self._kinds: set[UnitKind] = set()
        self._before: Unit | None = None

    def skip(self, unit: Unit) -> None:
        self._recall(unit.order)
        if not unit.is_context:
            self._leave_out(1, unit.kind)

    def write(self, unit: Unit) -> None:
        self._recall(unit.order)
        before = self._before
        self._before = unit
        is_in_fence = bool(unit.fence and before and before.fence and before.block == unit.block)
        if not is_in_fence:
            self._close_fence(before)
        is_in_set = (
            before is not None and unit.kind in _SET_KINDS and before.kind in (unit.kind, UnitKind.HEADER) and before.block == unit.block
        )
        is_gap = self._uncounted > 0 and not unit.is_context and not is_in_set
        first_line = len(self._lines)
        if unit.fence:
            self._lines += [unit.text] if is_in_fence else [unit.fence, unit.text]
            self._verbatim_lines |= set(range(first_line, len(self._lines)))
        elif before and before.message == unit.message and _is_on_one_line(before, unit):
            first_line -= 1
            self._lines[-1] += f" {unit.text}"
        else:
            self._lines.append(unit.text)
        if unit.kind is not UnitKind.HEADING and not (before and before.block == unit.block):
            self._block_start = first_line
        if is_gap:
            self._gaps[first_line] = self._uncounted
            self._uncounted = 0
        if unit.kind is UnitKind.HEADER and unit.text.startswith("|") and "\n" not in unit.text:
            self._lines.append("|" + "---|" * (len(_BAR.findall(unit.text.strip().strip("|"))) + 1))

    def text(self, unit_count: int) -> str:
        """All lines, an empty one at each gap. A count is of what is left out since the count before it; the last one also counts what
        follows it, and is alone on a line only behind a table of Markdown, which it would break.

        `unit_count`: where earlier omissions after the last unit are listed.
        """
        self._recall(unit_count)
        self._close_fence(self._before)
        if self._uncounted and not self._gaps and self._lines and not self._lines[self._block_start].startswith("|"):
            # only units after the last line are left out: their count goes before the last block, without an empty line, as a gap of 0 says
            self._gaps[self._block_start] = 0
        last_gap = max(self._gaps, default=-1)
        to_count = written = 0
        kind = next(iter(self._kinds)) if len(self._kinds) == 1 else UnitKind.SENTENCE
        is_first = True
        lines: list[str] = []
        for place, line in enumerate(self._lines):
            prefix = ""
            if place in self._gaps:
                to_count += self._gaps[place] + (self._uncounted if place == last_gap else 0)
                prefix = "\n" if self._gaps[place] and place else ""
                if written >= _CHARACTERS_BETWEEN_COUNTS or place == last_gap:
                    mark = omission_mark(to_count, kind, is_first=is_first)
                    prefix += f"{mark}\n" if place in self._verbatim_lines else f"{mark}: "
                    to_count = written = 0
                    is_first = False
            lines.append(prefix + line)
            written += len(line)
        if last_gap < 0 and self._uncounted:
            lines.append(omission_mark(self._uncounted, kind, is_first=True))
        return "\n".join(lines)

    def _close_fence(self, last: Unit | None) -> None:
        """Close the fence in which the last written unit is."""
        if last and last.fence:
            self._lines.append(last.fence[: len(last.fence) - len(last.fence.lstrip(last.fence[0]))])

    def _leave_out(self, count: int, kind: UnitKind) -> None:
        self._kinds.add(kind)
        self._uncounted += count

    def _recall(self, order: int) -> None:
        """Count what earlier compressions left out before a unit."""
        for omission in self._earlier.get(order, ()):
            self._leave_out(omission.count, omission.kind)
