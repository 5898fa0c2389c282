"""Reads sections 2 and 4 of context.md, and `toolresults.md`, into passages (formats: docs/reference/call-documents.md)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import cast

from pandora_dagster.documents.citations import REFERENCES_TITLE
from pandora_dagster.documents.delimited_blocks import block_body, fenced_spans
from pandora_dagster.documents.meta import subsections
from pandora_dagster.language.detection import short_text_language
from pandora_dagster.phases.gather.memory_source import EARLIER_SUFFIX
from pandora_dagster.runtime.extractive.evidence.citation_labels import Labels
from pandora_dagster.runtime.extractive.evidence.header_lines import as_list, as_mapping, json_value, split_at_heads
from pandora_dagster.runtime.extractive.evidence.questions import Question
from pandora_dagster.runtime.extractive.evidence.quotes import OUTDATED_MARK, read_quote, split_quotes
from pandora_dagster.runtime.extractive.evidence.source_passages import Passage, PassageReader, table_cells
from pandora_dagster.runtime.extractive.evidence.tool_results import ToolResult
from pandora_dagster.runtime.extractive.queries.content_words import content_keys

_META_BLOCK = re.compile(r"^```yaml\n_meta:\n(?:(?!```)[^\n]*\n)*+```[ \t]*$", re.MULTILINE)
_SKIPPED_PARTS = frozenset((REFERENCES_TITLE, "Context Assessment"))
_DATED_VALUE = re.compile(r"(.*) \((\d{4}-\d{2}-\d{2})\)", re.DOTALL)
_RESEARCH_FIGURES = re.compile(r"^\*\*(?:Topic|Quality Score|Age|Expires|Expired|Top Results):\*\*.*$", re.MULTILINE)
_SUMMARY = re.compile(r"^\*\*Summary:\*\* ")
_TABLE_RULE = re.compile(r"^\|[\s|:-]+\|?$")
_TURN_CELL = re.compile(r"^(\d{1,9})(?: \[\d{1,4}\]| \(unlinked\))?$")
_QUOTED_TURN = re.compile(r"^\[(\d{1,4})\] Turn (\d+) \(([^)]*)\):\n", re.MULTILINE)
_RESULT_FRAMES = re.compile(r"^\*\*(?:Status|Arguments|File|Outcome|Searched|Page|Notice):\*\*.*$", re.MULTILINE)
_CITED_ITEM = re.compile(r"- .*(\[\d{1,4}\])$")
_FAILED_STATUS = re.compile(r"\*\*Status:\*\* error\b")
_BUNDLED_HEAD = re.compile(r"^## (\d+)\. [^\n]+\n\n\Z", re.MULTILINE)
_TURN_ID = re.compile(r"turn_0*(\d{1,9})")
_TITLE_FIELDS = frozenset(("title", "name", "product", "model"))
_MAX_FIELD_WORDS = 14
_MAX_FIELDS = 6
_NAME_BREAK = re.compile(r"[_.]|(?<=[a-z])(?=[A-Z])")


class SectionReader:
    """Reads sections into passages; `asked` decides which fields of a page are shown. `whole_code`: a fenced block is one passage."""

    def __init__(self, labels: Labels, asked: Question, *, whole_code: bool = False) -> None:
        self._labels, self._asked = labels, asked
        self._reader = PassageReader(labels, whole_code=whole_code)

    def gathered(self, body: str) -> list[Passage]:
        """Section 2: the rows of its tables, and the prose of its other parts."""
        only_label = self._labels.sources[0].label if len(self._labels.sources) == 1 else None
        parts = _parts(body).items()
        return [p for title, text in parts for p in self._part(_META_BLOCK.sub("", text), self._labels.near(title) or only_label)]

    def results(self, body: str) -> list[Passage]:
        """Section 4: what each tool gave, without what it was asked."""
        passages: list[Passage] = []
        for text in _parts(body).values():
            if not _FAILED_STATUS.match(text):
                label = self._labels.of(text.split("\n", 1)[0]) or next((s.label for s in self._labels.sources), None)
                passages += self._result_passages(_RESULT_FRAMES.sub("", text).strip(), label)
        return passages

    def research(self, body: str) -> list[Passage]:
        """The claims that research found, each under its page: they answer the question that the tool was asked."""
        texts = [text for title, text in _parts(body).items() if title.endswith(": internet.research") and not _FAILED_STATUS.match(text)]
        cited = [line for text in texts for line in text.split("\n") if self._item_label(line)]
        return [p for line in cited for p in self._result_passages(line, None)]

    def raw(self, bundle: str, reported: Sequence[ToolResult]) -> list[Passage]:
        """`toolresults.md`: the results that section 4 calls a success, each under the source that it can be cited by."""
        passages = list[Passage]()
        for number, result in _bundled_results(bundle):
            if number <= len(reported) and reported[number - 1].ok:
                passages += self._raw_passages(result.strip(), reported[number - 1])
        return passages

    def _part(self, text: str, label: str | None) -> Iterator[Passage]:
        for block in re.split(r"\n{2,}", _RESEARCH_FIGURES.sub("", text)):
            lines = [line for line in block.strip().split("\n") if line.strip()]
            if len(lines) > 1 and lines[0].startswith("|") and _TABLE_RULE.match(lines[1]):
                yield from self._table(table_cells(lines[0]), [table_cells(line) for line in lines[2:]], label)
            else:
                for line in lines:
                    yield from self._line(_SUMMARY.sub("", line.removeprefix("- ")), label)

    def _line(self, line: str, label: str | None) -> Iterator[Passage]:
        line_label = self._labels.of(line) or label
        yield from self._fact(
            self._labels.without(line), Passage("", line_label, (), source=f"label {line_label}", said_by_user=line.startswith("("))
        )

    def _table(self, header: list[str], rows: list[list[str]], label: str | None) -> Iterator[Passage]:
        if header[:2] == ["URL", "Data Point"]:
            for _, group in groupby(rows, key=lambda row: row[0]):
                yield from self._page([row for row in group if len(row) > 2])
            return
        for row in filter(None, rows):
            turn = int(found.group(1)) if (found := _TURN_CELL.match(row[0])) and "Key Facts" in header else None
            row_label = self._labels.of(" ".join(row)) if turn is None else self._labels.of(row[0]) or self._labels.turn(turn)
            base = Passage(
                "", row_label or label, (), turn=turn, source=f"turn {turn}" if turn is not None else f"label {row_label or label}"
            )
            cells = [self._labels.without(cell) for cell in row]
            if turn is not None:
                for fact in (part for cell in cells[2:] if cell for part in split_quotes(cell)):
                    yield from self._fact(fact.strip(), base)
            elif header[:2] == ["Preference", "Value"] and len(row) > 1:
                yield self._preference(cells[0], cells[1], base)
            elif header[:1] == ["Claim"]:
                yield self._reader.line(cells[0], base)
            else:
                yield self._reader.line(", ".join(f"{h}: {c}" for h, c in zip(header, cells, strict=False) if c), base)

    def _preference(self, key: str, value: str, base: Passage) -> Passage:
        """A stored value; an earlier one has its day, as no longer current."""
        name = key.removesuffix(EARLIER_SUFFIX)
        if name != key and (dated := _DATED_VALUE.fullmatch(value)):
            value, base = dated[1], replace(base, date=f"{dated[2]}{OUTDATED_MARK}")
        return self._reader.line(f"{name}: {value}", base, above=_NAME_BREAK.sub(" ", name))

    def _fact(self, text: str, base: Passage) -> Iterator[Passage]:
        read = read_quote(text)
        quoted_base = replace(base, date=read.date, speaker=read.speaker, tool=read.tool) if read else base
        if unmarked := self._labels.unmarked(read.text if read else text):
            yield self._reader.line(unmarked, quoted_base)

    def _page(self, rows: list[list[str]]) -> Iterator[Passage]:
        """A page as one record: its title and the fields that are asked for; long text unit by unit."""
        if not rows:
            return
        address, label = rows[0][0], self._labels.of(rows[0][0])
        fields = {row[1]: row[2] for row in rows}
        title = next((f"{name}: {value}" for name, value in fields.items() if name.lower() in _TITLE_FIELDS), "")
        base = Passage("", label, (), source=f"label {label}")
        above = f"{_NAME_BREAK.sub(' ', re.sub(r'[/-]', ' ', address))} {title}"
        short_fields = {name: value for name, value in fields.items() if len(value.split()) <= _MAX_FIELD_WORDS}
        if short_fields:
            chosen = self._asked_fields(short_fields)
            other_fields = [f"{name}: {value}" for name, value in short_fields.items()][:_MAX_FIELDS]
            text = ", ".join(dict.fromkeys([*([title] if title else []), *(chosen or other_fields)]))
            yield self._reader.line(text, replace(base, is_page=True), above=above)
        heading_keys = frozenset(content_keys(above, short_text_language(above)))
        for value in (v for v in fields.values() if len(v.split()) > _MAX_FIELD_WORDS):
            yield from (replace(p, above=p.above | heading_keys) for p in self._reader.units(value, base))

    def _asked_fields(self, fields: Mapping[str, str]) -> list[str]:
        """The fields that share words with the question beside the title; else those that hold the kind of value that it wants."""
        code = self._asked.language
        asked_keys = set(content_keys(self._asked.text, code))
        asked_fields, kind_fields = list[str](), list[str]()
        for name, value in fields.items():
            name_keys = set(content_keys(_NAME_BREAK.sub(" ", name), code))
            is_abbreviated = any(key.startswith(part) for key in asked_keys for part in name_keys if len(part) > 3)
            if name.lower() not in _TITLE_FIELDS and (
                asked_keys & name_keys or is_abbreviated or asked_keys.intersection(content_keys(value, code))
            ):
                asked_fields.append(f"{name}: {value}")
            elif name.lower() not in _TITLE_FIELDS and self._asked.is_value(value):
                kind_fields.append(f"{name}: {value}")
        return asked_fields or kind_fields

    def _result_passages(self, text: str, label: str | None) -> Iterator[Passage]:
        """A result's text: earlier turns that it quotes, else its units."""
        quoted_turns = split_at_heads(_QUOTED_TURN.finditer(text), text)
        if not quoted_turns and text:
            for own, lines in groupby(text.split("\n"), key=self._item_label):
                cited = own or label
                shown = "\n".join(line.removeprefix("- ") if own else line for line in lines)
                yield from self._reader.units(shown, Passage("", cited, (), source=f"label {cited}"))
        for head, body in quoted_turns:
            turn = int(head[2])
            yield from self._reader.turn(body.strip(), turn=turn, label=self._labels.turn(turn) or head[1], date=head[3])

    def _item_label(self, line: str) -> str | None:
        """The label at the end of an item of a list, which names where the item is from."""
        found = _CITED_ITEM.match(line)
        return self._labels.of(found[1]) if found else None

    def _raw_passages(self, raw: str, reported: ToolResult) -> Iterator[Passage]:
        value, only_label = json_value(raw), reported.only
        if value is None:
            yield from self._result_passages(raw, only_label) if only_label else ()
            return
        if "claims" in as_mapping(value):
            return  # research: section 4 has its claims, each with its own page
        for item in as_list(value) or [value]:
            record = as_mapping(item)
            turn = _TURN_ID.fullmatch(str(record.get("turn_id", "")))
            label = self._labels.turn(int(turn[1])) if turn else only_label
            if turn and label:
                date = str(record.get("created_at", ""))[:10]
                yield from self._reader.turn(str(record.get("text", "")), turn=int(turn[1]), label=label, date=date)
            elif label and record:
                fields = {str(key): cast("object", entry) for key, entry in record.items()}
                text = f"{fields['key']}: {fields['value']}" if {"key", "value"} <= fields.keys() else ""
                base = Passage("", label, (), source=f"label {label}")
                yield from [self._reader.line(text, base)] if text else self._reader.value(fields, base)


def _bundled_results(bundle: str) -> Iterator[tuple[int, str]]:
    """The number and the text of each result: the second of two code blocks under a numbered heading."""
    blocks = list(fenced_spans(bundle))
    after = 0
    for (asked_start, asked_end), (start, end) in pairwise(blocks):
        head = _BUNDLED_HEAD.search(bundle, after, asked_start)
        after = asked_end
        if head and bundle[asked_end:start] == "\n\n":
            yield int(head[1]), block_body(bundle[start:end])


def _parts(body: str) -> dict[str, str]:
    """The parts of a section by title, what precedes the first under ""; without lists of sources and the assessment."""
    lead = {} if body.startswith("### ") else {"": body.split("\n### ", 1)[0]}
    return {title: text for title, text in (lead | subsections(body)).items() if title not in _SKIPPED_PARTS}
