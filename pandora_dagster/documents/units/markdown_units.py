"""Units of prose and Markdown: blocks by markdown-it, sentences over joined lines, lists with what introduces them."""

import re
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

from pandora_dagster.documents.units.line_formats import LineFormat, divide_lines
from pandora_dagster.documents.units.line_units import LineReader
from pandora_dagster.documents.units.paragraphs import is_labeled, is_title, underlined_headings, unwrapped
from pandora_dagster.documents.units.source_lines import Line, filled, trimmed
from pandora_dagster.documents.units.unit import UnitKind
from pandora_dagster.documents.units.unit_builder import UnitBuilder

_MARKDOWN = MarkdownIt("commonmark", {"maxNesting": 20}).disable(["code", "lheading", "html_block", "reference", "inline", "text_join"])
"""Blocks only: the content of a line is not parsed, and tables are a format of lines."""
_LEAVES = ("heading_open", "fence", "paragraph_open")
_QUOTE = re.compile(r"(?:\s{0,3}> ?)+")
_MARKED = re.compile(r"\s*(?:[-*+#>|`~=:_]|\d{1,9}[.)])|.{0,400}\|")
_LETTERED, _SENTENCE_ENDS = re.compile(r"\s*\(?[a-z]{1,2}\)\s"), ".!?。！？"
_LITERAL_INDENT = 3
"""Characters by which a paragraph is indented more than the one before it if it is literal text."""
_MAX_ITEM_CHARACTERS = 240
"""Characters up to which an item with several sentences is one unit."""
_MAX_LABEL_CHARACTERS = 160
"""Characters up to which an item or its first sentence is needed by what is below it."""
_TITLE_LEVEL = 8
"""A title without a mark of its own ranks below all headings."""


class MarkdownReader:
    """Adds the units of divide_lines of prose."""

    def __init__(self, builder: UnitBuilder, line_reader: LineReader) -> None:
        self.builder, self.line_reader = builder, line_reader
        self._levels: dict[str, int] = {}

    def read(self, lines: Sequence[Line]) -> None:
        """Add the units of `lines`; titles with a line of signs below them are headings as in Markdown."""
        at = 0
        for place, count, sign in underlined_headings(lines):
            self._blocks(lines[at:place])
            title = next(line for line in lines[place : place + count] if any(map(str.isalnum, line.text))).stripped()
            level = self._levels.setdefault(sign, len(self._levels) + 1)
            self.builder.open_heading(level, title.text, title.start, title.end)
            at = place + count
        self._blocks(lines[at:])

    def _blocks(self, lines: Sequence[Line]) -> None:
        if lines := trimmed(lines):
            _BlockWalk(self.builder, self.line_reader, lines).walk()


