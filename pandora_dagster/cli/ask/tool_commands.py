"""The command `tools list`: what a turn may call."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from pandora_dagster.cli.app_context import AsJson, app_of
from pandora_dagster.cli.output import print_json, print_rows

if TYPE_CHECKING:
    from pandora_dagster.contracts.ports.tool import ToolSpec


def list_tools(context: typer.Context, as_json: AsJson = False) -> None:
    """List the tools that a turn may call.

    With their permissions and limits; a tool that is not offered says what it lacks. PANDORA_TOOLS names tools of other packages.

    Example: pandora tools list
    """
    from pandora_dagster.tools.tool_registry import SPECS

    with app_of(context, embedded=True) as app:
        deps = app.dependencies
        known = {spec.name: spec for spec in SPECS} | {name: tool.spec for name, tool in deps.tools.items()}
        specs = list(known.values())
        rows = [_Tool(spec, spec.name in deps.tools and spec.permissions <= deps.tool_permissions) for spec in specs]
    if as_json:
        print_json([row.fields() for row in rows])
        return
    print_rows(
        rows,
        {
            "Tool": lambda row: row.spec.name,
            "Offered": lambda row: "yes" if row.offered else "no: PANDORA_WEB=on and PANDORA_SEARCH are needed",
            "Permissions": lambda row: ", ".join(row.permissions),
            "Seconds": lambda row: f"{row.spec.deadline_s:g}",
            "Description": lambda row: row.spec.description,
        },
    )


@dataclass(frozen=True, slots=True)
class _Tool:
    spec: "ToolSpec"
    offered: bool

    @property
    def permissions(self) -> list[str]:
        return sorted(permission.value for permission in self.spec.permissions)

    def fields(self) -> dict[str, object]:
        spec = self.spec
        limits = {"deadline_s": spec.deadline_s, "max_result_bytes": spec.max_result_bytes}
        return {"name": spec.name, "offered": self.offered, "permissions": self.permissions, **limits, "description": spec.description}
