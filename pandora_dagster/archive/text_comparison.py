"""Two texts side by side: the units of a shortened text beside those of its original, in rows, each fact with its verdict.

A unit that both texts have is one row, a unit that only one of them has is a row with one side. Rows are in the order of the shortened
text; what is left out is where the original has it. `api` writes the HTML.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from pandora_dagster.compression.verification.alignment import align
from pandora_dagster.compression.verification.facts import Outcome, Rank, Verdict
from pandora_dagster.compression.verification.text_facts import TextFacts
from pandora_dagster.compression.verification.unit_index import UnitIndex
from pandora_dagster.compression.verification.verifier import Verification, index_shortened, verify
from pandora_dagster.documents.redaction.credentials import redact

MAX_ROWS = 5_000
"""Rows and facts of one comparison that a page shows."""
_MAX_TITLE_CHARACTERS = 400
VERDICT_LABELS = {
    Outcome.KEPT: "kept",
    Outcome.EQUAL: "equal",
    Outcome.RECOVERABLE: "recoverable",
    Outcome.DROPPED_BY_RULE: "left out by rule",
    Outcome.MISSING: "missing",
    Outcome.MUTATED: "changed",
    Outcome.INVENTED: "not in the original",
}


class RowState(StrEnum):
    """What became of the unit of a row."""

    SAME = "same"
    REWORDED = "reworded"
    MOVED = "moved"
    """It is in the shortened text in another place, or as a part of another unit."""
    LEFT_OUT = "left_out"
    ADDED = "added"
    NOTE = "note"
    """A count of what was left out, or the reference to the original."""


STATE_LABELS = {
    RowState.SAME: "kept",
    RowState.REWORDED: "reworded",
    RowState.MOVED: "moved",
    RowState.LEFT_OUT: "left out",
    RowState.ADDED: "added",
    RowState.NOTE: "note",
}


@dataclass(frozen=True, slots=True)
class Mark:
    """A range of characters with a CSS class (`kind`), a title, a link or an anchor. Where classes overlap, the shortest range is shown.

    `href` is a document, `anchor` an id of the page, placed at `start`.
    """

    start: int
    end: int
    kind: str = ""
    title: str = ""
    href: str = ""
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of a text with its marks, whose places count from its beginning. `line`: the line on which it begins, from 1."""

    text: str
    marks: tuple[Mark, ...]
    line: int


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One row. `verdicts`: its state and the verdicts on its facts, by which a page filters."""

    state: RowState
    original: Excerpt | None = None
    shortened: Excerpt | None = None
    differences: tuple[str, ...] = ()

    @property
    def verdicts(self) -> frozenset[str]:
        marks = (mark for side in (self.original, self.shortened) if side for mark in side.marks)
        return frozenset({self.state.value, *(mark.kind.partition(" ")[0] for mark in marks)} & FILTERS.keys())

    @property
    def text(self) -> str:
        """What a search looks in."""
        return "\n".join((*(side.text for side in (self.original, self.shortened) if side), *self.differences))


FILTERS: Mapping[str, str] = {**{o.value: label for o, label in VERDICT_LABELS.items()}, RowState.LEFT_OUT.value: "units left out"}
"""By what a page filters its rows, with labels."""


@dataclass(frozen=True, slots=True)
class TextComparison:
    """The rows, the number of facts with each outcome and of units left out, and the verdicts on facts that are not kept unchanged."""

    rows: tuple[ComparedRow, ...]
    counts: Mapping[str, int]
    facts: tuple[Verdict, ...]


def compare(
    original: TextFacts, shortened: str, *, reference: str = "", original_marks: Iterable[Mark] = (), shortened_marks: Iterable[Mark] = ()
) -> TextComparison:
    """Compare a text with its original. The marks are shown beside those of facts; their places are those of the redacted texts."""
    verification = verify(original, shortened, reference=reference)
    plain = redact(shortened)
    before = _Side(original.index, original.text, [*original_marks, *_marks_of_original(verification)])
    after = _Side(index_shortened(plain, original), plain, [*shortened_marks, *_marks_of_shortened(verification)])
    counts = {**verification.counts, RowState.LEFT_OUT.value: len(verification.left_out)}
    facts = tuple(v for v in verification.verdicts if v.outcome is not Outcome.KEPT)
    return TextComparison(tuple(_Rows(before, after, verification, reference).all()), counts, facts)


def _describe_verdict(verdict: Verdict) -> str:
    """Kind and rank of a fact, its verdict, the reason, and what the shortened text has instead."""
    head = f"{verdict.fact.kind.value}, {verdict.fact.rank.value}: " if verdict.fact else ""
    evidence = "" if verdict.fact and verdict.evidence == verdict.fact.text else verdict.evidence
    return "; ".join(p for p in (head + VERDICT_LABELS[verdict.outcome], verdict.reason, evidence) if p)[:_MAX_TITLE_CHARACTERS]


def _marks_of_original(verification: Verification) -> Iterator[Mark]:
    for verdict in verification.verdicts:
        if (fact := verdict.fact) is not None:
            kind = verdict.outcome.value + (" critical" if fact.rank is Rank.CRITICAL else "")
            yield Mark(fact.start, fact.end, kind, _describe_verdict(verdict))


def _marks_of_shortened(verification: Verification) -> Iterator[Mark]:
    for verdict in verification.verdicts:
        if verdict.here and verdict.outcome is not Outcome.MISSING:
            yield Mark(verdict.here.start, verdict.here.end, verdict.outcome.value, _describe_verdict(verdict))


@dataclass
class _Side:
    """A text in consecutive parts, one for each unit, so that every character is in one: what is between two units belongs to the first up
    to the last line end, and to the second from there."""

    index: UnitIndex
    text: str
    marks: Sequence[Mark]
    ends: list[int] = field(init=False)
    _marks_by_part: dict[int, list[Mark]] = field(init=False, default_factory=dict[int, list[Mark]])

    def __post_init__(self) -> None:
        units = self.index.units
        self.ends = []
        for unit, start in zip(units, [*(u.start for u in units), len(self.text)][1:], strict=True):
            end = max(unit.end, self.text.rfind("\n", unit.end, start) + 1)
            self.ends.append(max(end, self.ends[-1] if self.ends else 0))
        self.ends[-1:] = [len(self.text)] if self.ends else []
        for mark in self.marks:
            part = bisect_right(self.ends, mark.start)
            while part < len(self.ends) and (self._start(part) < mark.end or mark.start == mark.end):
                self._marks_by_part.setdefault(part, []).append(mark)
                part += len(self.ends) if mark.start == mark.end else 1

    def _start(self, part: int) -> int:
        return self.ends[part - 1] if part else 0

    def excerpt(self, first: int, last: int) -> Excerpt:
        """The parts of these units, without the empty lines around them and the blank before a sentence."""
        start, end = self._start(first), self.ends[last]
        text = self.text[start:end]
        shown = text.lstrip("\n" if text.startswith("\n") else " ")
        start += len(text) - len(shown)
        text = shown.rstrip("\n")
        end = start + len(text)
        own = dict.fromkeys(mark for part in range(first, last + 1) for mark in self._marks_by_part.get(part, ()))
        marks = (replace(m, start=min(max(m.start, start), end) - start, end=min(max(m.end, start), end) - start) for m in own)
        return Excerpt(text, tuple(marks), self.index.place_of(first).line)


class _Rows:
    """The rows of two texts. The longest sequence of units in the order of the original is kept together; other units are moved."""

    def __init__(self, before: _Side, after: _Side, verification: Verification, reference: str) -> None:
        self._before, self._after = before, after
        self._alignments = {a.order: a for a in align(before.index, after.index, reference=reference)}
        self._left_out = {omission.original.start for omission in verification.left_out}
        self._differences = {statement.shortened.start: statement.differences for statement in verification.for_review}
        self._sources = self._sources_of_units()
        self._used = {source for sources in self._sources.values() for source in sources}
        self._in_order = _longest_in_order([(order, min(sources)) for order, sources in self._sources.items() if sources])
        self._moved = self._sources_of_moved_units()
        self._placed = frozenset(self._moved.values())

    def _sources_of_units(self) -> dict[int, tuple[int, ...]]:
        """Unit of the shortened text -> units of the original that it was made from; for a heading the next equal one."""
        headings: dict[str, list[int]] = {}
        for unit in self._before.index.units:
            if unit.is_context:
                headings.setdefault(self._before.index.keys[unit.order], []).append(unit.order)
        sources: dict[int, tuple[int, ...]] = {}
        last = -1
        for unit in self._after.index.units:
            if unit.is_context:
                equal = headings.get(self._after.index.keys[unit.order], [])
                at = bisect_right(equal, last)
                sources[unit.order] = (equal[at],) if at < len(equal) else ()
            elif unit.order in self._alignments:
                sources[unit.order] = self._alignments[unit.order].sources
            last = max(sources.get(unit.order, ()), default=last)
        return sources

    def _sources_of_moved_units(self) -> dict[int, int]:
        """Unit that is in another order than its sources -> the nearest of them that is in no other row."""
        taken = {source for order in self._in_order for source in self._sources[order]}
        moved: dict[int, int] = {}
        for order, sources in self._sources.items():
            free = next((source for source in sources if source not in taken), None)
            if order not in self._in_order and free is not None:
                taken.add(free)
                moved[order] = free
        return moved

    def all(self) -> Iterator[ComparedRow]:
        next_unit = 0
        shared: tuple[int, int, list[int]] | None = None
        for unit in self._after.index.units:
            sources = self._sources.get(unit.order, ())
            first = min(sources, default=0)
            if shared and unit.order in self._in_order and first < next_unit:
                shared[2].append(unit.order)
                continue
            yield from self._shared_row(shared)
            shared = None
            if unit.order not in self._in_order or first < next_unit:
                yield self._added_row(unit.order, sources)
                continue
            yield from self._rows_of_original(next_unit, first)
            last = first
            while last + 1 in sources:
                last += 1
            shared, next_unit = (first, last, [unit.order]), last + 1
        yield from self._shared_row(shared)
        yield from self._rows_of_original(next_unit, len(self._before.index.units))

    def _shared_row(self, shared: tuple[int, int, list[int]] | None) -> Iterator[ComparedRow]:
        if shared:
            first, last, orders = shared
            is_same = all(o not in self._alignments or ((a := self._alignments[o]).is_verbatim and not a.changes) for o in orders)
            differences = tuple(d for o in orders for d in self._differences.get(self._after.index.place_of(o).start, ()))
            state = RowState.SAME if is_same else RowState.REWORDED
            yield ComparedRow(state, self._before.excerpt(first, last), self._after.excerpt(orders[0], orders[-1]), differences)

    def _added_row(self, order: int, sources: Collection[int]) -> ComparedRow:
        is_statement = order in self._alignments or self._after.index.units[order].is_context
        state = RowState.MOVED if sources else RowState.ADDED if is_statement else RowState.NOTE
        differences = self._differences.get(self._after.index.place_of(order).start, ())
        original = self._before.excerpt(self._moved[order], self._moved[order]) if order in self._moved else None
        return ComparedRow(state, original, self._after.excerpt(order, order), tuple(differences))

    def _rows_of_original(self, begin: int, end: int) -> Iterator[ComparedRow]:
        for order in range(begin, end):
            if order in self._placed:
                continue
            unit, excerpt = self._before.index.units[order], self._before.excerpt(order, order)
            is_left_out = unit.start in self._left_out or (unit.is_context and order not in self._used)
            if excerpt.text:  # the columns of JSON records are a unit without characters
                yield ComparedRow(RowState.LEFT_OUT if is_left_out else RowState.MOVED, excerpt)


def _longest_in_order(pairs: Sequence[tuple[int, int]]) -> frozenset[int]:
    """The units of the longest sequence whose sources never go back; `pairs`: unit and its first source."""
    tails: list[int] = []
    ends: list[int] = []
    """For each length the pair with which the sequence of that length ends, that with the smallest source."""
    previous: list[int] = []
    for n, (_, source) in enumerate(pairs):
        at = bisect_right(tails, source)
        previous.append(ends[at - 1] if at else -1)
        tails[at : at + 1] = [source]
        ends[at : at + 1] = [n]
    chosen: set[int] = set()
    n = ends[-1] if ends else -1
    while n >= 0:
        chosen.add(pairs[n][0])
        n = previous[n]
    return frozenset(chosen)
