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


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What does the Vela lamp cost?", "The Vela lamp costs 43 euros."),
        ("How wide is the Vela lamp?", ""),
        ("Is the Vela lamp waterproof?", ""),
        ("Who designed the Vela lamp?", ""),
    ],
)
def test_a_second_question_about_a_thing_is_not_answered_with_the_fact_of_the_first(
    pandora: Pandora, env: dict[str, str], tmp_path: Path, question: str, answer: str
) -> None:
    """The name alone made half of the question's weight: the weight of the lamp was given for its price."""
    assert "210 g" in pandora("ask", QUESTION, env=env).stdout
    (tmp_path / "docs" / "shop.md").write_text("# Vela lamp in the shop\n\nThe Vela lamp costs 43 euros.\n")
    told = pandora("ask", question, env=env)
    assert "internet.research: visit " in told.stderr and "210 g" not in told.stdout
    assert (answer or "I found nothing about this.") in told.stdout
    again = pandora("ask", QUESTION, env=env)
    assert "210 g" in again.stdout and "internet.research: visit " not in again.stderr


def test_without_a_provider_a_record_answers_only_its_own_question(pandora: Pandora, env: dict[str, str]) -> None:
    pandora("ask", QUESTION, env=env)
    offline = {**env, "PANDORA_SEARCH": ""}
    assert "I found nothing about this." in pandora("ask", "What does the Vela lamp cost?", env=offline).stdout
    assert "210 g" in pandora("ask", "How heavy is the Vela lamp?", env=offline).stdout
