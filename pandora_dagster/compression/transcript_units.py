"""What of a transcript can be kept: prefixes of table rows, older versions, loose values, options, calls, sentences.

Knows rows, tables and talk; gives drafts with the keys of their facts. Knows nothing of weights or budgets.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pandora_dagster.compression.json_parts import is_list, is_object, leaves, shown
from pandora_dagster.compression.language import sentences
from pandora_dagster.compression.mentions import Mentions, call_keys, value_keys
from pandora_dagster.compression.messages import Call, Said
from pandora_dagster.compression.normal import key
from pandora_dagster.compression.records import DATE, IDENTIFIER, Options, cell, innermost_name, is_identity_map, item_text, items
from pandora_dagster.compression.reread import EARLIER, OPTIONS, LooseValue
from pandora_dagster.compression.tables import Entry, Table

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
    `subject` is the record that a value stands in, `layout` the names of an object's members. A sentence stands on line `line` of
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
    line: int = -1
    lead: int = -1
    is_lead: bool = False
    is_item: bool = False
    asked: frozenset[str] = frozenset()
    """Of the shortest stretch of a row that holds them, and of a sentence: the stems of the question that stand in it."""


def table_drafts(number: int, table: Table, mentions: Mentions) -> Iterator[Draft]:
    """Every prefix of every row, its single identifiers and states, and what older versions had."""
    for index, entry in enumerate(table.entries):
        cells = [cell(entry.row.values.get(name, "")) for name in table.columns]
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


def _bound(table: Table, entry: Entry, first_cell: str) -> tuple[str, int] | None:
    """The fact that an identity and its date stand together, and the column from which on they do."""
    named = next(((n, v) for n, v in entry.row.values.items() if isinstance(v, str) and DATE.fullmatch(v)), None)
    if not named or not IDENTIFIER.fullmatch(first_cell):
        return None
    name, date = named
    return f"{key(first_cell)}@{date}", 0 if name in table.constants else table.columns.index(name) + 1


def _prefixes(
    number: int,
    index: int,
    table: Table,
    entry: Entry,
    cells: Sequence[str],
    facts: Sequence[frozenset[str]],
    bound: tuple[str, int] | None,
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
        if bound and level >= bound[1]:
            covered.add(bound[0])
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


def _single_values(table: Table, entry: Entry, bound: tuple[str, int] | None) -> Iterator[Draft]:
    """Identifiers and states by themselves: an identity under its column's name, any other under the identity it belongs to."""
    for column, name in enumerate(table.columns):
        value = entry.row.values.get(name, "")
        for leaf in dict.fromkeys(leaves(value)):
            if not 1 < len(leaf) < _LONGEST_LOOSE or not (IDENTIFIER.fullmatch(leaf) or _STATE.fullmatch(leaf)):
                continue
            label = (innermost_name(value, leaf) or name).replace(" ", "_")
            if bound and column == 0:
                date = bound[0].rsplit("@", 1)[1]
                yield Draft("value", entry.row.position, leaf, frozenset((key(leaf), bound[0])), f"{label} {date}")
            else:
                subject = "" if leaf == entry.row.identity else _as_subject(entry.row.identity)
                yield Draft("value", entry.row.position, leaf, frozenset((key(leaf),)), label, subject=subject)


def _as_subject(identity: str) -> str:
    """An identity as the head of a list: short, and without the signs that part the list."""
    plain = " ".join(re.sub(r"[;:,|]", " ", identity).split())
    return plain if len(plain) <= _LONGEST_LOOSE else ""


def _single_items(table: Table, entry: Entry) -> Iterator[Draft]:
    for name in table.columns:
        value = entry.row.values.get(name)
        is_named = is_identity_map(value)
        for item in items(value):
            text = item_text(item, named=is_named)
            facts = _leaf_keys(item) | {together(leaves(item))}
            form = "" if is_named else "[" + ",".join(item) + "]"
            subject = _as_subject(entry.row.identity)
            yield Draft("item", entry.row.position, text, facts, name.replace(" ", "_"), subject=subject, layout=form)


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
    date = loose.label.rsplit(" ", 1)[-1]
    if DATE.fullmatch(date):
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


def sentence_drafts(said: Said, must: frozenset[str], mentions: Mentions) -> Iterator[Draft]:
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
