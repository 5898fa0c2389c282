"""Documents as spans: sentences, list items, table rows, JSON records, code blocks, each verbatim with its label and neighbourhood.

Knows the formats of docs/reference/call-documents.md; nothing that a document says changes how it is read.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from pandora_dagster.documents.citations import REFERENCES_TITLE
from pandora_dagster.language.sentences import sentences
from pandora_dagster.runtime.extractive.spans.citation_labels import Labels
from pandora_dagster.runtime.extractive.spans.document_lines import (
    RULE,
    Quote,
    cells,
    frames,
    given_by_tool,
    is_page_table,
    is_table,
    items,
    plain,
    read_quote,
    said_by_person,
    told,
    turn_of,
)
from pandora_dagster.runtime.extractive.spans.structured_records import decode, long_values, named_by, packed_table, records, tell
from pandora_dagster.runtime.extractive.words.query_intent import Question
from pandora_dagster.runtime.extractive.words.word_matching import stem, terms, words

_META = re.compile(r"^```yaml\n_meta:\n.*?^```[ \t]*$", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"^(`{3,}|~{3,})([^\n]*)\n(.*?)(?:^\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^(?:#{1,6} +|={3,} *)(.*?)(?: *=*)$")
_JSON = re.compile(r"(?:^|[\s:`(|])([\[{])(?=\s*(?:[\"{\[]|$))")
_QUOTED_TURN = re.compile(r"^\[(\d{1,4})\] Turn \d+ \(([^)]*)\):$")
_ARGUMENTS = re.compile(r"^(?:\*\*)?Arguments:(?:\*\*)?$")
_SPEAKERS = re.compile(r"^Speakers: (.+)$")
"""A quoted turn's first line where its messages carry names (`selection.excerpts`)."""
_SPEAKER = re.compile(r"^(?:\*\*)?([A-Za-z][\w .'-]{0,30}?)(?:\*\*:|:\*\*|:) ")
_SKIPPED = frozenset((REFERENCES_TITLE, "Context Assessment"))
_SHORT_ITEM_WORDS = 60
_HEAD_WORDS = 14


@dataclass(frozen=True, slots=True)
class Span:
    """A verbatim piece. `block` numbers the paragraph it stands in; `stems` hold its words and those of its speaker."""

    text: str
    label: str | None
    block: int
    stems: frozenset[str]
    kind: str = "sentence"
    """`sentence`, `record`, `row` or `code`."""
    named: frozenset[str] = frozenset()
    """What a record is a record of, as stems."""
    turn: int | None = None
    """The turn that its label leads to; None where it leads to none."""
    speaker: str = ""
    """Who said it, where the document tells."""
    date: str = ""
    """The day of its turn, where the document tells."""
    place: int = 0
    """Spans that follow each other in one reading have places that do."""
    tool: str = ""
    """The tool whose result in an earlier turn says it."""
    own: bool = False
    """Whether a person said it, where the document tells: what a tool found or an assistant answered is not the person's word."""
    about: frozenset[str] = frozenset()
    """Stems of what its page or note is about as a whole, by title and address."""


