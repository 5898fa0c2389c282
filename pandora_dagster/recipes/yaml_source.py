"""A YAML file that users write, as plain data with the line of every field.

Only values that JSON has are accepted: mappings with string keys, lists, strings, numbers, true, false, null. Aliases and other tags are
faults.
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
_JSON_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("map", "seq", "str", "int", "float", "bool", "null"))
_MAX_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class SourceFault:
    """One fault at a 1-based line. `str` without the file: `field: what: what was expected`."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class YamlSource:
    """A parsed file. `data` is None where a fault makes it unusable; `lines`: path of a field -> its line."""

    data: dict[str, Any] | None
    faults: tuple[SourceFault, ...] = ()
    lines: dict[FieldPath, int] = field(default_factory=dict[FieldPath, int])

    def line(self, path: FieldPath) -> int:
        """The line of the field at `path`, or of the nearest field above it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_text(path: Path) -> str | SourceFault:
    """A file's text with `\\n` as line end, or the fault where it cannot be read. An unchanged file is opened once per process."""
    try:
        return _read_unchanged(path, file_stamp(path))
    except OSError as error:
        return SourceFault(1, f"cannot be read: {error.strerror}: expected a file")


def file_stamp(path: Path) -> FileStamp:
    """The stamp of a file; raises OSError. Take it before reading: an edit in between changes the next stamp."""
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino


@lru_cache(maxsize=256)
def _read_unchanged(path: Path, stamp: FileStamp) -> str | SourceFault:
    """Read a file; `stamp` is the key of the cache, since every edit changes it. Raises OSError, which is not cached."""
    data = path.read_bytes()
    if len(data) > _MAX_BYTES:
        return SourceFault(1, f"{len(data)} bytes: expected at most {_MAX_BYTES}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return SourceFault(data.count(b"\n", 0, error.start) + 1, f"byte {error.start} is not UTF-8: expected UTF-8 text")
    return text.replace("\r\n", "\n") if text.strip() else SourceFault(1, "empty file: expected text")


def read_yaml(text: str) -> YamlSource:
    """Parse YAML text; every fault is in the result, none is raised."""
    yaml = _yaml()
    try:
        root: Node = yaml.compose(text)
        if root is None or root.id != "mapping":
            return YamlSource(None, (SourceFault(1, "not a mapping: expected `field: value` lines"),))
        reader = _NodeReader()
        reader.visit(root, ())
        data = yaml.constructor.construct_document(root) if reader.is_loadable else None
    except (YAMLError, ValueError) as error:
        return YamlSource(None, (_syntax_fault(error),))
    except RecursionError:
        return YamlSource(None, (SourceFault(1, "nested too deeply: expected fewer levels"),))
    return YamlSource(data, tuple(reader.faults), reader.lines)


def _yaml() -> Any:
    """A new YAML 1.2 parser of the untyped library. It allows duplicate keys: `_NodeReader` reports all of them at once."""
    yaml = YAML(typ="safe", pure=True)
    yaml.allow_duplicate_keys = True
    return yaml


def _syntax_fault(error: Exception) -> SourceFault:
    """The fault of a text that is not YAML. It quotes no value: a value may be a secret that should not be in the file."""
    if isinstance(error, MarkedYAMLError):
        untyped: Any = error
        mark = untyped.problem_mark or untyped.context_mark
        problem = str(untyped.problem or untyped.context).split(" with value")[0].replace("\n", " ")
        return SourceFault(mark.line + 1 if mark else 1, f"not YAML: {problem}: expected YAML 1.2")
    return SourceFault(1, f"not YAML: {str(error).splitlines()[0]}: expected YAML 1.2")


class _NodeReader:
    """Visits the nodes of one document once and collects the line of each field and every fault."""

    def __init__(self) -> None:
        self.lines: dict[FieldPath, int] = {(): 1}
        self.faults: list[SourceFault] = []
        self.is_loadable = True
        self._seen: set[int] = set()

    def visit(self, node: Node, path: FieldPath) -> None:
        if id(node) in self._seen:
            self._refuse(self.lines[path], path, "an alias: expected the value itself")
            return
        self._seen.add(id(node))
        if str(node.tag) not in _JSON_TAGS:
            self._refuse(_line(node), path, f"a value with the tag {str(node.tag).rsplit(':', 1)[-1]}: expected a plain value (quote it)")
        elif node.id == "scalar":
            self._check_number(node, path)
        else:
            for child, child_path in self._children(node, path):
                self.visit(child, child_path)

    def _children(self, node: Node, path: FieldPath) -> Iterator[tuple[Node, FieldPath]]:
        if node.id == "sequence":
            for index, child in enumerate(node.value):
                self.lines[(*path, index)] = _line(child)
                yield child, (*path, index)
        else:
            yield from self._fields(node, path)

    def _fields(self, node: Node, path: FieldPath) -> Iterator[tuple[Node, FieldPath]]:
        for key, child in node.value:
            if key.id != "scalar" or str(key.tag) != "tag:yaml.org,2002:str":
                key_text = repr(str(key.value)) if key.id == "scalar" else "a list or mapping"
                self._refuse(_line(key), path, f"the key {key_text}: expected a string as key")
                continue
            child_path = (*path, str(key.value))
            if child_path in self.lines:
                self.faults.append(
                    SourceFault(
                        _line(key), f"{dotted_path(child_path)}: duplicate key: expected once (first in line {self.lines[child_path]})"
                    )
                )
                continue
            self.lines[child_path] = _line(key)
            yield child, child_path

    def _check_number(self, node: Node, path: FieldPath) -> None:
        if str(node.tag).endswith(":float") and not math.isfinite(_as_float(str(node.value))):
            self._refuse(_line(node), path, f"{node.value}: expected a finite number")

    def _refuse(self, line: int, path: FieldPath, text: str) -> None:
        self.is_loadable = False
        self.faults.append(SourceFault(line, f"{dotted_path(path)}: {text}" if path else text))


def _as_float(text: str) -> float:
    try:
        return float(text.replace("_", ""))
    except ValueError:
        return math.inf  # `.inf`, `.nan` and sexagesimal numbers


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def dotted_path(path: FieldPath) -> str:
    """`("prompt_files", 0, "path")` as `prompt_files[0].path`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
