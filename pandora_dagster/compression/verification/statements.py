"""An answer as statements: the units of its text, each with the labels that it cites and what kind of statement it is.

A list item, a table row or a quotation is one statement; a paragraph has one for each sentence. A citation at the end of a sentence
covers the uncited sentences of its paragraph before it. A line of a list or table that cites nothing has the labels of the line that
introduces it, and an introduction that cites nothing those of the lines that it introduces.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile

from pandora_dagster.documents.citations import citation_spans, cited_labels
from pandora_dagster.documents.units.unit import Unit, UnitKind
from pandora_dagster.documents.units.unit_reader import read_units
from pandora_dagster.language.courtesy import is_courtesy, is_offer
from pandora_dagster.language.cues import ends_as_question
from pandora_dagster.language.no_result_phrases import states_absence


class StatementKind(StrEnum):
    """What a statement does. A question claims nothing; courtesy, offer and absence claim nothing but their values, names and codes."""

    FACT = "fact"
    QUESTION = "question"
    ABSENCE = "absence"
    COURTESY = "courtesy"
    OFFER = "offer"


_CLAUSE_END = re.compile(r";\s|,?\s(?:but|however|aber|jedoch|sondern|mais|pero|sino|maar|però|mas)\s", re.IGNORECASE)
"""Where another statement of its cited_by_unit begins within a sentence: semicolon or adversative conjunction."""
_SILENT = frozenset({UnitKind.CODE, UnitKind.HUNK, UnitKind.SPEAKER, UnitKind.HEADER})
"""Kinds of units that state nothing."""
_MAX_LEAD_WORDS = 3
"""Words, the citation among them, that say whose words follow: `As [1] says`."""
_STRETCH_END = re.compile(r"\[\d{1,4}\]\s*+[.!?]?[*_]*\s*$")
"""A citation at the end of a sentence."""
_HEADING_MARK = re.compile(r"^#{1,6}\s*(?:\d+[.)]\s)?")
_LISTED = frozenset({UnitKind.ITEM, UnitKind.ROW, UnitKind.QUOTE})


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of an answer. `text` is without its citations; `items` counts the lines that it introduces."""

    text: str
    labels: tuple[str, ...]
    kind: StatementKind
    items: int = 0
    context: str = ""
    """The headings, table header and introduction above it."""


def read_statements(answer: str, language: str) -> tuple[Statement, ...]:
    """The statements of `answer` in order, without code, headings and lines that hold no word."""
    units = read_units(answer, language)
    cited_by_unit = {unit.order: cited_labels(unit.text) for unit in units if unit.kind not in _SILENT}
    _join_bare_citations(units, cited_by_unit)
    _cite_stretches(units, cited_by_unit)
    introduced = {u.order: _introduced_lines(u, units) for u in units if _is_introduction(u)}
    labels_by_unit = dict(cited_by_unit)
    for order, lines in introduced.items():
        if cited_by_unit[order]:
            labels_by_unit |= {line: cited_by_unit[order] for line in lines if not cited_by_unit.get(line)}
        else:
            labels_by_unit[order] = tuple(dict.fromkeys(label for line in lines for label in cited_by_unit.get(line, ())))
    return tuple(_statements(units, labels_by_unit, introduced))


def _statements(
    units: tuple[Unit, ...], labels_by_unit: dict[int, tuple[str, ...]], introduced: dict[int, list[int]]
) -> Iterator[Statement]:
    """The statements of units with their labels. `introduced`: an introduction -> the lines that it introduces."""
    for unit in units:
        text = without_citations(_HEADING_MARK.sub("", unit.text) if unit.kind is UnitKind.HEADING else unit.text)
        if unit.order in labels_by_unit and any(map(str.isalnum, text)):
            above = " ".join(without_citations(units[n].text) for n in unit.needs if n < unit.order)
            is_title = unit.kind is UnitKind.HEADING or (unit.order in introduced and not introduced[unit.order] and text.endswith(":"))
            kind = StatementKind.OFFER if is_title else kind_of(text)
            items = len(introduced.get(unit.order, ()))
            parts = _cited_parts(unit.text) if unit.kind is UnitKind.SENTENCE and kind is StatementKind.FACT else []
            if len(parts) > 1:
                yield from (Statement(part, labels or labels_by_unit[unit.order], kind, items, above) for part, labels in parts)
            else:
                yield Statement(text, labels_by_unit[unit.order], kind, items, above)