class SpanReader:
    """Reads documents one after the other into spans; `asked` decides which fields of a JSON record are told, None = all."""

    def __init__(self, labels: Labels, asked: Question | None) -> None:
        self._labels = labels
        self._asked = asked
        self._block = 0
        self._label: str | None = None
        self._quoted = False
        self._speakers: frozenset[str] = frozenset()
        self._speaker = ""
        self._date = ""
        self._place = 0
        self._own = False
        self._tool = ""

    def read(self, text: str, *, label: str | None = None, quoted: bool = False, date: str = "") -> list[Span]:
        """Spans of `text` in order, said on `date`. `label`: what a piece is cited under that names no source itself.

        `quoted`: the text is an earlier turn; its own `[n]` lead elsewhere, so all of it is cited under `label`.
        """
        self._label, self._quoted, self._date, self._speakers, self._own, self._tool = label, quoted, date, frozenset(), False, ""
        found = [self._placed(s) for s in self._read(_META.sub("", text))]
        self._block += 1
        return found

    def pause(self) -> None:
        """What is read next does not follow what was read last."""
        self._block += 1

    def _placed(self, span: Span) -> Span:
        about = span.about | self._labels.subject(span.label)
        return replace(span, turn=self._labels.number(span.label), place=self._next(), about=about)

    def _next(self) -> int:
        self._place += 1
        return self._place

    def read_records(self, value: object, *, label: str | None) -> list[Span]:
        """Spans of a JSON value, all of it cited under `label`."""
        self._label, self._quoted, self._tool = label, True, ""
        return [replace(s, turn=self._labels.number(label)) for s in self._records(value, label)]

    def _read(self, text: str) -> Iterator[Span]:
        at, skip, paragraph, before = 0, False, list[str](), ""
        while at < len(text):
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            line = text[at:end]
            if not skip and (table := packed_table(text, at)):
                yield from self._paragraph(paragraph)
                paragraph, at = [], table[1] + 1
                self._block += 1
                yield from self._records(table[0], self._label)
                continue
            heading = _HEADING.match(line)
            fence = _FENCE.match(text, at) if line.startswith(("```", "~~~")) else None
            found = None if heading or fence or skip or frames(line) else _json(text, at, line)
            if heading or fence or found or not line.strip():
                yield from self._paragraph(paragraph)
                paragraph = []
                self._block += 1
            if heading:
                skip = heading.group(1) in _SKIPPED
                self._enter(line, heading.group(1))
            elif fence and not skip and not _ARGUMENTS.match(before):
                yield from self._fenced(fence, is_result=before == "Result:")
            elif found:
                yield from self._paragraph(_lead(line[: found[2]]))
                yield from self._records(found[0], self._of(line))
            elif self._quoted and (named := _SPEAKERS.match(line)):
                self._speakers = frozenset(named.group(1).split(", "))
            elif not skip and line.strip():
                self._head(line)
                self._own = said_by_person(line, before=self._own) if self._quoted else False
                self._tool = given_by_tool(line, before=self._tool) if self._quoted else ""
                paragraph += [] if frames(line) or _QUOTED_TURN.match(line) else [line]
            before = line.strip() or before
            at = fence.end() + 1 if fence else found[1] if found else end + 1
        yield from self._paragraph(paragraph)

    def _enter(self, line: str, title: str) -> None:
        if frames(title):
            self._quoted, self._date, self._speakers = False, "", frozenset()
        if not self._quoted:
            self._label = self._labels.of(line) or self._labels.near(title) or self._label

    def _head(self, line: str) -> None:
        """A line that names what follows may set the label: a quoted turn's first line, a status line, a short `...:` line."""
        turn = _QUOTED_TURN.match(line)
        if turn:
            self._label, self._quoted = self._labels.of(line) or self._label, True
            self._date, self._speakers = turn.group(2), frozenset()
        elif line.startswith("**Status:** ") or (line.rstrip().endswith((":", ":**")) and len(line.split()) <= _HEAD_WORDS):
            self._label = self._of(line)

    def _of(self, text: str) -> str | None:
        return self._label if self._quoted else self._labels.of(text) or self._label

    def _unmarked(self, text: str) -> str:
        return self._labels.unmarked(text) if self._quoted else self._labels.without(text)

    def _fenced(self, fence: re.Match[str], *, is_result: bool) -> Iterator[Span]:
        body = fence.group(3).strip()
        decoded = decode(body, 0) if body[:1] in ("{", "[") else None
        if decoded and decoded[1] == len(body):
            yield from self._records(decoded[0], self._label)
        elif is_result:
            yield from self._paragraph(body.split("\n"))
        elif body:
            yield Span(fence.group(0).rstrip("\n"), self._label, self._block, frozenset(terms(body)), "code")

    def _records(self, value: object, label: str | None, *, is_page: bool = False) -> Iterator[Span]:
        for groups in records(value):
            pairs = [p for g in groups for p in g.pairs]
            own = label if self._quoted else self._labels.of(" ".join(p.value for p in pairs)) or label
            stems = {t for p in pairs for t in p.key_stems | p.value_stems} | {
                stem(w) for g in groups for key in g.path for w in words(key)
            }
            if line := tell(groups, self._asked, is_page=is_page):
                yield Span(line, own, self._block, frozenset(stems), "record", named_by(groups))
            for prose in long_values(groups):
                yield from self._sentences(prose, own)
            self._block += 1

    def _paragraph(self, lines: list[str]) -> Iterator[Span]:
        first = plain(lines[0]) if lines else ""
        self._speaker = next((name for name in self._speakers if first.startswith(f"{name}: ")), "")
        if is_table(lines):
            yield from self._table(lines)
            return
        if self._speaker:
            lines = [first.removeprefix(f"{self._speaker}: "), *lines[1:]]
        for item in items(lines):
            yield from self._item(item)

    def _item(self, item: list[str]) -> Iterator[Span]:
        pieces = [plain(line) for line in item]
        label = self._of(" ".join(item))
        if len(pieces) > 1 and sum(len(p.split()) for p in pieces) <= _SHORT_ITEM_WORDS:
            yield from self._span(" ".join(pieces), label)
        elif len(pieces) > 1:
            for piece in pieces[1:]:
                yield from self._span(f"{pieces[0]} {piece}", label)
        else:
            yield from self._sentences(pieces[0], label)

    def _sentences(self, line: str, label: str | None) -> Iterator[Span]:
        speaker = _SPEAKER.match(line)
        head = frozenset(terms(self._speaker or (speaker.group(1) if speaker else "")))
        for sentence in sentences(line):
            text = self._unmarked(sentence)
            if text and not RULE.match(text):
                own = label if self._quoted else self._labels.of(sentence) or label
                stems = frozenset(terms(text)) | head
                said = self._own or bool(self._speaker)
                yield Span(text, own, self._block, stems, speaker=self._speaker, date=self._date, own=said, tool=self._tool)

    def _table(self, lines: list[str]) -> Iterator[Span]:
        header = cells(lines[0])
        if is_page_table(header):
            for _, rows in groupby(lines[2:], key=lambda line: cells(line)[0]):
                yield from self._page(list(rows))
            return
        for line in lines[2:]:
            row = cells(line)
            turn = turn_of(row)
            label = self._of(line) if turn is None or self._quoted else self._labels.of(line) or self._labels.turn(turn) or self._label
            for text in told(header, row):
                yield from self._quote(quote, label) if (quote := read_quote(text)) else self._span(text, label)
            self._block += 1

    def _page(self, rows: Sequence[str]) -> Iterator[Span]:
        """The rows of one page as one record, all of it cited under the page's label."""
        label, quoted = self._of(rows[0]), self._quoted
        address = frozenset(terms(self._unmarked(cells(rows[0])[0])))
        fields = {row[1]: row[2] for line in rows if len(row := cells(line)) > 2}
        self._quoted = True
        yield from (replace(span, about=address) for span in self._records(fields, label, is_page=True))
        self._quoted = quoted

    def _quote(self, quote: Quote, label: str | None) -> Iterator[Span]:
        """What somebody said, sentence by sentence; what was left out between two parts is a gap."""
        for part in quote.parts:
            self._next()
            for sentence in sentences(part):
                if text := self._unmarked(sentence):
                    stems = frozenset(terms(f"{quote.speaker} {text}"))
                    yield Span(text, label, self._block, stems, speaker=quote.speaker, date=quote.date, tool=quote.tool)

    def _span(self, text: str, label: str | None) -> Iterator[Span]:
        if unmarked := self._unmarked(text):
            yield Span(
                unmarked, label, self._block, frozenset(terms(unmarked)), "row", speaker=self._speaker, date=self._date, tool=self._tool
            )


def _lead(text: str) -> list[str]:
    """What stands before a JSON value on its line; a word or two only name it."""
    return [text.strip(" `:|")] if len(text.split()) > 2 else []


def _json(text: str, at: int, line: str) -> tuple[object, int, int] | None:
    """The JSON value that begins on `line`, where it ends, and where on the line it begins."""
    for start in _JSON.finditer(line):
        decoded = decode(text, at + start.start(1))
        if decoded:
            return decoded[0], decoded[1], start.start(1)
    return None
