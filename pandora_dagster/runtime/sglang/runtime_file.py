"""Reads `runtime.yaml` into `Endpoints`, or reports all its faults as `file:line: what: expected`. Opens no socket."""

from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pandora_dagster.documents.plain_yaml import SourceFault, YamlSource, read_yaml_mapping
from pandora_dagster.errors import ConfigurationError
from pandora_dagster.recipes.text_files import read_text
from pandora_dagster.runtime.sglang.endpoints import Endpoints, RuntimeFile, Server, on_this_machine, select_endpoints

_HINT = "The shipped data/runtime.yaml shows the form."


def load_endpoints(path: Path) -> Endpoints:
    """The endpoints that the file's chosen preset names; raises ConfigurationError with every fault of the file."""
    text = read_text(path)
    source = YamlSource(None, (text,)) if isinstance(text, SourceFault) else read_yaml_mapping(text)
    if source.faults:
        raise ConfigurationError("\n".join(f"{path}:{fault.line}: {fault.text}" for fault in source.faults), hint=_HINT)
    try:
        return select_endpoints(RuntimeFile.model_validate(source.data), source=path.name)
    except ValidationError as error:
        faults = [f"{path}:{source.line(fault['loc'])}: {_fault_text(fault)}" for fault in error.errors(include_url=False)]
        raise ConfigurationError("\n".join(faults), hint=_HINT) from None


_SETTINGS = {"base_url": "BASE_URL", "model": "MODEL", "api_key_env": "API_KEY_ENV", "context_length": "CONTEXT"}
"""Field of a server -> the end of the name of its setting."""


def single_server_endpoints(base_url: str, model: str, *, api_key_env: str, context: int) -> Endpoints:
    """The endpoints of one server for all layers, as the settings `PANDORA_OPENAI_...` name it; raises ConfigurationError.

    A server on this machine gets one call at a time: Ollama runs one and lets the others wait while their time-out runs.
    """
    server: dict[str, object] = {"base_url": base_url, "model": model}
    server |= {"api_key_env": api_key_env} if api_key_env else {}
    server |= {"context_length": context} if context else {}
    try:
        server |= {"max_connections": 1} if on_this_machine(Server.model_validate(server).base_url) else {}
    except ValidationError as error:
        faults = [_fault_text(fault) for fault in error.errors(include_url=False)]
        named = [f"PANDORA_OPENAI_{_SETTINGS[field]}: {text}" for field, _, text in (fault.partition(": ") for fault in faults)]
        raise ConfigurationError("\n".join(named)) from None
    file = RuntimeFile.model_validate({"preset": "openai", "presets": {"openai": {"servers": {"openai": server}}}})
    return select_endpoints(file, source="PANDORA_OPENAI_BASE_URL")


_MAX_VALUE_CHARACTERS = 60
"""Characters of a wrong value that a message quotes."""
_FORBIDDEN_KEY = "do not store a key in this file: name its environment variable in api_key_env"


def _fault_text(error: ErrorDetails) -> str:
    """One fault: where, what, what was expected. Unknown fields and key names are reported without their value."""
    where = ".".join(str(step) for step in error["loc"] if step != "[key]")
    field = str(error["loc"][-1]) if error["loc"] else ""
    if error["type"] == "extra_forbidden":
        return f"{where}: {_FORBIDDEN_KEY if 'key' in field or 'token' in field else 'unknown field: expected none of this name'}"
    if error["type"] == "missing":
        return f"{where}: missing: expected a value"
    if error["type"] == "value_error":
        return (f"{where}: " if where else "") + error["msg"].removeprefix("Value error, ")
    value = (
        "" if field == "api_key_env" or isinstance(error["input"], dict | list) else f"{str(error['input'])[:_MAX_VALUE_CHARACTERS]!r}: "
    )
    return f"{where}: {value}expected: {error['msg'][:1].lower()}{error['msg'][1:]}"
