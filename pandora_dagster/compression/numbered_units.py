"""Units of a text in pieces from which a model chooses by number, and the choice that its answer makes. Calls no model.

A unit is a line `[3] (12) text`: its number within the piece and its tokens. Headings, speakers and table headers are lines without a
number before the units that need them. An answer is `{"keep": [3, 1]}`, the most important number first.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pandora_dagster.documents.units.unit import Unit

MAX_NUMBERS = 40
"""Units of one piece at most; the answer of a recipe with 100 output tokens holds as many numbers."""
_UNIT_LINE = re.compile(r"^\[(\d{1,2})\] \((\d{1,6})\) (.*(?:\n {4}.*)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class UnitPiece:
    """Consecutive units for one call. `orders` are their positions in the text: number 1 is `orders[0]`."""

    text: str
    orders: tuple[int, ...]
    tokens: int
    """Of the units alone."""


@dataclass(frozen=True, slots=True)
class UnitChoice:
    """The units of a piece that an answer chose, the most important first; `refused` says why an answer is no choice."""

    orders: tuple[int, ...] = ()
    refused: str = ""


@dataclass(frozen=True, slots=True)
class NumberedUnit:
    """A unit as a piece shows it."""

    number: int
    tokens: int
    text: str


def unit_pieces(units: Sequence[Unit], *, size: int, count: Callable[[str], int]) -> tuple[UnitPiece, ...]:
    """The units in pieces of at most `size` tokens and `MAX_NUMBERS` units, each with the headings, speakers and headers that its units
    need. A unit that alone is larger than `size` is in no piece."""
    pieces: list[UnitPiece] = []
    builder = _PieceBuilder(units, count)
    for unit in units:
        fresh = _PieceBuilder(units, count)
        if unit.is_context or fresh.size_with(unit) > size:
            continue
        if builder.size_with(unit) > size or len(builder.orders) == MAX_NUMBERS:
            pieces.append(builder.piece())
            builder = fresh
        builder.add(unit)
    return (*pieces, builder.piece()) if builder.orders else tuple(pieces)


class _PieceBuilder:
    """One piece in the making."""

    def __init__(self, units: Sequence[Unit], count: Callable[[str], int]) -> None:
        self._units, self._count = units, count
        self._lines: list[str] = []
        self._shown: set[int] = set()
        self._size = self._tokens = 0
        self.orders: list[int] = []

    def size_with(self, unit: Unit) -> int:
        """Tokens of the piece with one more unit."""
        return self._size + sum(self._count(line) + 1 for line in self._new_lines(unit))

    def add(self, unit: Unit) -> None:
        self._size = self.size_with(unit)
        self._lines += self._new_lines(unit)
        self._shown |= _context_of(unit, self._units)
        self._tokens += self._count(unit.text)
        self.orders.append(unit.order)

    def piece(self) -> UnitPiece:
        return UnitPiece("\n".join(self._lines), tuple(self.orders), self._tokens)

    def _new_lines(self, unit: Unit) -> list[str]:
        context = sorted(_context_of(unit, self._units) - self._shown)
        line = _indented(f"[{len(self.orders) + 1}] ({self._count(unit.text)}) {unit.text}")
        return [*(_indented(self._units[order].text) for order in context), line]


def _context_of(unit: Unit, units: Sequence[Unit]) -> set[int]:
    """Headings, speakers and headers that a unit needs, those of what it needs included."""
    needed: set[int] = set()
    pending = list(unit.needs)
    while pending:
        order = pending.pop()
        if order not in needed and order < len(units):
            needed.add(order)
            pending += units[order].needs
    return {order for order in needed if units[order].is_context}


def _indented(text: str) -> str:
    """Further lines are indented, so that no unit looks like another one."""
    return "\n    ".join(text.split("\n"))


def read_numbered(text: str) -> Iterator[NumberedUnit]:
    """The units that a piece shows, in order."""
    for line in _UNIT_LINE.finditer(text):
        yield NumberedUnit(int(line[1]), int(line[2]), line[3].replace("\n    ", "\n"))


def read_choice(answer: object, piece: UnitPiece, target: int) -> UnitChoice:
    """The choice in an answer `{"keep": [3, 1]}`; refused where it names no unit, a number that the piece lacks, or every unit of a piece
    that is over `target` tokens."""
    keep = cast("Mapping[str, Any]", answer).get("keep") if isinstance(answer, Mapping) else None
    if not isinstance(keep, list) or not keep:
        return UnitChoice(refused="the answer names no unit")
    if unknown := [n for n in cast("list[object]", keep) if type(n) is not int or not 1 <= n <= len(piece.orders)]:
        return UnitChoice(refused=f"the answer names {unknown[0]!r}: expected numbers from 1 to {len(piece.orders)}")
    numbers = list(dict.fromkeys(cast("list[int]", keep)))
    if len(numbers) == len(piece.orders) > 1 and piece.tokens > target:
        return UnitChoice(refused=f"the answer keeps all {len(numbers)} units: expected {target} of {piece.tokens} tokens")
    return UnitChoice(tuple(piece.orders[number - 1] for number in numbers))


def ranked_choice(orders: Sequence[int], salience: Sequence[float]) -> tuple[int, ...]:
    """A choice in the order of its importance. Numbers that only count up, as small models write them, say nothing about that: then the
    units that a reader needs more come first."""
    if len(orders) > 2 and list(orders) == sorted(orders):
        return tuple(sorted(orders, key=lambda order: -salience[order]))
    return tuple(orders)


def merged_order(choices: Iterable[tuple[Sequence[int], float]], tokens: Mapping[int, int]) -> tuple[int, ...]:
    """Several choices, each with the target of its piece, as one order: a unit is ranked by the share of that target that the units before
    it take, so that a total target that is too small for all takes from each piece alike."""
    ranked: list[tuple[float, int]] = []
    for orders, target in choices:
        used = 0
        for order in orders:
            ranked.append((used / max(1.0, target), order))
            used += tokens[order]
    return tuple(order for _, order in sorted(ranked, key=lambda entry: entry[0]))
