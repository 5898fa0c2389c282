"""Rows of the pages: filtered, sorted, in groups that a reader can fold, and in numbered pages. Values only, no HTML."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Generic, TypeVar

from pandora_dagster.archive.lineage_view import TreeLine
from pandora_dagster.archive.text_comparison import MAX_ROWS, STATE_LABELS, VERDICT_LABELS, ComparedRow, RowState
from pandora_dagster.compression.verification.facts import Verdict
from pandora_dagster.contracts.archive_records import ArchivedDay, ArchivedDayRow
from pandora_dagster.language.word_forms import counted

Row = TypeVar("Row")
_MIN_FOLDED_ROWS = 6
"""Rows without a change, or left out, one after the other that are folded."""
_ROWS_PER_GROUP = 100
_MAX_OPEN_ROWS = 200
"""Rows of a page that are not folded at first."""
_MAX_OPEN_TREE_LINES = 12
"""A longer tree is folded below its first level."""
_ROWS_PER_PAGE = 100
"""Documents of a day on one page."""


@dataclass(frozen=True, slots=True)
class PageFilter:
    """What a page shows: rows with a verdict, and with a text in them. "" for all."""

    verdict: str = ""
    text: str = ""

    def admits(self, verdicts: frozenset[str], text: str) -> bool:
        return (not self.verdict or self.verdict in verdicts) and self.text.casefold() in text.casefold()

    def __bool__(self) -> bool:
        return bool(self.verdict or self.text)


@dataclass(frozen=True, slots=True)
class RowGroup(Generic[Row]):
    """Rows under one heading, which a reader opens and folds."""

    summary: str
    rows: Sequence[Row]
    is_open: bool = False


@dataclass(slots=True)
class Tables:
    """The rows of one page under its filter. The first groups are open, until the page has 200 rows."""

    chosen: PageFilter
    open_rows: int = 0

    def compared(self, rows: Sequence[ComparedRow]) -> Iterator[RowGroup[ComparedRow]]:
        """The rows of a comparison: long runs that are equal or left out are folded."""
        shown = [(n, row) for n, row in enumerate(rows[:MAX_ROWS], 1) if self.chosen.admits(row.verdicts, row.text)]
        mixed: list[tuple[int, ComparedRow]] = []
        for state, run in groupby(shown, key=lambda pair: pair[1].state):
            pairs = list(run)
            if not self.chosen and state in (RowState.SAME, RowState.LEFT_OUT) and len(pairs) >= _MIN_FOLDED_ROWS:
                yield from self._groups(mixed)
                mixed = []
                yield RowGroup(f"{counted(len(pairs), 'unit')} {STATE_LABELS[state]}", [row for _, row in pairs])
            else:
                mixed += pairs
        yield from self._groups(mixed)
        if len(rows) > MAX_ROWS:
            yield RowGroup(_omission(len(rows), "rows"), ())

    def _groups(self, pairs: Sequence[tuple[int, ComparedRow]]) -> Iterator[RowGroup[ComparedRow]]:
        for begin in range(0, len(pairs), _ROWS_PER_GROUP):
            part = pairs[begin : begin + _ROWS_PER_GROUP]
            yield RowGroup(f"Rows {part[0][0]} to {part[-1][0]}", [row for _, row in part], self._opens(len(part)))

    def facts(self, verdicts: Sequence[Verdict]) -> Iterator[RowGroup[Verdict]]:
        """Verdicts by outcome, folded."""
        shown = [v for v in verdicts[:MAX_ROWS] if self.chosen.admits(frozenset({v.outcome.value}), f"{v.text}\n{v.evidence}\n{v.reason}")]
        for outcome, label in VERDICT_LABELS.items():
            rows = [v for v in shown if v.outcome is outcome]
            for begin in range(0, len(rows), _ROWS_PER_GROUP):
                part = rows[begin : begin + _ROWS_PER_GROUP]
                yield RowGroup(f"{label}: {begin + 1} to {begin + len(part)} of {len(rows)}", part)
        if len(verdicts) > MAX_ROWS:
            yield RowGroup(_omission(len(verdicts), "facts"), ())

    def tree(self, lines: Sequence[TreeLine]) -> Iterator[tuple[TreeLine, bool, bool]]:
        """Each line of a tree, whether it is shown, and whether the lines below it are: those with the text and the lines above them; all
        where none has it."""
        found: set[int] = set()
        above: list[int] = []
        for n, line in enumerate(lines):
            above = [*above[: line.level], n]
            if self.chosen.text and self.chosen.text.casefold() in f"{line.document} {line.description}".casefold():
                found.update(above)
        is_short = len(found or lines) <= _MAX_OPEN_TREE_LINES
        for n, line in enumerate(lines):
            yield line, not found or n in found, is_short or line.level == 0

    def _opens(self, rows: int) -> bool:
        is_open = self.open_rows + rows <= _MAX_OPEN_ROWS
        self.open_rows += rows if is_open else 0
        return is_open


def _omission(count: int, noun: str) -> str:
    """What a page says of the rows beyond its limit."""
    return f"{count - MAX_ROWS} more {noun} are neither shown nor searched: a page has at most {MAX_ROWS}"


@dataclass(frozen=True, slots=True)
class DayColumn:
    """A column of a day's table: its heading, the value by which it sorts, and whether that is a number."""

    heading: str
    value: Callable[[ArchivedDayRow], Any]
    is_number: bool = True


