"""`pandora tools list`: every tool that a turn may call, and which are offered."""

import json
from pathlib import Path

from pandora_dagster.cli.ask.tool_commands import list_tools
from pandora_dagster.cli.program import PANELS
from tests.cli.conftest import Pandora


def test_tools_are_listed_with_permissions_and_limits(pandora: Pandora, tmp_path: Path) -> None:
    """Nothing that opens connections is offered unless the web is on and a provider is named."""
    assert any(list_tools in group.commands for group in PANELS["Ask"] if not callable(group))
    env = {"PANDORA_ROOT": str(tmp_path / "store")}
    rows = {row["name"]: row for row in json.loads(pandora("tools", "list", "--json", env=env).stdout)}
    assert {name for name, row in rows.items() if row["offered"]} == {"doc.search", "memory.query", "memory.create", "memory.forget"}
    assert rows["internet.research"]["permissions"] == ["network", "read_store"]
    assert all(row["deadline_s"] > 0 and row["max_result_bytes"] > 0 and row["description"] for row in rows.values())
    table = pandora("tools", "list", env=env).stdout
    assert "no: PANDORA_WEB=on" in table and "memory.create" in table
    (tmp_path / "hits.json").write_text("{}")
    on = {**env, "PANDORA_WEB": "on", "PANDORA_WEB_MAX_SECONDS": "60", "PANDORA_SEARCH": f"recorded={tmp_path / 'hits.json'}"}
    row = next(r for r in json.loads(pandora("tools", "list", "--json", env=on).stdout) if r["name"] == "internet.research")
    assert row["offered"] and row["deadline_s"] < INTERNET_DEADLINE_S


INTERNET_DEADLINE_S = 900.0
"""Without a setting; the turn's own is bounded by PANDORA_WEB_MAX_SECONDS."""
