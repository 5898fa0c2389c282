"""The strict reader of YAML that a person or another program can write, and the writer of YAML that it reads back unchanged.

The reader gives the values that JSON has: mappings with string keys, lists, strings, finite decimal numbers, true, false, null. A date is a
string, and so are `yes` and `0x1f`. It reads events and builds each value itself: no tag, alias or number runs code, expands or overflows.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import yaml

from pandora_dagster.documents.plain_json import MAX_DEPTH, MAX_NUMBER_CHARACTERS
from pandora_dagster.errors import DocumentError

FieldPath = tuple[str | int, ...]
MAX_YAML_CHARACTERS = 256 * 1024
_MAX_VALUES = 50_000
_MAX_FAULTS = 5
"""Faults that an error lists."""
_WORDS: dict[str, Any] = {
    **{"": None, "~": None, "null": None, "Null": None, "NULL": None},
    **{"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False},
}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+][0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
"""An exponent has its sign, as every writer of JSON in Python and YAML 1.1 writes it: `611e54006458` is the version of a recipe."""
_STRING_TAGS = (None, "!", "tag:yaml.org,2002:str")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_ENDS = re.compile("[\x85\u2028\u2029\ufeff]")
"""Unquoted, these line ends of YAML 1.1 would be folded into blanks."""
_MAX_LINE_CHARACTERS = 10_000
"""So long that no value is wrapped."""


@dataclass(frozen=True, slots=True)
class SourceFault:
    """One fault at a 1-based line. `str` without the file: `field: what: what was expected`."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class YamlSource:
    """A parsed text. `data` is None where a fault makes it unusable, and for an empty text; `lines`: path of a field -> its line."""

    data: Any
    faults: tuple[SourceFault, ...] = ()
    lines: dict[FieldPath, int] = field(default_factory=dict[FieldPath, int])

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of a mapping; none where `data` is anything else."""
        return cast("dict[str, Any]", self.data) if self.is_mapping else {}

    @property
    def is_mapping(self) -> bool:
        """Whether `data` is a mapping."""
        return isinstance(self.data, dict)

    def line(self, path: FieldPath) -> int:
        """The line of the field at `path`, or of the nearest field above it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_yaml(text: str) -> YamlSource:
    """Parse YAML text; every fault is in the result, none is raised. A duplicate key is a fault that leaves the first value."""
    if len(text) > MAX_YAML_CHARACTERS:
        return YamlSource(None, (SourceFault(1, f"{len(text):,} characters: expected at most {MAX_YAML_CHARACTERS:,}"),))
    reader = _EventReader(text)
    try:
        data = reader.document()
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # the scanner converts escapes and versions to numbers unchecked
        return YamlSource(None, (_syntax_fault(error),))
    except _TooLargeError as error:
        return YamlSource(None, (error.fault,))
    return YamlSource(data if reader.is_usable else None, tuple(reader.faults), reader.lines)


def read_yaml_mapping(text: str) -> YamlSource:
    """Parse YAML text that must be a mapping; every fault is in the result."""
    source = read_yaml(text)
    if source.faults or source.is_mapping:
        return source
    return YamlSource(None, (SourceFault(1, "not a mapping: expected `field: value` lines"),))


def parse_yaml(text: str, *, where: str, lines_before: int = 0) -> Any:
    """The value of a YAML text; raises DocumentError with the first faults as `where:line: ...`.

    `lines_before`: the lines of the file before the text.
    """
    source = read_yaml(text)
    if source.faults:
        raise DocumentError("\n".join(f"{where}:{fault.line + lines_before}: {fault.text}" for fault in source.faults[:_MAX_FAULTS]))
    return source.data


def plain_value(text: str) -> Any:
    """The value of an unquoted word as JSON has it: null, a truth value, a number, else the text itself.

    Raises ValueError for a number that is too long or not finite.
    """
    if text in _WORDS:
        return _WORDS[text]
    is_integer = _INTEGER.fullmatch(text)
    if not is_integer and not _FLOAT.fullmatch(text):
        return text
    if len(text) > MAX_NUMBER_CHARACTERS:
        raise ValueError(f"a number of {len(text):,} digits: expected at most {MAX_NUMBER_CHARACTERS}")
    if is_integer:
        return int(text)
    if text.lower().endswith(("inf", "nan")) or not math.isfinite(number := float(text)):
        raise ValueError(f"{text}: expected a finite number")
    return number


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The parser of libyaml, a tenth of the time of the one in Python, which takes its place where PyYAML was built without it."""


class _TooLargeError(Exception):
    """The text has too many values or levels; reading stops."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.fault = SourceFault(line, text)


