"""Rows of one kind as a table: constant columns in the header, the most talked about columns first, so that a row can end anywhere.

A table is `# list of record: name|name[part,part]|... ; name=constant ; ...`
and below it one line a row. Knows rows and mentions; no budgets.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pandora_dagster.compression.read.json_parts import leaves
from pandora_dagster.compression.read.json_rows import IDENTIFIER, Row, cell, layout
from pandora_dagster.compression.read.value_mentions import Mentions
from pandora_dagster.compression.words.normalization import key

CONSTANT = " ; "
_PARENT = re.compile(r"[\w.\-]+ of [^:|;\n]+")
"""The name of a list and the record it belongs to: they stand before the columns."""
_IDENTIFIER_BONUS = 0.5


@dataclass(slots=True)
class Entry:
    """The newest version of one identity, and the older ones that differ."""

    row: Row
    earlier: list[Row] = field(default_factory=list[Row])

    def update(self, row: Row) -> None:
        """Take a later version; cells that only the older one knows stay."""
        known = {name: value for name, value in self.row.values.items() if name not in row.values}
        if any(cell(self.row.values[name]) != cell(value) for name, value in row.values.items() if name in self.row.values):
            self.earlier.append(self.row)
        self.row = Row(row.position, {**row.values, **known})


@dataclass(frozen=True, slots=True)
class Table:
    """Entries of one kind with the order of their columns; `names` are the columns with the layout of what is in them."""

    names: tuple[str, ...]
    columns: tuple[str, ...]
    constants: Mapping[str, Any]
    entries: tuple[Entry, ...]

    def header(self, level: int = 0) -> str:
        """The header of rows with at most `level` columns, of all columns without."""
        names = self.names[: level or None]
        mark = "|" if len(names) == 1 and not self.constants else ""
        parent = next((name for name, value in self.constants.items() if _PARENT.fullmatch(f"{name} {cell(value)}")), "")
        above = f"{parent} {cell(self.constants[parent])}: " if parent else ""
        constants = (f"{CONSTANT}{name}={cell(value).replace(';', ',')}" for name, value in self.constants.items() if name != parent)
        return f"# {above}{'|'.join(names)}{mark}{''.join(constants)}"


def tables(rows: Iterable[Row], mentions: Mentions, layouts: Mapping[str, str]) -> tuple[Table, ...]:
    """All rows as tables, in order of appearance. `layouts` are those that an earlier compression's headers told."""
    kinds: dict[frozenset[str], dict[tuple[str, ...], Entry]] = {}
    found = list(rows)
    whole = _whole_kinds(found)
    shared = _shared_names(found)
    for row in found:
        entries = kinds.setdefault(whole.get(row.kind, row.kind) if row.is_cut else row.kind, {})
        name = (row.identity, row.date)
        if (row.kind, *name) in shared:
            name = (*name, *map(cell, row.values.values()))
        if name in entries:
            entries[name].update(row)
        else:
            entries[name] = Entry(row)
    return tuple(_table(list(entries.values()), mentions, layouts) for entries in kinds.values())


def _shared_names(rows: Iterable[Row]) -> frozenset[tuple[frozenset[str], str, str]]:
    """Kind, identity and date of which one result has several objects: siblings that differ, no versions of one."""
    first: dict[tuple[int, frozenset[str], str, str], Mapping[str, Any]] = {}
    shared: set[tuple[frozenset[str], str, str]] = set()
    for row in rows:
        name = (row.kind, row.identity, row.date)
        if first.setdefault((row.position, *name), row.values) != row.values:
            shared.add(name)
    return frozenset(shared)


def _whole_kinds(rows: Sequence[Row]) -> dict[frozenset[str], frozenset[str]]:
    """Columns of rows that were cut -> all columns of their kind, where whole rows of it stand too."""
    first = {row.kind: next(iter(row.values), "") for row in rows}
    cut = {row.kind for row in rows if row.is_cut}
    known = {row.kind for row in rows if not row.is_cut}
    wider = {kind: [other for other in known if kind < other and first[kind] == first[other]] for kind in cut - known}
    return {kind: min(others, key=len) for kind, others in wider.items() if others}


def _table(entries: Sequence[Entry], mentions: Mentions, layouts: Mapping[str, str]) -> Table:
    values = [entry.row.values for entry in entries]
    names = list(dict.fromkeys(name for row in values for name in row))
    constants = {name: values[0][name] for name in names if _is_constant(name, values)}
    varying = [name for name in names if name not in constants] or names[:1]
    constants = {name: value for name, value in constants.items() if name not in varying}
    worth = {
        name: round(_mentioned(name, values, mentions) + _IDENTIFIER_BONUS * _identifying(name, values), 1)
        + _asked(name, values, mentions)
        + len(mentions.asked_column(name + _layout(name, values, layouts)))
        for name in varying
    }
    order = (varying[0], *sorted(varying[1:], key=lambda name: -worth[name]))
    return Table(tuple(name + _layout(name, values, layouts) for name in order), order, constants, tuple(entries))


def _is_constant(name: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    first = rows[0].get(name)
    if len(rows) < 2 or isinstance(first, dict | list) or first in (None, ""):
        return False
    return all(name in row and row[name] == first for row in rows)


def _mentioned(name: str, rows: Sequence[Mapping[str, Any]], mentions: Mentions) -> float:
    """Share of a column's values that somebody mentions."""
    keys = [k for row in rows for leaf in leaves(row.get(name, "")) if len(k := key(leaf)) > 1]
    return (sum(mentions.spoken(k) for k in keys) + 0.1) / (len(keys) + 1)


def _asked(name: str, rows: Sequence[Mapping[str, Any]], mentions: Mentions) -> int:
    """The most words of the question that stand in one cell of a column."""
    return max((len(mentions.asked(cell(row[name]))) for row in rows if name in row), default=0)


def _identifying(name: str, rows: Sequence[Mapping[str, Any]]) -> float:
    """Share of a column's values that look like identifiers."""
    found = [leaf for row in rows for leaf in leaves(row.get(name, "")) if len(leaf) > 1]
    return sum(bool(IDENTIFIER.fullmatch(leaf)) for leaf in found) / (len(found) + 1)


def _layout(name: str, rows: Sequence[Mapping[str, Any]], layouts: Mapping[str, str]) -> str:
    if name in layouts:
        return layouts[name]
    return next((found for row in rows if (found := layout(row.get(name)))), "")
