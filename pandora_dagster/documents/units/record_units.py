"""Units of JSON values: records with the same names are rows of one table, calls are calls, long texts are sentences."""

import re
from collections.abc import Iterable, Sequence

from pandora_dagster.documents.units.json_scanner import JsonValue, scan_json
from pandora_dagster.documents.units.source_lines import Line
from pandora_dagster.documents.units.unit import UnitKind
from pandora_dagster.documents.units.unit_builder import UnitBuilder

_MAX_NESTED_CHARACTERS = 600
"""Characters of source up to which a record or list is a cell; a longer one is records of its own."""
_MAX_TEXT_CHARACTERS = 200
"""Characters up to which a text with several sentences is a cell."""
_MAX_ARGUMENT_CHARACTERS = 60
"""Characters up to which an argument of a call is a column of its answer."""
_MAX_INNER_TEXT_CHARACTERS = 60
"""Characters of the texts in a list of records up to which the list is a cell."""
_MIN_FILLED_CELLS = 0.75
"""Share of the cells that must be there, from which records with different names are one table."""
_MISSING_CELL = JsonValue(-1, -1, "")
_SENTENCE_END = re.compile(r"[.!?。！？]\s+\S|\n")


class RecordReader:
    """Reads the JSON values of one text; tables and the last call go on from value to value."""

    def __init__(self, builder: UnitBuilder) -> None:
        self.builder = builder
        self._tables: dict[tuple[str, ...], int] = {}
        self._arguments: dict[str, str] = {}
        self._asked_in = -1  # the message of that call

    def read(self, value: JsonValue, tool: str = "") -> None:
        """Add the units of a value; `tool` names the tool whose result it is."""
        if value.call:
            self._arguments = self._asked(_members(value))
            self.builder.add(
                UnitKind.CALL, " ".join(self.builder.source[value.start_with_name : value.end].split()), value.start_with_name, value.end
            )
            return
        calls = value.value if isinstance(value.value, list) else []
        if calls and all(isinstance(call.value, dict) and {"name", "arguments"} <= call.value.keys() for call in calls):
            for call in calls:
                self._call(call)
            return
        self.builder.open_block()
        self._record("", value, tool)
        self._arguments = {}

    def _call(self, call: JsonValue) -> None:
        members = _members(call)
        value = members["arguments"]
        arguments = _members(value)
        if not isinstance(value.value, dict):
            arguments = {"arguments": value} if isinstance(value.value, list) else _read_text(value)
        shown = ", ".join(f"{name}={_flat(value)}" for name, value in arguments.items())
        self.builder.add(UnitKind.CALL, f"{_flat(members['name'])}({shown})", call.start, call.end)
        self._arguments = self._asked(arguments)

    def _asked(self, arguments: dict[str, JsonValue]) -> dict[str, str]:
        self._asked_in = self.builder.message
        short = {name: _flat(value) for name, value in arguments.items() if isinstance(value.value, str)}
        return {name: text for name, text in short.items() if len(text) < _MAX_ARGUMENT_CHARACTERS}

    def _record(self, path: str, value: JsonValue, tool: str) -> None:
        if isinstance(value.value, dict):
            self._members(path, value, value.value, tool)
        elif isinstance(value.value, list):
            self._list(path, value, value.value, tool)
        else:
            self._text(path, value)

    def _list(self, path: str, whole: JsonValue, values: Sequence[JsonValue], tool: str) -> None:
        """Records side by side are rows of a table, with the names of lists of records within in the head of their column."""
        records = [
            one for part in values for one in (part.value if isinstance(part.value, list) else [part]) if isinstance(one.value, dict)
        ]
        if records and len(records) >= len(values) and not any(_is_apart(v) for one in records for v in _members(one).values()):
            names = dict.fromkeys(name for one in records for name in _members(one))
            inner = {name: _inner_names([_members(one)[name] for one in records if name in _members(one)]) for name in names}
            alike = sum(len(_members(one)) for one in records) >= _MIN_FILLED_CELLS * len(names) * len(records)
            for number, one in enumerate(records):
                cells = {name: _members(one).get(name, _MISSING_CELL) for name in names} if alike else _members(one)
                self._row(one.start if number else whole.start_with_name, one.end, cells, inner, tool, title=path)
            return
        for number, one in enumerate(values):
            if not number:
                one.name_start = whole.name_start
            if isinstance(one.value, str):
                self._text("" if number else path, one)
            else:
                self._record(path, one, tool)

    def _members(self, path: str, whole: JsonValue, members: dict[str, JsonValue], tool: str) -> None:
        own = {name: value for name, value in members.items() if not _is_apart(value)}
        if own:
            inner = {name: _inner_names([value]) for name, value in own.items()}
            start, end = min(whole.start_with_name, *(v.start_with_name for v in own.values())), max(v.end for v in own.values())
            self._row(start, end, own, inner, tool, path)
        elif members:
            next(iter(members.values())).name_start = whole.start_with_name
        for name, value in members.items():
            if name in own:
                continue
            below = f"{path}.{name}".strip(".")
            if records := _named_records(name, value):
                self._list(below, value, records, tool)
            else:
                self._record(below, value, tool)

    def _row(
        self,
        start: int,
        end: int,
        cells: dict[str, JsonValue],
        inner: dict[str, tuple[str, ...]],
        tool: str,
        path: str = "",
        title: str = "",
    ) -> None:
        """A record under the header of its table; the arguments of the call that it answers are columns too."""
        is_answer = self.builder.message == self._asked_in + 1
        asked = {name: text for name, text in self._arguments.items() if name not in cells and is_answer}
        names = [*asked, *(_head(f"{path}.{name}" if path else name, inner[name]) for name in cells)]
        texts = [*asked.values(), *(_flat(value, inner[name]) for name, value in cells.items())]
        header = self._header(names, start, end, tool, title)
        with self.builder.without_context():
            self.builder.add(UnitKind.ROW, " | ".join(texts).rstrip(" |"), start, end, (header,), block=self.builder.units[header].block)

    def _header(self, columns: Sequence[str], start: int, end: int, tool: str, title: str) -> int:
        """The header unit of a table; the same columns again are the same table, wherever they are."""
        name = " ".join(filter(None, (tool, title)))
        table = (name, "" if tool else self.builder.speaker, *columns)
        if table not in self._tables:
            self.builder.open_block()
            text = "# " + (f"{name}: " if name else "") + " | ".join(columns)
            if tool:
                with self.builder.without_context():
                    self._tables[table] = self.builder.add(UnitKind.HEADER, text, start, end)
            else:
                self._tables[table] = self.builder.add(UnitKind.HEADER, text, start, end)
        return self._tables[table]

    def _text(self, path: str, value: JsonValue) -> None:
        """Add a text: a unit for each of several sentences, under a header with the name of the text; else a row `name: text`."""
        start, content = value.start_with_name, _flat(value)
        label = f"{path.rpartition('.')[2]}: " if path and value.name_start >= 0 else ""
        source = self.builder.source[value.start + 1 : value.end - 1]
        if not value.is_string or "\\" in source or not _is_apart(value):
            self.builder.add(UnitKind.ROW, label + content, start, value.end)
            return
        first = len(self.builder.units)
        if label:
            first = self.builder.add(UnitKind.HEADER, label.rstrip(), start, value.start)
        self.builder.add_sentences(UnitKind.SENTENCE, [Line(source, value.start + 1)], (first,))


