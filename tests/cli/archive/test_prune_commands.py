"""cold prune, and what restore, show and export say afterwards, as a user types them."""

import json
import os

import pytest
from typer.testing import CliRunner

from pandora_dagster.app import open_app
from pandora_dagster.cli.program import command_line
from pandora_dagster.settings import load_settings


@pytest.fixture
def run(tmp_path, monkeypatch):
    """`pandora --root ROOT ARGUMENTS` inside this process, over a store whose turns are archived and two days old as such."""
    for name in os.environ:
        if name.startswith(("PANDORA_", "DAGSTER_")):
            monkeypatch.delenv(name)
    root = tmp_path / "store"
    app = open_app(load_settings({"PANDORA_ROOT": str(root)}))
    app.transfer.import_example()
    app.close()
    invoke = lambda *arguments, **how: CliRunner().invoke(command_line, ["--root", str(root), *arguments], prog_name="pandora", **how)  # noqa: E731
    assert invoke("archive").exit_code == 0
    for path in root.glob("users/*/turns/*/turn.json"):
        manifest = json.loads(path.read_text())
        manifest["archive"]["archived_at"] = "2026-01-01T00:00:00Z"
        path.write_text(json.dumps(manifest))
    assert invoke("index", "rebuild").exit_code == 0
    invoke.root = root
    return invoke


def test_nothing_goes_unless_days_are_named(run):
    done = run("cold", "prune")
    assert done.exit_code == 2 and "kept for ever" in done.stderr and "--older-than" in done.stderr
    assert run("cold", "prune", "--older-than", "0").exit_code == 2


def test_prune_then_restore_show_and_export_say_so(run, monkeypatch):
    dry = json.loads(run("cold", "prune", "--older-than", "30d", "--dry-run", "--json").stdout)
    count = len(dry["deleted"])
    assert count and dry["dry_run"] and len(list(run.root.rglob("*.tar.zst"))) == count
    one = dry["deleted"][0]["turn"]
    assert run("pin", one).exit_code == 0
    monkeypatch.setenv("PANDORA_COLD_KEEP_DAYS", "30")
    asked = run("cold", "prune", input="n\n")
    assert asked.exit_code == 2 and f"Delete {count - 1} originals" in asked.stderr and len(list(run.root.rglob("*.tar.zst"))) == count
    done = run("cold", "prune", input="y\n")
    assert done.exit_code == 0 and f"originals of {count - 1} turns deleted" in done.stdout
    assert f"{one} is kept: it is pinned" in done.stderr
    two = next(t["turn"] for t in dry["deleted"] if t["turn"] != one)
    restored = run("restore", two)
    assert isinstance(restored.exception, Exception) and "originals were deleted on" in str(restored.exception)
    assert "its originals were deleted on" in run("show", two).stderr and "originals in cold/" in run("show", one).stderr
    exported = run("export")
    assert exported.exit_code == 0 and f"{count - 1} turns are exported with compressed texts" in exported.stderr
    assert run("index", "verify").exit_code == 0
    links = json.loads(run("lineage", "--verify", "--json").stdout)
    assert links["broken"] == [] and links["deleted_by_rule"] >= count - 1 and links["proved"]
    (run.root / json.loads(run("show", one, "--json").stdout)["manifest"]["archive"]["cold"]).unlink()
    assert run("unpin", one).exit_code == 0
    again = run("cold", "prune", "--yes")
    assert again.exit_code == 1 and "missing" in again.stderr
