"""A question is answered from a folder of documents with the web off."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Pandora

QUESTION = "How much does the Vela lamp weigh?"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "lamp.md").write_text("# Vela lamp\n\nThe Vela lamp weighs 210 g.\n")
    return {
        "PANDORA_ROOT": str(tmp_path / "store"),
        "PANDORA_USER": "anna",
        "PANDORA_SEARCH": f"searxng=http://search.test/,folder={folder}",
    }


def test_a_turn_is_answered_from_the_folder(pandora: Pandora, env: dict[str, str], tmp_path: Path) -> None:
    told = pandora("ask", QUESTION, env=env)
    assert told.returncode == 0, told.stderr
    url = (tmp_path / "docs" / "lamp.md").as_uri()
    assert "210 g" in told.stdout and url in told.stdout and "searxng" not in told.stderr
    section = pandora("show", "1", "--section", "4", env=env).stdout
    assert f"**Page:** read <{url}>" in section


def test_a_command_is_answered_from_the_folder(pandora: Pandora, env: dict[str, str], tmp_path: Path) -> None:
    told = pandora("research", "run", QUESTION, "--provider", f"folder={tmp_path / 'docs'}", "--json", env=env)
    assert told.returncode == 0, told.stderr
    (claim,) = json.loads(told.stdout)["claims"]
    assert claim["value"] == "210 g" and claim["quote"] == "The Vela lamp weighs 210 g."