def _named_records(name: str, value: JsonValue) -> list[JsonValue]:
    """The records in a record of records that have names in common, each with its own name as a cell where it holds it nowhere else."""
    inner = list(_members(value).items())
    if len(inner) < 2 or not all(isinstance(one.value, dict) for _, one in inner):
        return []
    if not any(all(shared in _members(one) for _, one in inner) for shared in _members(inner[0][1])):
        return []
    if all(any(cell.value == key for cell in _members(one).values()) for key, one in inner):
        return [one for _, one in inner]
    return [
        JsonValue(
            one.start_with_name, one.end, {name: JsonValue(one.start_with_name, one.start_with_name, key, is_string=True), **_members(one)}
        )
        for key, one in inner
    ]


def _members(value: JsonValue) -> dict[str, JsonValue]:
    return value.value if isinstance(value.value, dict) else {}


def _read_text(value: JsonValue) -> dict[str, JsonValue]:
    """Arguments that are JSON in a string."""
    inner = scan_json(str(value.value), 0)[0]
    members = _members(inner) if inner else {}
    return members or {"arguments": value}


def _is_apart(value: JsonValue) -> bool:
    """Whether a value is too large for a cell."""
    if isinstance(value.value, str):
        return len(value.value) > _MAX_TEXT_CHARACTERS and bool(_SENTENCE_END.search(value.value))
    if len(value.value) < 2:
        return False
    members = [member for one in value.value for member in _members(one).values()] if isinstance(value.value, list) else []
    long_cell = any(isinstance(member.value, str) and len(member.value) > _MAX_INNER_TEXT_CHARACTERS for member in members)
    return long_cell or value.end - value.start > _MAX_NESTED_CHARACTERS


def _inner_names(values: Iterable[JsonValue]) -> tuple[str, ...]:
    """Names in a column whose cells are lists of records."""
    filled = [value.value for value in values if value.value and value.value != "null"]
    records = [one for cell in filled if isinstance(cell, list) for one in cell]
    if not filled or not all(isinstance(cell, list) for cell in filled) or not all(isinstance(one.value, dict) for one in records):
        return ()
    return tuple(dict.fromkeys(name for one in records for name in _members(one)))


def _head(name: str, inner: tuple[str, ...]) -> str:
    return f"{name}[{' '.join(inner)}]" if inner else name


def _flat(value: JsonValue, inner: tuple[str, ...] = ()) -> str:
    """A value in one line."""
    if isinstance(value.value, str):
        return "" if value.value == "null" and not value.is_string else " ".join(value.value.split())
    if isinstance(value.value, list):
        if inner:
            return "; ".join(
                " ".join(_flat(_members(one)[name]) if name in _members(one) else "-" for name in inner) for one in value.value
            )
        return "; ".join(map(_flat, value.value))
    parts: list[str] = []
    for name, one in value.value.items():
        own = _members(one).get("id")
        parts.append(_flat(one) if own and own.value == name else f"{name} {_flat(one)}")
    return ", ".join(parts)
