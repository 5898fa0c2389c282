"""Documents as passages: whole units, each with its source, speaker, date and the words of what is above it."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pandora_dagster.compression.original_reference import REFERENCE
from pandora_dagster.compression.selection.omission_marks import without_marks
from pandora_dagster.documents.delimited_blocks import fenced_spans
from pandora_dagster.documents.units.unit import Unit, UnitKind
from pandora_dagster.documents.units.unit_reader import read_units
from pandora_dagster.language.detection import short_text_language
from pandora_dagster.runtime.extractive.evidence.citation_labels import Labels
from pandora_dagster.runtime.extractive.evidence.header_lines import split_at_heads
from pandora_dagster.runtime.extractive.queries.content_words import content_keys

_SECTION = re.compile(
    r"^([0-6])\. (User Query|Reflection Decision|Gathered Context|Task Plan|Tool Execution|Synthesis|Validation): ", re.MULTILINE
)
_SPEAKERS = re.compile(r"\ASpeakers: (.+)\n+")
_RESULT = re.compile(r"^(?:#+ *)?Result \d+: *`?([\w.]+)`?[^\n]*$", re.MULTILINE)
_RESULT_FRAMES = re.compile(
    r"^(?:\*\*(?:Status|File|Outcome|Searched|Page|Notice):\*\* .*|(?:\*\*)?Arguments:(?:\*\*)?.*|Result:)$", re.MULTILINE
)
_ARGUMENTS_BLOCK = re.compile(
    r"^(?:\*\*)?Arguments:(?:\*\*)?[ \t]*\n+(`{3,}+)[^\n]*\n(?:(?!(?:\*\*)?Arguments:)[^\n]*\n)*?\1[ \t]*$", re.MULTILINE
)
_PACKED_HEAD = re.compile(r"^# (?=[^\n]*\|)")
"""The mark before the column names of a listing: `# name: a | b`."""
_TABLE_RULE = re.compile(r"[\s|:*_=+-]*")
_REFERENCE = re.compile(rf"^.*{re.escape(REFERENCE)}\S+$", re.MULTILINE)
"""The line of a compressed text that leads to its original."""
_ESCAPED_HEADING = re.compile(r"^ {0,3}\\(?=#{1,3}[ \t])", re.MULTILINE)
"""What keeps a heading of a quoted text from being one of the section that quotes it."""
_COLUMN_NAME_SEPARATOR = re.compile(r"[_.\[\]()]")
_LANGUAGE_SAMPLE_CHARACTERS = 4_000


@dataclass(frozen=True, slots=True)
class Passage:
    """A whole unit of a source. `keys` are its content words, `above` those of headings, table heads and what introduces it."""

    text: str
    label: str | None
    keys: tuple[str, ...]
    language: str = ""
    above: frozenset[str] = frozenset()
    kind: UnitKind = UnitKind.SENTENCE
    source: str = ""
    """The name of the text it is from; passages of one text are in order of `place`."""
    place: int = 0
    """Its number in the order of reading, over all texts of one reader."""
    turn: int | None = None
    rank: int = 0
    """Rank of its turn among the turns that retrieval chose; 0 is the best."""
    speaker: str = ""
    date: str = ""
    tool: str = ""
    """The tool whose result says it."""
    said_by_user: bool = False
    """Whether the user or a named speaker said it, where the document tells."""
    is_page: bool = False
    """Whether it is from a visited page."""

    @property
    def is_record(self) -> bool:
        """Whether it is data and no prose: a table row, a log line, code, a hunk, a call."""
        return self.kind in (UnitKind.ROW, UnitKind.LOG, UnitKind.CODE, UnitKind.HUNK, UnitKind.CALL)


class PassageReader:
    """Reads texts one after the other into passages. `whole_code`: a fenced block is one passage, with its fence."""

    def __init__(self, labels: Labels, *, whole_code: bool = False) -> None:
        self._labels, self._whole_code = labels, whole_code
        self._place = 0

    def turn(self, text: str, *, turn: int, label: str, date: str) -> list[Passage]:
        """An earlier turn: the user's words, what tools gave, the answer; frames of tool results are no passages."""
        text = _REFERENCE.sub("", without_marks(_ESCAPED_HEADING.sub("", text))[0])
        speaker_line = _SPEAKERS.match(text)
        speakers = frozenset(speaker_line.group(1).split(", ")) if speaker_line else frozenset[str]()
        passages: list[Passage] = []
        for number, body in _sections(text[speaker_line.end() :] if speaker_line else text):
            for tool, part in _results(body) if number == 4 else [("", body)]:
                base = Passage(
                    "",
                    label or None,
                    (),
                    turn=turn,
                    date=date,
                    tool=tool,
                    said_by_user=number == 0,
                    source=f"turn {turn}",
                    rank=self._labels.rank(label),
                )
                passages += self.speech(part, base, speakers)
        return passages

    def speech(self, text: str, base: Passage, speakers: frozenset[str] = frozenset()) -> list[Passage]:
        """Passages of `text`, each as `base` says; paragraphs that begin with the name of a speaker are that speaker's."""
        if not speakers:
            return self.units(text, base)
        passages: list[Passage] = []
        for paragraph in re.split(r"\n{2,}", text):
            speaker = next((name for name in speakers if paragraph.startswith(f"{name}: ")), "")
            statement = paragraph.removeprefix(f"{speaker}: ") if speaker else paragraph
            passages += self.units(statement, replace(base, speaker=speaker, said_by_user=base.said_by_user or bool(speaker)))
        return passages

    def units(self, text: str, base: Passage) -> list[Passage]:
        """Passages of the units of `text`."""
        if self._whole_code and (block := next(fenced_spans(text), None)):
            start, end = block
            code = self.line(text[start:end], replace(base, kind=UnitKind.CODE))
            return [*self.units(text[:start], base), code, *self.units(text[end:], base)]
        language = short_text_language(text[:_LANGUAGE_SAMPLE_CHARACTERS])
        units = read_units(text, language)
        found: list[Passage] = []
        for unit in units:
            if unit.is_context or _TABLE_RULE.fullmatch(unit.text):
                continue
            shown = self._labels.unmarked(_render_unit(unit, units))
            above = frozenset(key for n in unit.needs for key in content_keys(units[n].text, language))
            columns = " ".join(_COLUMN_NAME_SEPARATOR.sub(" ", units[n].text) for n in unit.needs if unit.kind is UnitKind.ROW)
            keys = content_keys(f"{unit.speaker or base.speaker} {shown} {columns}", language)
            self._place += 1
            found.append(
                replace(
                    base, text=shown, keys=keys, language=language, above=above, kind=unit.kind, place=self._place,
                    speaker=base.speaker or _speaker(unit),
                )
            )  # fmt: skip
        return found

    def value(self, value: object, base: Passage) -> list[Passage]:
        """Passages of a JSON value: its records as rows."""
        return self.units(json.dumps(value, ensure_ascii=False), base)

    def line(self, text: str, base: Passage, *, above: str = "") -> Passage:
        """One passage that is `text` unchanged; the words of `above` count as its own."""
        language = short_text_language(f"{above} {text}")
        keys = content_keys(f"{base.speaker} {above} {text}", language)
        self._place += 1
        return replace(base, text=text, keys=keys, language=language, place=self._place)


