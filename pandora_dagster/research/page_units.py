"""The statements of a page: sentences, lines, cells of tables with their headings. Only text that a visitor sees."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from pandora_dagster.contracts.web.page_doc import MIN_CONFIDENCE, OUTSIDE_KINDS, PageDoc, Zone, ZoneKind
from pandora_dagster.language.requests.asked_values import AskedKind, values_of
from pandora_dagster.language.sentences import sentences

_RULE_CELL = re.compile(r":?-{3,}:?")
_YEARS = re.compile(r"\b(?:19|20)\d\d(?:[/-]\d\d(?:\d\d)?)?\b")
_MAX_UNIT_CHARACTERS = 600
_MAX_LINE = 300
"""Characters of the line around a sentence that say what it is about."""


@dataclass(frozen=True, slots=True)
class PageUnit:
    """One statement. `quote` is in the page; `values` is its part that may hold the asked value; `context` is around it."""

    quote: str
    values: str
    context: str
    zone: Zone


def page_units(page: PageDoc, content_zones: Collection[int] = ()) -> Iterator[PageUnit]:
    """The statements of a page in order. Of its header only lines with a date: pages are dated there.

    `content_zones`: zones, counted from 1, that are read whatever their confidence.
    """
    heading = ""
    for number, zone in enumerate(page.zones, 1):
        if zone.visible and zone.kind is ZoneKind.HEADER:
            lines = (_unmarked(line) for line in zone.text.split("\n"))
            yield from (PageUnit(line, line, "", zone) for line in lines if any(values_of(AskedKind.DATE, line, page.language)))
        if not zone.visible or zone.kind in OUTSIDE_KINDS or (zone.confidence < MIN_CONFIDENCE and number not in content_zones):
            continue
        rows: list[list[str]] = []
        for line in [*zone.text.split("\n"), ""]:
            if line.startswith("|"):
                rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
                continue
            yield from _table_units(rows, heading, zone)
            rows = []
            text = _unmarked(line)
            if line.startswith("#") or (zone.kind is ZoneKind.TITLE and text):
                heading = text
            if text:
                yield from (
                    PageUnit(sentence, sentence, heading if sentence == text else f"{heading} {text[:_MAX_LINE]}", zone)
                    for sentence in sentences(text, page.language)
                    if len(sentence) <= _MAX_UNIT_CHARACTERS
                )


def doubtful_zones(page: PageDoc) -> dict[int, Zone]:
    """Zones that `page_units` leaves out since their sources disagree whether the page is about them, by number."""
    return {
        number: zone
        for number, zone in enumerate(page.zones, 1)
        if zone.visible and zone.kind not in OUTSIDE_KINDS and zone.confidence < MIN_CONFIDENCE and zone.text.strip()
    }


def _unmarked(line: str) -> str:
    """A line without the marks of headings and lists that begin it, each with its blank: `-20 °C` keeps its minus."""
    text = line.lstrip("#- ").rstrip()
    marks = line[: len(line) - len(line.lstrip("#- "))]
    return marks[len(marks.rstrip("-")) :] + text if text else ""


def _table_units(rows: list[list[str]], heading: str, zone: Zone) -> Iterator[PageUnit]:
    rows = [row for row in rows if not all(_RULE_CELL.fullmatch(cell) for cell in row)]
    columns = max(map(len, rows), default=0)
    header: list[str] = []
    above: list[str] = []
    for row in rows:
        quote = " ".join(filter(None, row))
        if len(row) < columns:
            heading = quote or heading
        elif columns <= 2:
            yield PageUnit(quote, row[-1], heading, zone)
        elif not any(_is_datum(cell) for cell in row) or not header:
            header = [f"{title} {cell}".strip() for title, cell in zip(header or [""] * columns, row, strict=True)]
        else:
            for place in range(1, columns):
                label = f"{heading} {row[0]} {header[place]}"
                yield PageUnit(_stretch(row, above, place), row[place], label, zone)
        above = row


def _is_datum(cell: str) -> bool:
    """Whether a cell has a number that is no year: a heading has none."""
    return any(character.isdigit() for character in _YEARS.sub("", cell))


def _stretch(row: list[str], above: list[str], place: int) -> str:
    """The cells around one, without those that repeat the cell before or above: a cell over several rows is in the page once."""
    first, last = place, place
    while first > 0 and row[first - 1] not in (row[first], *above[first - 1 : first]):
        first -= 1
    while last + 1 < len(row) and row[last + 1] not in (row[last], *above[last + 1 : last + 2]):
        last += 1
    return " ".join(filter(None, row[first : last + 1]))
