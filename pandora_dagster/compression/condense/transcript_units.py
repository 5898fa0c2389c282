"""What of a transcript can be kept: prefixes of table rows, older versions, loose values, options, calls, sentences.

Knows rows, tables and talk; gives drafts with the keys of their facts. Knows nothing of weights or budgets.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pandora_dagster.compression.read.json_parts import is_list, is_object, leaves, shown
from pandora_dagster.compression.read.json_rows import (
    DATE,
    IDENTIFIER,
    Options,
    cell,
    cell_under,
    is_identity_map,
    item_text,
    items,
    layout,
    nested_items,
    owner,
)
from pandora_dagster.compression.read.packed_text import EARLIER, OPTIONS, LooseValue
from pandora_dagster.compression.read.row_tables import Entry, Table
from pandora_dagster.compression.read.transcript_messages import Call, ProseMessage
from pandora_dagster.compression.read.value_mentions import Mentions, call_keys, value_keys
from pandora_dagster.compression.read.value_owners import as_subject, flats
from pandora_dagster.compression.words.normalization import key
from pandora_dagster.compression.words.word_classes import sentences

Kind = Literal["row", "earlier", "value", "item", "options", "call", "sentence"]
_STATE = re.compile(r"[a-z]+(?:_[a-z]+){0,4}")
_ITEM = re.compile(r"\s*(?:[-*•+]|\d{1,3}[.)])\s+\S")
_MARKS = re.compile(r"^\s*(?:[-*•+]\s+|#{1,6}\s+)")
_BOLD = re.compile(r"\*\*(?=\S)([^*\n]+?)(?<=\S)\*\*")
_LABEL_WORDS = 3
_LONGEST_KEY = 80
_LONGEST_LOOSE = 40
_NEAR = 0.8
"""A record named this lately is worth keeping together: each of its cells counts as a value of this very record."""
_LONGEST_SENTENCE = 1_200
_EVERY_END, _END_GROWTH = 64, 1.1


@dataclass(frozen=True, slots=True)
class Draft:
    """A piece of the output to be. `label` is the role of a sentence or the name of a value; `table` and `entry` number a row;
    `subject` is the record that a value stands in, `layout` the names of an object's members, which are many where
    it `holds_others`. A sentence stands on line `line` of
    its message, and comes with the line `lead` that announces it (`Your flights:`), -1 for none."""

    kind: Kind
    position: int
    text: str
    facts: frozenset[str]
    label: str = ""
    table: int = -1
    entry: int = -1
    level: int = 0
    is_mentioned: bool = False
    nearness: float = 0.0
    subject: str = ""
    layout: str = ""
    holds_others: bool = False
    line: int = -1
    lead: int = -1
    is_lead: bool = False
    is_item: bool = False
    asked: frozenset[str] = frozenset()
    """Of the shortest stretch of a row that holds them, and of a sentence: the stems of the question that stand in it."""


def table_drafts(number: int, table: Table, mentions: Mentions) -> Iterator[Draft]:
    """Every prefix of every row, its single identifiers and states, and what older versions had."""
    for index, entry in enumerate(table.entries):
        told = [name[len(column) :] for name, column in zip(table.names, table.columns, strict=True)]
        cells = [cell_under(entry.row.values.get(name, ""), form) for name, form in zip(table.columns, told, strict=True)]
        facts = [_cell_facts(entry.row.values.get(name, "")) for name in table.columns]
        bound = _bound(table, entry, cells[0])
        yield from _prefixes(number, index, table, entry, cells, facts, bound, mentions)
        yield from _single_values(table, entry, bound)
        yield from _single_items(table, entry)
        yield from _older(number, entry)


def _leaf_keys(value: object) -> frozenset[str]:
    return frozenset(k for leaf in leaves(value) if 2 <= len(k := key(leaf)) < _LONGEST_KEY)


def _cell_facts(value: object) -> frozenset[str]:
    """The values of a cell, and which of them stand together."""
    return _leaf_keys(value) | {together(leaves(item)) for item in items(value)}


def together(values: Iterable[str]) -> str:
    """The fact that values belong to one object."""
    return "@".join(key(value) for value in values)


class _Bond(NamedTuple):
    """The fact that an identity and its date stand together, the date behind its name, and the column from which on they do."""

    fact: str
    subject: str
    level: int


def _bound(table: Table, entry: Entry, first_cell: str) -> _Bond | None:
    named = next(((n, v) for n, v in entry.row.values.items() if isinstance(v, str) and DATE.fullmatch(v)), None)
    if not named or not IDENTIFIER.fullmatch(first_cell):
        return None
    name, date = named
    return _Bond(f"{key(first_cell)}@{date}", f"{name} {date}", 0 if name in table.constants else table.columns.index(name) + 1)


def _prefixes(
    number: int,
    index: int,
    table: Table,
    entry: Entry,
    cells: Sequence[str],
    facts: Sequence[frozenset[str]],
    bound: _Bond | None,
    mentions: Mentions,
) -> Iterator[Draft]:
    is_mentioned = any(mentions.of(k) is not None for k in facts[0])
    near = max((mentions.nearness(k) for k in facts[0]), default=0.0)
    covered: set[str] = set()
    name = key(cells[0])
    asked = [mentions.asked(text) | mentions.asked_column(name) for text, name in zip(cells, table.names, strict=True)]
    last = max((n for n, stems in enumerate(asked, 1) if stems), default=0)
    all_asked = frozenset[str]().union(*asked)
    states = [f"{name}~{text}" if is_mentioned and _STATE.fullmatch(text) else "" for text in cells]
    for level in range(1, len(cells) + 1):
        covered.update(facts[level - 1])
        value = key(cells[level - 1]) if level > 1 else ""
        if value and (near >= _NEAR or (any(c.isdigit() for c in value) and mentions.of(value) is not None)):
            covered.add(f"{name}@{value}")
        if level > 1 and states[level - 1]:
            covered.add(states[level - 1])
        if bound and level >= bound.level:
            covered.add(bound.fact)
        if (cells[level - 1] or level == 1) and _may_end(level, len(cells)):
            text = "|".join(cells[:level])
            yield Draft(
                "row",
                entry.row.position,
                text,
                frozenset(covered),
                table=number,
                entry=index,
                level=level,
                is_mentioned=is_mentioned,
                nearness=near,
                asked=all_asked if level == last else frozenset(),
            )


def _may_end(level: int, columns: int) -> bool:
    """Whether a row may end at a column: at each of the first, then ever more seldom, so that a wide row has not as many prefixes
    as it has columns."""
    return level <= _EVERY_END or level == columns or int(math.log(level, _END_GROWTH)) > int(math.log(level - 1, _END_GROWTH))


def _single_values(table: Table, entry: Entry, bound: _Bond | None) -> Iterator[Draft]:
    """Identifiers and states by themselves: a record's name under its key, and behind its date where it has one; any other value under
    the record that holds it and no other."""
    first = cell(entry.row.values.get(table.columns[0], ""))
    found = (single for flat in flats({n: entry.row.values.get(n, "") for n in table.columns}) for single in flat.single())
    for label, value, subject in dict.fromkeys(found):
        if not 1 < len(value) < _LONGEST_LOOSE or not (IDENTIFIER.fullmatch(value) or _STATE.fullmatch(value)):
            continue
        if bound and value == first and label == table.columns[0].replace(" ", "_"):
            yield Draft("value", entry.row.position, value, frozenset((key(value), bound.fact)), label, subject=bound.subject)
        else:
            yield Draft("value", entry.row.position, value, frozenset((key(value),)), label, subject=subject)


def _single_items(table: Table, entry: Entry) -> Iterator[Draft]:
    subject = as_subject(owner(entry.row.values))
    for name in table.columns:
        value = entry.row.values.get(name)
        is_named = is_identity_map(value)
        label, at = name.replace(" ", "_"), entry.row.position
        form = layout(value) if (nested := nested_items(value)) else ""
        for item, text in nested:
            yield Draft("item", at, text, _leaf_keys(item), label, subject=subject, layout=form, holds_others=True)
        for item in () if nested else items(value):
            text = item_text(item, named=is_named)
            facts = _leaf_keys(item) | {together(leaves(item))}
            form = "" if is_named else "[" + ",".join(item) + "]"
            yield Draft("item", at, text, facts, label, subject=subject, layout=form)


def _older(number: int, entry: Entry) -> Iterator[Draft]:
    for row in entry.earlier:
        now = entry.row.values
        changed = {n: v for n, v in row.values.items() if n not in now or cell(now[n]) != cell(v)}
        text = f"{EARLIER}{entry.row.identity}: " + ", ".join(f"{n} {cell(v)}" for n, v in changed.items())
        facts = frozenset(k for v in changed.values() for k in _leaf_keys(v))
        yield Draft("earlier", row.position, text, facts, table=number)


def loose_draft(loose: LooseValue) -> Draft:
    """A value without a row, as it was read back."""
    facts = {key(loose.value)}
    if DATE.fullmatch(date := loose.subject.rsplit(" ", 1)[-1]):
        facts.add(f"{key(loose.value)}@{date}")
    return Draft("value", 0, loose.value, frozenset(facts), loose.label, subject=loose.subject)


def item_draft(loose: LooseValue) -> Draft:
    """An object without a row, as it was read back."""
    parts = loose.value.split(" ")
    facts = _leaf_keys(parts) | {together(parts)}
    return Draft("item", 0, loose.value, facts, loose.label, subject=loose.subject, layout=loose.layout)


def earlier_draft(line: str) -> Draft:
    """An older version, as it was read back."""
    return Draft("earlier", 0, line, value_keys(line.removeprefix(EARLIER)))


def options_draft(options: Options) -> Draft:
    text = OPTIONS + "; ".join("+".join(group) for group in options.groups)
    return Draft("options", options.position, text, frozenset(key(name) for group in options.groups for name in group))


def call_draft(call: Call) -> Draft:
    """A call on one line: `call name argument=value ...`."""
    text = call.text or f"call {call.name} {_compact(call.arguments)}".rstrip()
    return Draft("call", call.position, text, call_keys(call))


def _compact(value: object) -> str:
    if is_object(value):
        return " ".join(f"{n}=({_compact(v)})" if is_object(v) else f"{n}={_compact(v)}" for n, v in value.items())
    if is_list(value):
        return "[" + "; ".join(cell(item) for item in value) + "]"
    return shown(value)


def sentence_drafts(said: ProseMessage, must: frozenset[str], mentions: Mentions) -> Iterator[Draft]:
    """Sentences with their values, an item with the line that announces it; one that is itself a fact that must stay counts as a
    value too."""
    number = 0
    announcing: list[tuple[int, int]] = []
    for raw in said.text.split("\n"):
        item = _ITEM.match(raw)
        indent = len(raw) - len(raw.lstrip()) if item or announcing else 0
        if raw.strip() and not item and not indent:
            announcing = []
        while announcing and announcing[-1][0] >= indent:
            announcing.pop()
        lead = announcing[-1][1] if announcing else -1
        pieces = list(_line_pieces(raw))
        is_title = raw.startswith("#")
        for last, piece in enumerate(pieces, 1):
            number += 1
            is_lead = last == len(pieces) and (is_title or piece.endswith(":"))
            is_label = is_title or (is_lead and len(piece.split()) <= _LABEL_WORDS and not any(c.isdigit() for c in piece))
            facts = frozenset[str]() if is_label else value_keys(piece) | (frozenset((key(piece),)) & must)
            yield Draft(
                "sentence",
                said.position,
                piece,
                facts,
                f"{said.role} {said.tool}".strip(),
                line=number,
                lead=lead,
                is_lead=is_lead,
                is_item=bool(item),
                asked=mentions.asked(piece),
            )
            if is_lead:
                announcing.append((indent if item else -1, number))


def _line_pieces(raw: str) -> Iterator[str]:
    """The sentences of a line, without the marks of bullets, headings and bold type."""
    plain = _BOLD.sub(r"\1", _MARKS.sub("", raw))
    for sentence in sentences(plain):
        yield from [sentence] if len(sentence) <= _LONGEST_SENTENCE else _stretches(sentence)


def _stretches(sentence: str) -> Iterator[str]:
    """Parts of a sentence that is longer than any, ended at white space where there is some."""
    at = 0
    while at < len(sentence):
        end = at + _LONGEST_SENTENCE
        space = sentence.rfind(" ", at + 1, end) if end < len(sentence) else -1
        end = space if space > 0 else end
        if piece := sentence[at:end].strip():
            yield piece
        at = end
