"""Tools and search providers of other packages, found by their entry points. Nothing is loaded that no setting names.

An entry point of the group `pandora_dagster.tools` is a function without arguments that returns a `Tool`; one of the group
`pandora_dagster.search_providers` is a function of the place behind `name=`, which returns a `SearchProvider`.
"""

import re
from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

from jsonschema import Draft202012Validator

from pandora_dagster.contracts.ports.tool import STORE_PERMISSIONS, Tool, ToolPermission, ToolSpec
from pandora_dagster.contracts.web.search import SearchProvider
from pandora_dagster.errors import ConfigurationError
from pandora_dagster.tools.tool_registry import TOOL_NAMES

TOOL_GROUP = "pandora_dagster.tools"
PROVIDER_GROUP = "pandora_dagster.search_providers"
_TOOL_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}\.[a-z][a-z0-9_]{0,39}")
_MAX_DEADLINE_S = 3_600.0


def open_plugin_tools(names: Sequence[str], *, is_web_open: bool, report: Callable[[str], None]) -> tuple[Tool, ...]:
    """The tools of the named entry points. One that cannot be used costs only itself: `report` receives a sentence about it.

    A tool may use the store of its user; one that opens connections needs `is_web_open`, and none may start programs.
    """
    allowed = STORE_PERMISSIONS.union([ToolPermission.NETWORK] if is_web_open else [])
    tools: dict[str, Tool] = {}
    for name in dict.fromkeys(names):
        try:
            tool = _checked_tool(name, _loaded(TOOL_GROUP, name)())
            if refused := sorted(tool.spec.permissions - allowed):
                raise ConfigurationError(
                    f"{tool.spec.name} needs {', '.join(refused)}: expected PANDORA_WEB=on for network; process is never given"
                )
            if tool.spec.name in tools:
                raise ConfigurationError(f"{tool.spec.name}: also the tool of another entry point: expected a name of its own")
        except Exception as error:  # code of another package: whatever it raises, the other tools are there
            report(f"PANDORA_TOOLS: {name}: not offered: {type(error).__name__}: {error}"[:500])
            continue
        tools[tool.spec.name] = tool
    return tuple(tools.values())


def open_plugin_provider(name: str, place: str) -> SearchProvider | None:
    """The search provider of the entry point `name` for a place; None where there is none. Raises ConfigurationError."""
    if not entry_points(group=PROVIDER_GROUP, name=name):
        return None
    try:
        provider = _loaded(PROVIDER_GROUP, name)(place)
    except ConfigurationError:
        raise
    except Exception as error:
        raise ConfigurationError(f"search provider {name}: {type(error).__name__}: {error}"[:500]) from error
    if not isinstance(getattr(provider, "name", None), str) or not callable(getattr(provider, "search", None)):
        raise ConfigurationError(f"search provider {name}: {type(provider).__name__}: expected a SearchProvider with `name` and `search`")
    return cast("SearchProvider", provider)


def _loaded(group: str, name: str) -> Callable[..., Any]:
    found: Sequence[EntryPoint] = tuple(entry_points(group=group, name=name))
    if not found:
        raise ConfigurationError(f"{name}: no installed package has this entry point of {group}")
    if len({point.value for point in found}) > 1:
        raise ConfigurationError(f"{name}: {', '.join(point.value for point in found)}: expected one entry point of this name")
    return found[0].load()


def _checked_tool(name: str, tool: Any) -> Tool:
    """`tool` where it has the port's form; raises ConfigurationError, and jsonschema's error for wrong parameters."""
    spec = getattr(tool, "spec", None)
    if not isinstance(spec, ToolSpec) or not callable(getattr(tool, "run", None)):
        raise ConfigurationError(f"{type(tool).__name__}: expected a Tool with `spec` and `run`")
    if spec.name in TOOL_NAMES or not _TOOL_NAME.fullmatch(spec.name):
        raise ConfigurationError(
            f"tool name {spec.name[:80]!r}: expected two words such as {name}.search, and none of {', '.join(sorted(TOOL_NAMES))}"
        )
    if not spec.description or not 0 < spec.deadline_s <= _MAX_DEADLINE_S or not spec.permissions <= frozenset(ToolPermission):
        raise ConfigurationError(f"{spec.name}: expected a description, a deadline of at most {_MAX_DEADLINE_S:g} s and known permissions")
    Draft202012Validator.check_schema(dict(spec.parameters))
    return cast("Tool", tool)
