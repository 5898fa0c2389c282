"""Values of one kind that changed places: each stands with what only the other is about, in its sentence or in its clause.

Knows facts, source and candidate. A value said more than once is about all that it stands with.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, islice

from pandora_dagster.compression.facts.canonical_values import Value, spelling
from pandora_dagster.compression.facts.fact_types import NUMERIC, Fact, FactKind
from pandora_dagster.compression.facts.value_finder import FoundValue
from pandora_dagster.compression.judge.candidate import NO_SENTENCES, CandidateText
from pandora_dagster.compression.judge.grounding import SourceIndex
from pandora_dagster.compression.words.european_forms import month_of
from pandora_dagster.compression.words.normalization import apart, key
from pandora_dagster.compression.words.word_classes import OPENERS, PREPOSITIONS, STOP_WORDS, stem

_BORDER = re.compile(r"[.!?;]\s+|[{}\n\u3002\uff01\uff1f\uff1b]")
_CLAUSE = re.compile(r"[,()\[\]|\u3001\uff0c]|\s(?:and|but|while|whereas|or|plus|then|versus|vs\.?)\s")
_FURTHER = re.compile(r"[,;\uff0c]\s?(?:and|but|while|whereas)\s")
_ROLE = re.compile(r"\s(\w+)\s*$")
_WAY = re.compile(r"(?:^|\s)(from|to|into|onto)(?:\s(?!(?:from|to|into|onto)\s)[\w#]+){1,2}\s*$", re.IGNORECASE)
"""From where and where to, with what goes before the value: `to account DE12`."""
_MOVABLE = NUMERIC | {FactKind.IDENTIFIER}
_WORD = re.compile(r"\w+")
_LINE_END, _BAR = re.compile(r"\n"), re.compile(r"\|")
_LABEL = re.compile(r"(?<=[a-z] )A(?!\w)")
"""The letter by which one of several goes, no article."""
_AFTER_LABEL = re.compile(r"(?<=: )[A-Z](?=[a-z])")
"""A capital that only begins what somebody says."""
_NUMBERED = re.compile(r"(?<![\w.])([A-Z][\w\-]*) (?=\d{1,4}(?![\w%]|[.,:/]\d| ?[%$€£¥]))")
"""A name and the number by which several of one name are told apart: `LOQ 3`."""
_REACH = 240
_PLACES = 12
"""Clauses at most in which a value stands that can be told to belong to one."""
_JUDGED = 200
"""Suspects at most: a text in which more values lost words of their clauses is a condensed one, not one with two in exchange."""


@dataclass(frozen=True, slots=True)
class _Clause:
    """What stands around a value: `order` are its stems, names first, then the nearest; `verb` the one right before the value, of
    `before` that stand there."""

    written: str
    """The key of the value."""
    order: tuple[str, ...]
    verb: str
    before: int
    is_member: bool
    """Whether the value is one of a record, which tells by its members what it is about."""
    names: frozenset[str]
    """Those of `order` that are written as names."""

    def own(self, other: "_Clause") -> frozenset[str]:
        """The stems; a verb that the shorter clause leaves out is of both."""
        return frozenset(self.order) - ({self.verb} if self.before > max(other.before, 1) and self.verb not in other.order else set())


@dataclass(frozen=True, slots=True)
class _Suspect:
    """A value that stands with words that are not of its clause: its clauses there, and the one here."""

    value: Value
    theirs: tuple[_Clause, ...]
    here: _Clause


def swapped(facts: Iterable[Fact], candidate: CandidateText, source: SourceIndex) -> frozenset[int]:
    """Where those of `facts` begin that changed places with another of their kind."""
    here = _clauses(candidate.text, _movable(candidate.values), None)
    theirs = _clauses(source.text, _movable(source.values), None)
    suspects = list(islice(_suspects(here, theirs, source), _JUDGED))
    moved = {s.value for one, other in combinations(suspects, 2) if _changed_places(one, other) for s in (one, other)}
    owned = _owned(theirs)
    moved |= {s.value for s in suspects if _is_anothers(s, owned)}
    return (
        frozenset(fact.start for fact in facts if fact.kind in _MOVABLE and spelling(fact.kind, fact.text) in moved)
        if moved
        else frozenset()
    )


def _movable(values: Iterable[FoundValue]) -> Iterator[tuple[Value, FoundValue]]:
    return ((spelling(value.kind, value.text), value) for value in values if value.kind in _MOVABLE)


def _suspects(here: dict[Value, list[_Clause]], theirs: dict[Value, list[_Clause]], source: SourceIndex) -> Iterator[_Suspect]:
    for value in (value for value in here if value in theirs and len(theirs[value]) <= _PLACES):
        own = frozenset(word for clause in theirs[value] for word in clause.order)
        for clause in here[value]:
            said = frozenset(clause.order)
            if said - own and own - said and _tells(value, clause, theirs[value], source):
                yield _Suspect(value, tuple(theirs[value]), clause)


def _tells(value: Value, here: _Clause, theirs: list[_Clause], source: SourceIndex) -> bool:
    """Whether the words around a value tell where it belongs: not from one record to another form of it, nor where the source also
    has it where no sentence stands around it."""
    if any(clause.is_member for clause in theirs) and (len(theirs) > 1 or here.is_member):
        return False
    seen = Counter(clause.written for clause in theirs)
    return all(source.keys.count(form) <= seen[form] for form in {here.written, key(value[1])})


def _changed_places(one: _Suspect, other: _Suspect) -> bool:
    if _sort(one.value) != _sort(other.value) or one.value == other.value:
        return False
    first = frozenset[str]().union(*(mine.own(yours) for mine in one.theirs for yours in other.theirs))
    second = frozenset[str]().union(*(yours.own(mine) for mine in one.theirs for yours in other.theirs))
    return _took(one.here, first - second, second - first) and _took(other.here, second - first, first - second)


def _owned(theirs: dict[Value, list[_Clause]]) -> dict[tuple[FactKind, str, str], list[tuple[Value, _Clause]]]:
    """Sort and name -> the values that the source has right with that name, each with its clause."""
    found: defaultdict[tuple[FactKind, str, str], list[tuple[Value, _Clause]]] = defaultdict(list)
    for value, clauses in theirs.items():
        for clause in clauses:
            for name in clause.names:
                found[*_sort(value), name].append((value, clause))
    return found


def _is_anothers(one: _Suspect, owned: dict[tuple[FactKind, str, str], list[tuple[Value, _Clause]]]) -> bool:
    """Whether a value stands with a name that in the source has another value of the same, and with none of its own names."""
    own = frozenset(word for clause in one.theirs for word in clause.order)
    if one.here.is_member or not all(clause.names for clause in one.theirs) or own & one.here.names:
        return False
    name = next((word for word in one.here.order if word in one.here.names), "")
    about = frozenset(one.here.order) - one.here.names
    rivals = owned.get((*_sort(one.value), name), ())
    return any(value != one.value and (clause.is_member or about & frozenset(clause.order)) for value, clause in rivals)


def _took(here: _Clause, own: frozenset[str], others: frozenset[str]) -> bool:
    """Whether the nearest word that tells two values apart is of the other."""
    return bool(own) and next((word in others for word in here.order if word in own or word in others), False)


def _clauses(text: str, values: Iterable[tuple[Value, FoundValue]], wanted: frozenset[Value] | None) -> dict[Value, list[_Clause]]:
    """Each of the wanted values (all where None) -> every clause that it stands in; a clause has one value of a kind."""
    found: defaultdict[Value, list[_Clause]] = defaultdict(list)
    rows = _Rows(text)
    sorts: defaultdict[tuple[FactKind, str], list[tuple[Value, FoundValue]]] = defaultdict(list)
    for named, value in values:
        sorts[_sort(named)].append((named, value))
    for own in sorts.values():
        ends = [0, *(value.end for _, value in own)]
        starts = [*(value.start for _, value in own), len(text)]
        for number, (named, value) in enumerate(own):
            if wanted is None or named in wanted:
                start, end = _begin(text, ends[number], value.start), _end(text, value.end, starts[number + 1])
                found[named].append(_clause(text, start, value, end, rows))
    return dict(found)


class _Rows:
    """Which lines of a text hold values, and are no sentences."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [0, *(mark.end() for mark in _LINE_END.finditer(text))]
        self._bars = [mark.start() for mark in _BAR.finditer(text)]

    def has(self, place: int, end: int) -> bool:
        """Whether the line of a place shows before `end` that it is one."""
        begin = self._starts[bisect_right(self._starts, place) - 1]
        bar = bisect_left(self._bars, begin)
        return (bar < len(self._bars) and self._bars[bar] < end) or self._text.startswith(NO_SENTENCES, begin, end)