def _cited_parts(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """The parts of a sentence, each up to the citations behind it, with their labels; a part of a word or two belongs to the next one."""
    parts: list[tuple[str, tuple[str, ...]]] = []
    part_start = at = 0
    labels: tuple[str, ...] = ()
    for start, end, label in (*citation_spans(text), (len(text), len(text), "")):
        if text[at:start].strip() and labels and len(text[part_start:at].split()) > _MAX_LEAD_WORDS:
            parts.append((without_citations(text[part_start:at]), labels))
            part_start, labels = at, ()
        labels, at = (*labels, *([label] if label else [])), end
    last = without_citations(text[part_start:])
    return [*parts, (last, labels)] if any(map(str.isalnum, last)) else parts


def kind_of(text: str) -> StatementKind:
    """The kind of a statement by its form. One of several clauses is a fact where one of them is."""
    kinds = [_clause_kind(clause.strip()) for clause in _CLAUSE_END.split(text) if any(map(str.isalnum, clause))]
    return next((kind for kind in kinds if kind is StatementKind.FACT), kinds[0] if kinds else StatementKind.COURTESY)


def _clause_kind(text: str) -> StatementKind:
    if ends_as_question(text):
        return StatementKind.QUESTION
    if states_absence(text):
        return StatementKind.ABSENCE
    if is_offer(text):
        return StatementKind.OFFER
    return StatementKind.COURTESY if is_courtesy(text) else StatementKind.FACT


def without_citations(text: str) -> str:
    """`text` without its citations and the blanks before them."""
    parts, at = list[str](), 0
    for start, end, _ in citation_spans(text):
        parts.append(text[at:start].rstrip())
        at = end
    return "".join((*parts, text[at:])).strip()


def _introduced_lines(introduction: Unit, units: Sequence[Unit]) -> list[int]:
    """The lines that need an introduction, or else those of the list or table that follows it, by their order."""
    if needing := [unit.order for unit in units if introduction.order in unit.needs and unit.kind in _LISTED]:
        return needing
    following = takewhile(lambda unit: unit.kind in _LISTED or unit.kind is UnitKind.HEADER, units[introduction.order + 1 :])
    return [unit.order for unit in following if unit.kind in _LISTED]


def _is_introduction(unit: Unit) -> bool:
    return unit.kind is UnitKind.SENTENCE and without_citations(unit.text).endswith(":")


def _cite_stretches(units: tuple[Unit, ...], cited_by_unit: dict[int, tuple[str, ...]]) -> None:
    """Give the citation at the end of a sentence to the sentences of its paragraph before it, up to one that cites."""
    labels, block = tuple[str, ...](), -1
    for unit in reversed(units):
        cited = cited_by_unit.get(unit.order, ())
        if unit.kind is not UnitKind.SENTENCE or unit.block != block or cited:
            labels, block = cited if _STRETCH_END.search(unit.text) else (), unit.block
        elif labels and unit.order in cited_by_unit:
            cited_by_unit[unit.order] = labels


def _join_bare_citations(units: tuple[Unit, ...], cited_by_unit: dict[int, tuple[str, ...]]) -> None:
    """Give citations that are a unit of their cited_by_unit to the statement before them."""
    last = -1
    for unit in units:
        if unit.order not in cited_by_unit:
            continue
        if any(map(str.isalnum, without_citations(unit.text))):
            last = unit.order
        elif last >= 0:
            cited_by_unit[last] = (*cited_by_unit[last], *cited_by_unit[unit.order])
