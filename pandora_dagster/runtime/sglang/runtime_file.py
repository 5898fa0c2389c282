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
from pandora_dagster.recipes.yaml_source import SourceFault, read_text, syntax_fault
from pandora_dagster.runtime.sglang.endpoints import Endpoints, RuntimeFile, chosen_endpoints

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
    text = read_text(path)
    if isinstance(text, SourceFault):
        raise ConfigurationError(f"{path}:{text.line}: {text.text}", hint=_HINT)
    try:
        tree = cast("object", YAML(typ="rt").load(text))  # pyright: ignore[reportUnknownMemberType]
    except YAMLError as error:
        fault = syntax_fault(error)
        raise ConfigurationError(f"{path}:{fault.line}: {fault.text}", hint=_HINT) from None
    except RecursionError:
        raise ConfigurationError(f"{path}:1: nested too deeply: expected a runtime file", hint=_HINT) from None
    if not isinstance(tree, Mapping):
        raise ConfigurationError(f"{path}:1: no mapping: expected preset and presets", hint=_HINT)
    return cast("object", tree)


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
    """One fault: where, what, what was expected. Unknown fields and key names are reported without their value."""
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