def _sort(value: Value) -> tuple[FactKind, str]:
    """What values must share to be in exchange: the kind, the unit of a quantity, and whether an identifier is an address."""
    kind, spelled = value
    return kind, spelled.rpartition(" ")[2] if kind is FactKind.QUANTITY else ""


def _begin(text: str, after: int, start: int) -> int:
    """Where the clause of a value at `start` begins, after another that ends at `after`."""
    low = max(after, start - _REACH)
    between = text[low:start]
    if borders := list(_BORDER.finditer(between)):
        return low + borders[-1].end()
    if low == after and after:
        return low + _split(between)
    return low + max((found.end() for found in _FURTHER.finditer(between)), default=0)


def _end(text: str, end: int, before: int) -> int:
    between = text[end : min(before, end + _REACH)]
    if border := _BORDER.search(between):
        return end + border.start()
    return end + (_split(between) if before - end <= _REACH and before < len(text) else len(between))


def _split(between: str) -> int:
    """Where, between two values, the clause of the second begins: at the last border, or before its preposition."""
    if borders := list(_CLAUSE.finditer(between)):
        return borders[-1].start()
    role = _ROLE.search(between)
    if not role or role.group(1).lower() not in PREPOSITIONS:
        role = _WAY.search(between)
    return role.start() if role else len(between)