def _speaker(unit: Unit) -> str:
    """The name of who speaks, where it is no role of a talk with an assistant."""
    return "" if unit.speaker.lower().partition(" ")[0] in ("user", "assistant", "system", "tool") else unit.speaker


def _sections(text: str) -> Iterator[tuple[int, str]]:
    """The sections of a quoted turn by their titles; text outside them counts as section 5, the answer."""
    parts = split_at_heads(_SECTION.finditer(text), text)
    lead = text[: parts[0][0].start()] if parts else text
    if not parts or lead.strip():
        yield 5, lead
    yield from ((int(head[1]), body) for head, body in parts)


def _results(body: str) -> Iterator[tuple[str, str]]:
    """Each tool result of a section with the tool's name, without what the tool was asked and how it ended."""
    parts = [(head[1], text) for head, text in split_at_heads(_RESULT.finditer(body), body)]
    lead = _RESULT.split(body, maxsplit=1)[0]
    for tool, part in [("", lead), *parts]:
        if output := _RESULT_FRAMES.sub("", _ARGUMENTS_BLOCK.sub("", part)).strip():
            yield tool, _strip_fence(output)


def _strip_fence(text: str) -> str:
    """A result that is one fenced block, without its fence."""
    found = re.fullmatch(r"(`{3,}+)[^\n]*\n(.*)\n\1", text, re.DOTALL)
    return found.group(2) if found else text


def _render_unit(unit: Unit, units: Sequence[Unit]) -> str:
    """The text of a unit by itself: a table row with the names of its columns."""
    text = unit.text.strip()
    head = next((units[n].text for n in reversed(unit.needs) if units[n].kind is UnitKind.HEADER), "") if unit.kind is UnitKind.ROW else ""
    columns, cells = _row_cells(head), _row_cells(text)
    if len(columns) != len(cells) or len(cells) < 2:
        return text
    return ", ".join(f"{column}: {cell}" for column, cell in zip(columns, cells, strict=True) if cell)


def _row_cells(line: str) -> list[str]:
    """The cells of a table row or of its head, whatever separates them; [] where nothing does."""
    row = _PACKED_HEAD.sub("", line.split("\n")[0])
    if "|" in row:
        return table_cells(row)
    return [cell.strip() for cell in re.split(r"[,;\t]", row)] if re.search(r"[,;\t]", row.strip()) else []


def table_cells(row: str) -> list[str]:
    """The cells of a row that `|` separates, unescaped."""
    inner = row.strip().removeprefix("|").removesuffix("|")
    return [cell.replace("\\|", "|").strip() for cell in re.split(r"(?<!\\)\|", inner)]