class _EventReader:
    """Builds the value of one document from the events of the parser, with the line of each field and every fault."""

    def __init__(self, text: str) -> None:
        self.lines: dict[FieldPath, int] = {(): 1}
        self.faults: list[SourceFault] = []
        self.is_usable = True
        self._values = 0
        self._events = cast("Iterator[yaml.Event]", yaml.parse(text, Loader=_LOADER))  # pyright: ignore[reportUnknownMemberType]

    def document(self) -> Any:
        """The value of the only document, None for an empty text."""
        next(self._events)  # the stream's start
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        value = self._value(next(self._events), ())
        next(self._events)  # the document's end
        if not isinstance(event := next(self._events), yaml.StreamEndEvent):
            self._refuse(event, (), "a second document: expected one")
        return value

    def _value(self, event: yaml.Event, path: FieldPath) -> Any:
        """The value that begins with an event; its last event is consumed."""
        self._values += 1
        if self._values > _MAX_VALUES:
            raise _TooLargeError(_line(event), f"over {_MAX_VALUES:,} values: expected fewer")
        if len(path) > MAX_DEPTH:
            raise _TooLargeError(_line(event), f"nested deeper than {MAX_DEPTH} levels: expected fewer levels")
        if isinstance(event, yaml.AliasEvent):
            return self._refuse(event, path, "an alias: expected the value itself")
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, path)
        if event.tag is not None:  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]
            self._refuse_tag(event, path)
        return self._mapping(path) if isinstance(event, yaml.MappingStartEvent) else self._list(path)

    def _list(self, path: FieldPath) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            item_path = (*path, len(items))
            self.lines[item_path] = _line(event)
            items.append(self._value(event, item_path))
        return items

    def _mapping(self, path: FieldPath) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._key(event, path)
            child_path = (*path, "" if key is None else key)
            if key is not None and key in fields:
                text = f"{dotted_path(child_path)}: duplicate key: expected once (first in line {self.lines[child_path]})"
                self.faults.append(SourceFault(_line(event), text))
                self._value(next(self._events), child_path)
                continue
            self.lines[child_path] = _line(event)
            value = self._value(next(self._events), child_path)
            if key is not None:
                fields[key] = value
        return fields

    def _key(self, event: yaml.Event, path: FieldPath) -> str | None:
        """The key that begins with an event; None, with a fault, where it is no string."""
        if not isinstance(event, yaml.ScalarEvent):
            shown = "an alias" if isinstance(event, yaml.AliasEvent) else "a list or mapping"
            self._refuse(event, path, f"the key {shown}: expected a string as key")
            if not isinstance(event, yaml.AliasEvent):
                self._value(event, (*path, ""))
            return None
        known_faults = len(self.faults)
        key = self._scalar(event, path)
        if isinstance(key, str):
            return key
        if len(self.faults) == known_faults:
            self._refuse(event, path, f"the key {_text(event)!r}: expected a string as key")
        return None

    def _scalar(self, event: yaml.ScalarEvent, path: FieldPath) -> Any:
        text, tag = _text(event), cast("str | None", event.tag)
        if tag not in _STRING_TAGS:
            return self._refuse_tag(event, path)
        if _SURROGATE.search(text):
            return self._refuse(event, path, "half of a surrogate pair: expected whole Unicode characters")
        if tag is not None or not event.implicit[0]:
            return text
        try:
            return plain_value(text)
        except ValueError as error:
            return self._refuse(event, path, str(error))

    def _refuse_tag(self, event: yaml.Event, path: FieldPath) -> None:
        name = str(cast("Any", event).tag).rsplit(":", 1)[-1]
        self._refuse(event, path, f"a value with the tag {name}: expected a plain value (quote it)")

    def _refuse(self, event: yaml.Event, path: FieldPath, text: str) -> None:
        self.is_usable = False
        self.faults.append(SourceFault(_line(event), f"{dotted_path(path)}: {text}" if path else text))


def _text(event: yaml.ScalarEvent) -> str:
    return cast("str", event.value)


def _line(event: yaml.Event) -> int:
    return int(cast("Any", event).start_mark.line) + 1


def _syntax_fault(error: Exception) -> SourceFault:
    """The fault of a text that is not YAML. It quotes no value: a value may be a secret that should not be in the file."""
    untyped: Any = error
    if isinstance(error, yaml.MarkedYAMLError):
        mark = untyped.problem_mark or untyped.context_mark
        problem = str(untyped.problem or untyped.context).replace("\n", " ")
        return SourceFault(mark.line + 1 if mark else 1, f"not YAML: {problem}: expected YAML")
    if isinstance(error, UnicodeEncodeError):
        return SourceFault(1, "not YAML: half of a surrogate pair: expected whole Unicode characters")
    reason = str(untyped.reason) if isinstance(error, yaml.reader.ReaderError) else "an escape of no character"
    return SourceFault(1, f"not YAML: {reason}: expected YAML")


def dotted_path(path: FieldPath) -> str:
    """`("prompt_files", 0, "path")` as `prompt_files[0].path`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


class BlockMapping(dict[str, Any]):
    """A mapping that is always written with one key a line, as in specification 004, section 5.2."""


class _Dumper(yaml.SafeDumper):
    """SafeDumper that repeats a value instead of writing an alias, and quotes what `plain_value` would read as another type."""

    def ignore_aliases(self, data: object) -> bool:
        return True


_Dumper.add_representer(
    BlockMapping, lambda dumper, values: dumper.represent_mapping("tag:yaml.org,2002:map", values.items(), flow_style=False)
)


def _represent_text(_dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    is_number = _INTEGER.fullmatch(text) or _FLOAT.fullmatch(text)
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, style='"' if _LINE_ENDS.search(text) else "'" if is_number else None)


_Dumper.add_representer(str, _represent_text)


def render_yaml(value: object, *, width: int = _MAX_LINE_CHARACTERS, flow_leaves: bool = True) -> str:
    """A value as YAML, fields in their order. `flow_leaves`: lists and mappings of scalars are written on one line."""
    flow_style = None if flow_leaves else False
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=flow_style, width=width)
