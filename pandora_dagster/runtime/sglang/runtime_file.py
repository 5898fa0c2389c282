"""`runtime.yaml` -> `Endpoints`, or all its faults as `file:line: what: expected`. Knows YAML and lines; no socket."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedBase
from ruamel.yaml.error import YAMLError

from pandora_dagster.errors import ConfigurationError
from pandora_dagster.runtime.sglang.endpoints import Endpoints, RuntimeFile, chosen_endpoints

_MAX_BYTES = 1_000_000
"""Bytes; a runtime file has a few thousand."""
_HINT = "The shipped data/runtime.yaml shows the form."


def load_endpoints(path: Path) -> Endpoints:
    """The endpoints that the file's chosen preset names; raises ConfigurationError with every fault of the file."""
    tree = _tree(path)
    try:
        return chosen_endpoints(RuntimeFile.model_validate(_plain(tree)), source=path.name)
    except ValidationError as wrong:
        faults = [f"{path}:{_line(tree, e['loc'])}: {_fault_text(e)}" for e in wrong.errors(include_url=False)]
        raise ConfigurationError("\n".join(faults), hint=_HINT) from None


def _tree(path: Path) -> object:
    """The file as ruamel reads it: with positions, and with two equal keys refused."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ConfigurationError(f"{path}: {path.stat().st_size} bytes: expected at most {_MAX_BYTES}", hint=_HINT)
        text = path.read_text(encoding="utf-8")
    except OSError as fault:
        raise ConfigurationError(f"{path}: {fault.strerror or fault}: expected a readable file", hint=_HINT) from None
    except UnicodeDecodeError as fault:
        raise ConfigurationError(f"{path}: byte {fault.start} is not UTF-8: expected YAML in UTF-8", hint=_HINT) from None
    try:
        tree = cast("object", YAML(typ="rt").load(text))  # pyright: ignore[reportUnknownMemberType]
    except (YAMLError, RecursionError) as fault:
        raise ConfigurationError(f"{path}:{_broken_line(fault)}: {_problem(fault)}: expected valid YAML", hint=_HINT) from None
    if not isinstance(tree, Mapping):
        raise ConfigurationError(f"{path}:1: no mapping: expected preset and presets", hint=_HINT)
    return cast("object", tree)


def _broken_line(fault: Exception) -> int:
    mark: object = getattr(fault, "problem_mark", None)
    line: object = getattr(mark, "line", None)
    return line + 1 if isinstance(line, int) else 1


def _problem(fault: Exception) -> str:
    """ruamel's short account; the long one quotes the file, which may hold a key that should not stand there."""
    problem: object = getattr(fault, "problem", None)
    return str(problem or type(fault).__name__).split(" with value")[0].replace("\n", " ")


def _plain(node: object) -> object:
    """The tree without ruamel's own types."""
    if isinstance(node, Mapping):
        pairs = cast("Mapping[object, object]", node)
        return {str(key): _plain(value) for key, value in pairs.items()}
    if isinstance(node, Sequence) and not isinstance(node, str | bytes):
        return [_plain(value) for value in cast("Sequence[object]", node)]
    if isinstance(node, bool):
        return node
    for kind in (int, float, str):
        if isinstance(node, kind):
            return kind(node)
    return node


def _line(tree: object, where: tuple[int | str, ...]) -> int:
    """The line of the deepest node of `where` that stands in the file, counted from 1."""
    line, node = 1, tree
    for step in where:
        if not isinstance(node, CommentedBase) or not isinstance(node, Mapping):
            break
        branch = cast("Mapping[object, object]", node)
        if step not in branch:
            break
        line = cast("int", cast("Any", node).lc.key(step)[0]) + 1  # Any: ruamel types no positions
        node = branch[step]
    return line


_FORBIDDEN_KEY = "a key never stands in this file: name its environment variable in api_key_env"


def _fault_text(error: ErrorDetails) -> str:
    """One fault: where, what, what was expected. Unknown fields and key names are told without their value."""
    where = ".".join(str(step) for step in error["loc"] if step != "[key]")
    name = str(error["loc"][-1]) if error["loc"] else ""
    if error["type"] == "extra_forbidden":
        return f"{where}: {_FORBIDDEN_KEY if 'key' in name or 'token' in name else 'unknown field: expected none of this name'}"
    if error["type"] == "missing":
        return f"{where}: missing: expected a value"
    if error["type"] == "value_error":
        return (f"{where}: " if where else "") + error["msg"].removeprefix("Value error, ")
    shown = "" if name == "api_key_env" or isinstance(error["input"], dict | list) else f"{str(error['input'])[:60]!r}: "
    return f"{where}: {shown}expected: {error['msg'][:1].lower()}{error['msg'][1:]}"
