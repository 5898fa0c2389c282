"""An earlier compression's text, read back: its tables as rows, its loose values, its remaining lines.

Knows the output of `transcript`; a compaction of a compaction merges instead of condensing it again.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from pandora_dagster.compression.read.json_rows import CUT, LEFT_OUT, Row
from pandora_dagster.compression.read.row_tables import CONSTANT
from pandora_dagster.compression.read.transcript_messages import ROLE_LINE

ALSO_SEEN = "also seen: "
ALSO_IN = "also in "
EARLIER = "earlier "
OPTIONS = "options: "
_NAME = r"[\w.\- ]+(?:[\[(][^|;]*[\])])?"
_PARENT = re.compile(r"# ([\w.\-]+) of ([^:|;]+): ")
_HEADER = re.compile(rf"# (?:[\w.\-]+ of [^:|;]+: )?{_NAME}(?:\|{_NAME})*\|?(?: ; [\w.\- ]+=[^;]*)*")
_CONSTANTS = re.compile(r" ; (?=[\w.\- ]+=)")
_LONGEST_HEADER = 4_000
_FLAT = re.compile(r"[\[(]([^\[\](){}\u2026]+)[\])]")
_LAYOUT = re.compile(r"[\[(].*$")


@dataclass(frozen=True, slots=True)
class LooseValue:
    """A value without a row: `label` is its name; `subject` is what the record it comes from is called, or a date in it behind
    its name (`date 2026-03-14`), "" where the value is itself a name; `layout` names the members of an object."""

    label: str
    value: str
    subject: str = ""
    layout: str = ""


@dataclass(slots=True)
class PackedText:
    """What was read back; `text` is all that is neither table nor loose value."""

    text: str
    rows: list[Row] = field(default_factory=list[Row])
    loose: list[LooseValue] = field(default_factory=list[LooseValue])
    items: list[LooseValue] = field(default_factory=list[LooseValue])
    earlier: list[str] = field(default_factory=list[str])
    layouts: dict[str, str] = field(default_factory=dict[str, str])
    left_out: Counter[str] = field(default_factory=Counter[str])
    """First column -> rows of such tables that do not stand."""


def reread(text: str) -> PackedText:
    """Take the head of a text apart where an earlier compression wrote it; any other text comes back whole."""
    if not is_own(text.split("\n", 1)[0]):
        return PackedText(text)
    body = ROLE_LINE.search(text)
    head, rest = (text[: body.start()], text[body.start() :]) if body else (text, "")
    found = PackedText("")
    kept: list[str] = []
    header: _Header | None = None
    for line in head.split("\n"):
        if _HEADER.fullmatch(line):
            header = _Header.read(line)
            found.layouts |= header.layouts
        elif line.startswith(ALSO_SEEN):
            found.loose += loose_values(line.removeprefix(ALSO_SEEN))
            header = None
        elif line.startswith(ALSO_IN) and ": " in line:
            found.items += _items(line.removeprefix(ALSO_IN))
            header = None
        elif line.startswith(EARLIER):
            found.earlier.append(line)
            header = None
        elif header and (more := LEFT_OUT.fullmatch(line)):
            found.left_out[header.columns[0]] += int(more.group(1))
        elif header and header.fits(line):
            found.rows.append(header.row(line))
        else:
            kept.append(line)
            header = None
    found.text = "\n".join([*(line for line in kept if line.strip()), *([rest] if rest else [])])
    return found


def is_own(first_line: str) -> bool:
    """Whether a text begins as an earlier compression does: a table's header has a second column, a mark or a constant."""
    if len(first_line) > _LONGEST_HEADER:
        return False
    has_mark = "|" in first_line or CONSTANT in first_line or bool(_PARENT.match(first_line))
    return first_line.startswith((ALSO_SEEN, ALSO_IN)) or (has_mark and bool(_HEADER.fullmatch(first_line)))


@dataclass(frozen=True, slots=True)
class _Header:
    columns: tuple[str, ...]
    constants: Mapping[str, str]
    layouts: Mapping[str, str]

    @classmethod
    def read(cls, line: str) -> "_Header":
        parent = _PARENT.match(line)
        names, *constants = _CONSTANTS.split(line[parent.end() :] if parent else line.removeprefix("# "))
        names = names.removesuffix("|")
        columns = [_LAYOUT.sub("", name) for name in names.split("|")]
        layouts = {column: name[len(column) :] for column, name in zip(columns, names.split("|"), strict=True) if name != column}
        pairs = [constant.split("=", 1) for constant in constants]
        above = {f"{parent.group(1)} of": parent.group(2)} if parent else {}
        return cls(tuple(columns), {name: value for name, value in pairs} | above, layouts)

    def fits(self, line: str) -> bool:
        return bool(line.strip()) and line.removesuffix(CUT).count("|") < len(self.columns) and not line.startswith(("call ", OPTIONS))

    def row(self, line: str) -> Row:
        """The cells of a line; a cell of several values comes back as lists of words."""
        cells = dict.fromkeys(self.columns, "") | dict(zip(self.columns, line.removesuffix(CUT).split("|"), strict=False))
        return Row(0, {name: _parts(name, value, self.layouts) for name, value in cells.items()} | dict(self.constants), is_cut=True)


def _parts(name: str, value: str, layouts: Mapping[str, str]) -> str | list[list[str] | dict[str, str]]:
    """The objects of a cell; where each word of one has a name in the header, with their names."""
    if "; " in value or name in layouts:
        told = _FLAT.fullmatch(layouts.get(name, ""))
        names = told.group(1).split(",") if told else []
        found = [part.split(" ") for part in value.split("; ")]
        return [dict(zip(names, words, strict=True)) if len(words) == len(names) > 1 else words for words in found]
    return value


def _items(text: str) -> list[LooseValue]:
    """`flights[from,to] of AB12: Oslo Bergen; Bergen Oslo`."""
    head, _, objects = text.partition(": ")
    label, _, subject = head.partition(" of ")
    layout = found.group() if (found := _LAYOUT.search(label)) else ""
    return [LooseValue(label.removesuffix(layout), value, subject, layout) for value in objects.split("; ")]


def loose_values(text: str) -> list[LooseValue]:
    """`order_id A1 A2; date 2026-03-14: train_id T1; AB12: cabin economy, card_id c_5`."""
    found: list[LooseValue] = []
    for part in text.split("; "):
        subject, _, named = part.rpartition(": ")
        for group in named.split(", "):
            label, *values = group.split(" ")
            found += [LooseValue(label, value, subject) for value in values]
    return found