def _clause(text: str, start: int, value: FoundValue, end: int, rows: "_Rows") -> _Clause:
    before, after = _content(text[start : value.start]), _content(text[value.end : end])
    role = _WAY.search(text[start : value.start]) or _ROLE.search(text[start : value.start])
    named = [role.group(1).lower()] if role and role.group(1).lower() in PREPOSITIONS else []
    near = sorted([*enumerate(reversed(before)), *enumerate(after)], key=lambda word: (not word[1][1], word[0]))
    is_member = '":' in text[start:end] or rows.has(value.start, end)
    verb = before[-1][0] if before and not before[-1][1] else ""
    names = frozenset(word for word, is_name in (*before, *after) if is_name)
    return _Clause(key(value.text), (*(word for _, (word, _) in near), *named), verb, len(before), is_member, names)


def _content(text: str) -> list[tuple[str, bool]]:
    """The stems of a part of a clause, and of each whether it is written as a name."""
    labelled = _NUMBERED.sub(_numbered, _LABEL.sub("A_", apart(text)))
    written = _WORD.findall(_AFTER_LABEL.sub(lambda found: found.group().lower(), labelled))
    plain = ((word.lower(), word[0].isupper() and word.lower() not in OPENERS) for word in written)
    return [(stem(word), is_name) for word, is_name in plain if word not in STOP_WORDS]


def _numbered(name: re.Match[str]) -> str:
    word = name.group(1)
    return name.group() if word.lower() in OPENERS or month_of(word.lower()) else f"{word}_"
