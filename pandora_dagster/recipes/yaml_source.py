"""A YAML file that users write, as plain data with the line of every field.

Only what JSON can hold is taken: mappings with string keys, lists, strings, numbers, true, false, null. Aliases and other tags are faults.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

FileStamp = tuple[int, int, int, int]
"""Times of modification and of change in ns, size and inode of a file: different after every edit."""
FieldPath = tuple[str | int, ...]
Node = Any
"""A node of the YAML library, which has no types: `id` is scalar, sequence or mapping."""
_PLAIN = frozenset(f"tag:yaml.org,2002:{name}" for name in ("map", "seq", "str", "int", "float", "bool", "null"))
_MAX_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class SourceFault:
    """One fault at a 1-based line. `str` without the file: `field: what: what was expected`."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class YamlSource:
    """A file read as far as it could be. `data` is None where a fault keeps it from being used."""

    data: dict[str, Any] | None
    faults: tuple[SourceFault, ...] = ()
    lines: dict[FieldPath, int] = field(default_factory=dict[FieldPath, int])

    def line(self, place: FieldPath) -> int:
        """The line of the field at `place`, or of the nearest field above it."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)


def read_text(path: Path) -> str | SourceFault:
    """A file's text with plain line ends, or the fault that keeps it from being read. An unchanged file is opened once per process."""
    try:
        return _read_unchanged(path, file_stamp(path))
    except OSError as error:
        return SourceFault(1, f"cannot be read: {error.strerror}: expected a file")


def file_stamp(path: Path) -> FileStamp:
    """The stamp of a file; raises OSError. Taken before the file is read: an edit in between changes the next stamp."""
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino


@lru_cache(maxsize=256)
def _read_unchanged(path: Path, stamp: FileStamp) -> str | SourceFault:
    """The file with this stamp; every edit gives it another. Raises OSError, which is not cached."""
    data = path.read_bytes()
    if len(data) > _MAX_BYTES:
        return SourceFault(1, f"{len(data)} bytes: expected at most {_MAX_BYTES}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return SourceFault(data.count(b"\n", 0, error.start) + 1, f"byte {error.start} is not UTF-8: expected UTF-8 text")
    return text.replace("\r\n", "\n") if text.strip() else SourceFault(1, "empty file: expected text")


def read_yaml(text: str) -> YamlSource:
    """Take YAML text apart; never raises."""
    yaml = _yaml()
    try:
        root: Node = yaml.compose(text)
        if root is None or root.id != "mapping":
            return YamlSource(None, (SourceFault(1, "not a mapping: expected `field: value` lines"),))
        walk = _Walk()
        walk.visit(root, ())
        data = yaml.constructor.construct_document(root) if walk.loadable else None
    except (YAMLError, ValueError) as error:
        return YamlSource(None, (_syntax_fault(error),))
    except RecursionError:
        return YamlSource(None, (SourceFault(1, "nested too deeply: expected fewer levels"),))
    return YamlSource(data, tuple(walk.faults), walk.lines)


def _yaml() -> Any:
    """A fresh YAML 1.2 reader. Untyped library; equal keys are found by the walk, all of them at once."""
    yaml = YAML(typ="safe", pure=True)
    yaml.allow_duplicate_keys = True
    return yaml


def _syntax_fault(error: Exception) -> SourceFault:
    """The fault of a text that is not YAML. Values are not quoted: one may be a key that should not be in the file."""
    if isinstance(error, MarkedYAMLError):
        marked: Any = error  # untyped library
        mark = marked.problem_mark or marked.context_mark
        problem = str(marked.problem or marked.context).split(" with value")[0].replace("\n", " ")
        return SourceFault(mark.line + 1 if mark else 1, f"not YAML: {problem}: expected YAML 1.2")
    return SourceFault(1, f"not YAML: {str(error).splitlines()[0]}: expected YAML 1.2")


class _Walk:
    """Visits the nodes of one document once: lines of all fields, and what plain data cannot hold."""

    def __init__(self) -> None:
        self.lines: dict[FieldPath, int] = {(): 1}
        self.faults: list[SourceFault] = []
        self.loadable = True
        self._seen: set[int] = set()

    def visit(self, node: Node, place: FieldPath) -> None:
        if id(node) in self._seen:
            self._refuse(self.lines[place], place, "an alias: expected the value itself")
            return
        self._seen.add(id(node))
        if str(node.tag) not in _PLAIN:
            self._refuse(_line(node), place, f"a value with the tag {str(node.tag).rsplit(':', 1)[-1]}: expected a plain value (quote it)")
        elif node.id == "scalar":
            self._number(node, place)
        else:
            for child, below in self._children(node, place):
                self.visit(child, below)

    def _children(self, node: Node, place: FieldPath) -> Iterator[tuple[Node, FieldPath]]:
        if node.id == "sequence":
            for index, child in enumerate(node.value):
                self.lines[(*place, index)] = _line(child)
                yield child, (*place, index)
        else:
            yield from self._fields(node, place)

    def _fields(self, node: Node, place: FieldPath) -> Iterator[tuple[Node, FieldPath]]:
        for key, child in node.value:
            if key.id != "scalar" or str(key.tag) != "tag:yaml.org,2002:str":
                shown = repr(str(key.value)) if key.id == "scalar" else "a list or mapping"
                self._refuse(_line(key), place, f"the key {shown}: expected a string as key")
                continue
            below = (*place, str(key.value))
            if below in self.lines:
                self.faults.append(
                    SourceFault(_line(key), f"{dotted_path(below)}: duplicate key: expected once (first in line {self.lines[below]})")
                )
                continue
            self.lines[below] = _line(key)
            yield child, below

    def _number(self, node: Node, place: FieldPath) -> None:
        if str(node.tag).endswith(":float") and not math.isfinite(_as_float(str(node.value))):
            self._refuse(_line(node), place, f"{node.value}: expected a finite number")

    def _refuse(self, line: int, place: FieldPath, text: str) -> None:
        self.loadable = False
        self.faults.append(SourceFault(line, f"{dotted_path(place)}: {text}" if place else text))


def _as_float(text: str) -> float:
    try:
        return float(text.replace("_", ""))
    except ValueError:
        return math.inf  # `.inf`, `.nan` and sexagesimal numbers


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def dotted_path(place: FieldPath) -> str:
    """`("prompt_files", 0, "path")` as `prompt_files[0].path`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).removeprefix(".")
