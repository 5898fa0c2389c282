"""The programs behind the web page."""

import pytest

from pandora_dagster.defs.turn.turn_run import ui_commands
from pandora_dagster.settings import load_settings
from pandora_dagster.shipped import shipped_folder


@pytest.mark.parametrize(("has_workspace", "opened"), [(True, "workspace.yaml"), (False, str(shipped_folder() / "workspace.yaml"))])
def test_the_page_opens_the_same_store_and_history(tmp_path, monkeypatch, has_workspace, opened):
    """In a checkout `workspace.yaml`, elsewhere the shipped one; both over the settings' own folders."""
    monkeypatch.chdir(tmp_path)
    if has_workspace:
        (tmp_path / "workspace.yaml").write_text("load_from: []\n")
    (page, daemon, pages), environment = ui_commands(load_settings({"PANDORA_ROOT": "store"}), host="127.0.0.1", port=3001)
    assert page[1:] == ["-m", "dagster_webserver", "-w", opened, "-h", "127.0.0.1", "-p", "3001"]
    assert daemon[1:] == ["-m", "dagster._daemon", "run", "-w", opened]
    assert pages[-3:] == ["pages", "--dagster", "http://127.0.0.1:3001"]
    assert environment["DAGSTER_HOME"] == str(tmp_path / "store" / "dagster")
    assert environment["PANDORA_ROOT"] == str(tmp_path / "store")
    assert (tmp_path / "store" / "dagster" / "dagster.yaml").is_file()
