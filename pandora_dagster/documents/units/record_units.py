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
        self._call_message = -1  # the message of that call

    def read(self, value: JsonValue, tool: str = "") -> None:
        """Add the units of a value; `tool` names the tool whose result it is."""
        if value.call:
            self._arguments = self._short_arguments(_members(value))
            self.builder.add(
                UnitKind.CALL, " ".join(self.builder.source[value.start_with_name : value.end].split()), value.start_with_name, value.end
            )
            return
        calls = value.value if isinstance(value.value, list) else []
        if calls and all(isinstance(call.value, dict) and {"name", "arguments"} <= call.value.keys() for call in calls):
            for call in calls:
                self._add_call(call)
            return
        self.builder.open_block()
        self._record("", value, tool)
        self._arguments = {}

    def _add_call(self, call: JsonValue) -> None:
        members = _members(call)
        value = members["arguments"]
        arguments = _members(value)
        if not isinstance(value.value, dict):
            arguments = {"arguments": value} if isinstance(value.value, list) else _read_text(value)
        shown = ", ".join(f"{name}={_flat(value)}" for name, value in arguments.items())
        self.builder.add(UnitKind.CALL, f"{_flat(members['name'])}({shown})", call.start, call.end)
        self._arguments = self._short_arguments(arguments)

    def _short_arguments(self, arguments: dict[str, JsonValue]) -> dict[str, str]:
        """The arguments of the last call that can be columns of its answer."""
        self._call_message = self.builder.message
        texts = {name: _flat(value) for name, value in arguments.items() if isinstance(value.value, str)}
        return {name: text for name, text in texts.items() if len(text) < _MAX_ARGUMENT_CHARACTERS}

    def _record(self, path: str, value: JsonValue, tool: str) -> None:
        if isinstance(value.value, dict):
            self._members(path, value, value.value, tool)
        elif isinstance(value.value, list):
            self._list(path, value, value.value, tool)
        else:
            self._text(path, value)

    def _list(self, path: str, whole: JsonValue, values: Sequence[JsonValue], tool: str) -> None:
        """Records side by side are rows of a table, with the names of lists of records within in the head of their column."""
        items = [item for value in values for item in (value.value if isinstance(value.value, list) else [value])]
        records = [item for item in items if isinstance(item.value, dict)]
        if records and len(records) >= len(values) and not any(_is_apart(v) for record in records for v in _members(record).values()):
            names = dict.fromkeys(name for record in records for name in _members(record))
            inner_names = {name: _inner_names([_members(record)[name] for record in records if name in _members(record)]) for name in names}
            is_one_table = sum(len(_members(record)) for record in records) >= _MIN_FILLED_CELLS * len(names) * len(records)
            for number, record in enumerate(records):
                cells = {name: _members(record).get(name, _MISSING_CELL) for name in names} if is_one_table else _members(record)
                self._row(record.start if number else whole.start_with_name, record.end, cells, inner_names, tool, title=path)
            return
        for number, value in enumerate(values):
            if not number:
                value.name_start = whole.name_start
            if isinstance(value.value, str):
                self._text("" if number else path, value)
            else:
                self._record(path, value, tool)

    def _members(self, path: str, whole: JsonValue, members: dict[str, JsonValue], tool: str) -> None:
        cells = {name: value for name, value in members.items() if not _is_apart(value)}
        if cells:
            inner_names = {name: _inner_names([value]) for name, value in cells.items()}
            start, end = min(whole.start_with_name, *(v.start_with_name for v in cells.values())), max(v.end for v in cells.values())
            self._row(start, end, cells, inner_names, tool, path)
        elif members:
            next(iter(members.values())).name_start = whole.start_with_name
        for name, value in members.items():
            if name in cells:
                continue
            member_path = f"{path}.{name}".strip(".")
            if records := _named_records(name, value):
                self._list(member_path, value, records, tool)
            else:
                self._record(member_path, value, tool)

    def _row(
        self,
        start: int,
        end: int,
        cells: dict[str, JsonValue],
        inner_names: dict[str, tuple[str, ...]],
        tool: str,
        path: str = "",
        title: str = "",
    ) -> None:
        """A record under the header of its table; the arguments of the call that it answers are columns too."""
        is_answer = self.builder.message == self._call_message + 1
        arguments = {name: text for name, text in self._arguments.items() if name not in cells and is_answer}
        names = [*arguments, *(_column_name(f"{path}.{name}" if path else name, inner_names[name]) for name in cells)]
        texts = [*arguments.values(), *(_flat(value, inner_names[name]) for name, value in cells.items())]
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
    records = _members(value)
    if len(records) < 2 or not all(isinstance(record.value, dict) for record in records.values()):
        return []
    first_names = _members(next(iter(records.values())))
    if not any(all(shared in _members(record) for record in records.values()) for shared in first_names):
        return []
    if all(any(cell.value == key for cell in _members(record).values()) for key, record in records.items()):
        return list(records.values())
    return [_with_name_cell(record, name, key) for key, record in records.items()]


def _with_name_cell(record: JsonValue, name: str, key: str) -> JsonValue:
    start = record.start_with_name
    return JsonValue(start, record.end, {name: JsonValue(start, start, key, is_string=True), **_members(record)})


def _members(value: JsonValue) -> dict[str, JsonValue]:
    return value.value if isinstance(value.value, dict) else {}


def _read_text(value: JsonValue) -> dict[str, JsonValue]:
    """Arguments that are JSON in a string."""
    record = scan_json(str(value.value), 0)[0]
    members = _members(record) if record else {}
    return members or {"arguments": value}


def _is_apart(value: JsonValue) -> bool:
    """Whether a value is too large for a cell."""
    if isinstance(value.value, str):
        return len(value.value) > _MAX_TEXT_CHARACTERS and bool(_SENTENCE_END.search(value.value))
    if len(value.value) < 2:
        return False
    members = [member for item in value.value for member in _members(item).values()] if isinstance(value.value, list) else []
    has_long_cell = any(isinstance(member.value, str) and len(member.value) > _MAX_INNER_TEXT_CHARACTERS for member in members)
    return has_long_cell or value.end - value.start > _MAX_NESTED_CHARACTERS


def _inner_names(values: Iterable[JsonValue]) -> tuple[str, ...]:
    """Names in a column whose cells are lists of records."""
    cells = [value.value for value in values if value.value and value.value != "null"]
    records = [item for cell in cells if isinstance(cell, list) for item in cell]
    if not cells or not all(isinstance(cell, list) for cell in cells) or not all(isinstance(record.value, dict) for record in records):
        return ()
    return tuple(dict.fromkeys(name for record in records for name in _members(record)))


def _column_name(name: str, inner_names: tuple[str, ...]) -> str:
    return f"{name}[{' '.join(inner_names)}]" if inner_names else name


def _flat(value: JsonValue, inner_names: tuple[str, ...] = ()) -> str:
    """A value in one line; of a list of records the members `inner_names`."""
    if isinstance(value.value, str):
        return "" if value.value == "null" and not value.is_string else " ".join(value.value.split())
    if isinstance(value.value, list):
        if inner_names:
            rows = (" ".join(_flat(_members(item)[n]) if n in _members(item) else "-" for n in inner_names) for item in value.value)
            return "; ".join(rows)
        return "; ".join(map(_flat, value.value))
    parts: list[str] = []
    for name, member in value.value.items():
        member_id = _members(member).get("id")
        parts.append(_flat(member) if member_id and member_id.value == name else f"{name} {_flat(member)}")
    return ", ".join(parts)
