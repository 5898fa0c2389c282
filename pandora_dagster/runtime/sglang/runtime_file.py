"""`runtime.yaml` -> `Endpoints`, or all its faults as `file:line: what: expected`. Knows YAML and lines; no socket."""

from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pandora_dagster.errors import ConfigurationError
from pandora_dagster.recipes.yaml_source import SourceFault, YamlSource, read_text, read_yaml
from pandora_dagster.runtime.sglang.endpoints import Endpoints, RuntimeFile, chosen_endpoints

_HINT = "The shipped data/runtime.yaml shows the form."


def load_endpoints(path: Path) -> Endpoints:
    """The endpoints that the file's chosen preset names; raises ConfigurationError with every fault of the file."""
    text = read_text(path)
    source = YamlSource(None, (text,)) if isinstance(text, SourceFault) else read_yaml(text)
    if source.faults:
        raise ConfigurationError("\n".join(f"{path}:{fault.line}: {fault.text}" for fault in source.faults), hint=_HINT)
    try:
        return chosen_endpoints(RuntimeFile.model_validate(source.data), source=path.name)
    except ValidationError as wrong:
        faults = [f"{path}:{source.line(e['loc'])}: {_fault_text(e)}" for e in wrong.errors(include_url=False)]
        raise ConfigurationError("\n".join(faults), hint=_HINT) from None


_FORBIDDEN_KEY = "do not store a key in this file: name its environment variable in api_key_env"


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