class _BlockWalk:
    """One pass over the block tokens of a stretch."""

    def __init__(self, builder: UnitBuilder, line_reader: LineReader, lines: Sequence[Line]) -> None:
        self.builder, self.line_reader, self.lines = builder, line_reader, lines
        self.lines_read = 0
        self.quotes = 0
        self.items: list[tuple[int, int]] = []  # level of the token, first unit of the item
        self.item_start: Line | None = None  # the first line of an item whose text has not been read
        self.lead: tuple[int, ...] = ()  # the unfinished sentence before `a)`, `b)`
        self.above: tuple[int, ...] = ()  # the same before a list, with no empty line between
        self.indent: int | None = None  # of the last paragraph

    def walk(self) -> None:
        """Paragraphs between blank lines where no line has a mark, which saves most of the time; else the blocks of Markdown."""
        if any(_MARKED.match(line.text) for line in self.lines):
            self._walk_blocks()
            return
        held: list[Line] = []
        for line in (*self.lines, Line("", 0)):
            if not line.is_blank:
                held.append(line)
            elif held:
                self._prose(held)
                held = []

    def _walk_blocks(self) -> None:
        for token in _MARKDOWN.parse("\n".join(line.text for line in self.lines)):
            if token.type in ("bullet_list_open", "ordered_list_open") and not self.items:
                self.builder.open_block()
                self.above = self.lead if token.map and token.map[0] == self.lines_read else ()
            elif token.type in ("bullet_list_close", "ordered_list_close") and token.level == 0:
                self.items = []
            elif token.type == "blockquote_open":
                self.quotes += 1
            elif token.type == "blockquote_close":
                self.quotes -= 1
            elif token.map and token.nesting >= 0:
                if token.type in _LEAVES:
                    self._unread(token.map[0])
                    self.lines_read = token.map[1]
                self._block(token, self.lines[token.map[0] : token.map[1]])
        self._unread(len(self.lines))

    def _unread(self, end: int) -> None:
        """Lines in no block: a bare `1.`, or what is nested deeper than Markdown is read."""
        for line in self.lines[self.lines_read : end]:
            if any(map(str.isalnum, line.text)):
                self.builder.open_block()
                self.builder.add_sentences(UnitKind.SENTENCE, [line])

    def _block(self, token: Token, lines: Sequence[Line]) -> None:
        if token.type == "list_item_open":
            self.item_start = lines[0]
            self.items = [item for item in self.items if item[0] < token.level]
        elif token.type == "heading_open":
            title = lines[0].stripped()
            self.builder.open_heading(int(token.tag[1]), title.text, title.start, title.end)
            self.lead, self.items = (), []
        elif token.type == "fence":
            self._fence(lines)
        elif token.type == "paragraph_open":
            self._paragraph(token, lines)

    def _fence(self, lines: Sequence[Line]) -> None:
        self.builder.open_block()
        body = trimmed(lines[1:-1] if len(lines) > 1 and lines[-1].text.strip(" >`~") == "" else lines[1:])
        for stretch in divide_lines(self.builder.source, body):
            if stretch.format is LineFormat.PROSE:
                self.builder.fence = lines[0].text.strip(" >")
                self.line_reader.code(stretch.lines)
                self.builder.fence = ""
            else:
                self.line_reader.read(stretch)

    def _paragraph(self, token: Token, lines: Sequence[Line]) -> None:
        if self.quotes:
            lines = [line.after(found.end()) if (found := _QUOTE.match(line.text)) else line for line in lines]
        lines = filled(lines)
        if not lines:
            return
        if token.level >= 2 + self.quotes and (self.item_start or self.items):
            self._item(token.level, unwrapped(lines, self.builder.layout, self.builder.language))
        else:
            self.items = []
            self._prose(lines)

    def _prose(self, lines: Sequence[Line]) -> None:
        """A paragraph; indented deeper than the one before it is literal text, which needs the sentence that introduces it."""
        self.builder.open_block()
        indent = min(line.indent for line in lines)
        if not self.quotes and self.indent is not None and indent >= self.indent + _LITERAL_INDENT:
            self.line_reader.code(lines, self.builder.label)
            return
        self.indent = indent
        self._sentences(unwrapped(lines, self.builder.layout, self.builder.language))

    def _sentences(self, groups: Sequence[Sequence[Line]]) -> None:
        """The units of a paragraph. `a)`, `b)` need the unfinished sentence before them, lines below a label need it."""
        units: list[int] = []
        label: tuple[int, ...] = ()
        for group in groups:
            is_lettered = bool(_LETTERED.match(group[0].text))
            kind = UnitKind.QUOTE if self.quotes else UnitKind.ITEM if is_lettered else UnitKind.SENTENCE
            added = self._add(kind, group, (*label, *(self.lead if is_lettered else ())))
            units += added
            if len(units) == 1 and len(group) == 1 and len(groups) > 1:
                label = self._label_of(units)
            if added and not is_lettered:
                is_open = self.builder.units[added[-1]].text.rstrip('*_ "”)')[-1:] not in _SENTENCE_ENDS
                self.lead = (added[-1],) if is_open else ()
        self.builder.label = self._label_of(units)

    def _add(self, kind: UnitKind, group: Sequence[Line], needs: Sequence[int] = (), level: int = 0) -> list[int]:
        if is_labeled(group):
            return [unit for unit in [self.builder.add_joined(kind, group, needs, level=level or self.quotes)] if unit is not None]
        return self.builder.add_sentences(kind, group, needs, level=level or self.quotes)

    def _item(self, level: int, groups: Sequence[Sequence[Line]]) -> None:
        """An item needs the item around it, or the line with a colon or the unfinished sentence before the list.

        Lines of their own below it that are not indented are no part of it, though Markdown says so: `(3)` behind `2.` in a law.
        """
        item_start, self.item_start = self.item_start, None
        end = next((n for n, group in enumerate(groups) if n and item_start and group[0].indent <= groups[0][0].indent), len(groups))
        own, below = groups[:end], groups[end:]
        around = [unit for depth, unit in self.items if depth < level]
        if below and not around and len(own) == 1 and len(own[0]) == 1 and is_title(own[0][0]):
            title = own[0][0].stripped()
            self.builder.open_heading(_TITLE_LEVEL, title.text, title.start, title.end)
        else:
            self._add_item(level, own, around[-1:], is_first=bool(item_start))
        if below:
            self.items = []
            self._sentences(below)

    def _add_item(self, level: int, groups: Sequence[Sequence[Line]], around: Sequence[int], *, is_first: bool) -> None:
        depth = max(1, level // 2)
        first = len(self.builder.units)
        needs = self.builder.label or self.above
        if around:
            needs = tuple(unit for unit in around if len(self.builder.units[unit].text) < _MAX_LABEL_CHARACTERS)
        short = len(groups) == 1 and sum(len(line.text) for line in groups[0]) <= _MAX_ITEM_CHARACTERS
        for number, group in enumerate(groups):
            kind = UnitKind.ITEM if is_first and not number else UnitKind.SENTENCE
            if short:
                self.builder.add_joined(kind, group, needs, level=depth)
            else:
                self._add(kind, group, needs, depth)
            if (
                not number
                and is_first
                and len(self.builder.units) == first + 1
                and len(self.builder.units[first].text) < _MAX_LABEL_CHARACTERS
            ):
                needs = (*needs, first)
        if is_first and len(self.builder.units) > first:
            self.items.append((level - 1, first))

    def _label_of(self, units: Sequence[int]) -> tuple[int, ...]:
        """The last sentence of a paragraph where it introduces what comes next; a title alone does so for a list."""
        if not units:
            return ()
        last = self.builder.units[units[-1]]
        introduces = last.text.rstrip("*_ ").endswith((":", "：")) or (len(units) == 1 and is_title(Line(last.text, last.start)))
        return (units[-1],) if introduces else ()