DAY_COLUMNS: Mapping[str, DayColumn] = {
    "document": DayColumn("Document", lambda row: (row.key, row.document.name), is_number=False),
    "before": DayColumn("Tokens", lambda row: row.document.tokens_before),
    "after": DayColumn("After", lambda row: row.document.tokens_after),
    "ratio": DayColumn("Ratio", lambda row: row.document.tokens_after / (row.document.tokens_before or 1)),
    "facts": DayColumn("Facts", lambda row: row.document.facts),
    "lost": DayColumn("Not kept", lambda row: row.document.facts - row.document.facts_kept),
    "by": DayColumn("Shortened by", lambda row: row.document.whole or row.document.runtime, is_number=False),
    "run": DayColumn("Run", lambda row: row.run_id, is_number=False),
}


@dataclass(frozen=True, slots=True)
class DayTable:
    """Which rows of a day a page shows, in which order."""

    sort: str = "document"
    descending: bool = False
    page: int = 1

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> "DayTable":
        """The table of a request; a parameter that is none of ours is left out."""
        sort, page = parameters.get("sort", ""), parameters.get("page", "")
        number = int(page) if page.isascii() and page.isdigit() and len(page) < 7 else 1
        return cls(sort if sort in DAY_COLUMNS else "document", parameters.get("order") == "down", max(1, number))

    def rows(self, day: ArchivedDay, chosen: PageFilter) -> Sequence[ArchivedDayRow]:
        """All rows that the filter admits, sorted."""
        shown = [
            row for row in day.rows if chosen.admits(_verdicts_of(row), f"{row.key}/{row.document.name} {row.document.whole} {row.cold}")
        ]
        return sorted(shown, key=DAY_COLUMNS[self.sort].value, reverse=self.descending)

    def counts(self, day: ArchivedDay) -> Counter[str]:
        """The number of facts with each verdict."""
        return sum((Counter(row.document.counts) for row in day.rows), Counter[str]())

    def pages(self, rows: Sequence[ArchivedDayRow]) -> int:
        return max(1, -(-len(rows) // _ROWS_PER_PAGE))

    def part(self, rows: Sequence[ArchivedDayRow]) -> Sequence[ArchivedDayRow]:
        """The rows of this page; of the last one where there is no such page."""
        page = min(self.page, self.pages(rows))
        return rows[(page - 1) * _ROWS_PER_PAGE : page * _ROWS_PER_PAGE]


def _verdicts_of(row: ArchivedDayRow) -> frozenset[str]:
    return frozenset(name for name, count in row.document.counts.items() if count)
