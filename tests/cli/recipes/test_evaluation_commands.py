"""`pandora recipes test` and `pandora recipes replay`, as a user types them."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.recipes.test_recipe_commands import Shell, shell
from tests.governance.recipe_copies import edit

__all__ = ["shell"]
REFLECTION = "recipes/pipeline/phase1_reflection.yaml"


def test_tests_pass_fail_and_leave_a_report(shell: Shell) -> None:
    """Exit code 0 and 1; the fault says place, value and expectation; JUnit and JSON say the same. No store is made."""
    report = shell.folder / "report.xml"
    assert shell.recipes("test", "reflection", "--runtime", "extractive").exit_code == 0
    edit(shell.folder / "edited", REFLECTION, "equals: PROCEED", "equals: CLARIFY")
    failed = shell.recipes("test", "reflection", "--junit", str(report))
    assert failed.exit_code == 1
    assert 'a clear question proceeds: decision: "PROCEED": expected equals "CLARIFY"' in failed.stdout
    assert "2 tests of 1 recipe, 1 failed" in failed.stderr
    assert ElementTree.parse(report).getroot().get("failures") == "1"
    outcomes = json.loads(shell.recipes("test", "reflection", "--json").stdout)
    assert [(one["passed"], one["runtime"], one["reads_prompt"]) for one in outcomes] == [
        (False, "extractive", False),
        (True, "extractive", False),
    ]
    assert not (shell.folder / "store").exists()


def test_what_answered_is_named_and_that_it_reads_no_prompt(shell: Shell) -> None:
    """Every prompt replaced by rubbish passes on the embedded runtime, and test, replay and scores say why."""
    unread = "answers are of the embedded runtime, which reads no prompt: no prompt was tested by them"
    shell.edited("Say CLARIFY whatever is asked. Write rubbish.")
    shell.asked()
    tested = shell.recipes("test", "reflection")
    assert "answered by: extractive 2" in tested.stderr and f"2 of 2 {unread}" in tested.stderr
    replayed = shell.recipes("replay", "reflection")
    assert "extractive 1" in replayed.stdout and f"1 of 1 {unread.replace('answers are', 'answer is')}" in replayed.stderr
    scored = shell.recipes("scores", "reflection")
    assert "answered by extractive 1" in scored.stdout and f"1 of 1 {unread.replace('answers are', 'answer is')}" in scored.stderr
    assert json.loads(shell.printed("scores", "reflection", "--json"))[0]["figures"].popitem()[1]["answered_by"] == {"extractive": 1}


def test_recordings_are_made_of_a_model_and_read_from_a_folder(shell: Shell) -> None:
    """The embedded runtime is refused, as are an empty folder and two sources of answers."""
    folder = str(shell.folder / "recorded")
    refused = shell.recipes("record", "reflection", "--runtime", "extractive", "--to", folder)
    assert "reads no prompt: expected a model to record" in str(refused.exception)
    missing = shell.recipes("test", "reflection", "--recorded", folder)
    assert "no recorded answers" in str(missing.exception)
    both = shell.recipes("test", "reflection", "--recorded", folder, "--runtime", "extractive")
    assert both.exit_code == 2 and "expected one of them" in both.stderr


def test_a_version_is_tried_with_the_tests_of_its_file(shell: Shell) -> None:
    """An older version, before it counts again."""
    first = shell.asked()
    shell.edited("Ask back.")
    assert f'"version": "{first}"' in shell.printed("test", f"reflection@{first}", "--json")


def test_a_replay_shows_both_sides(shell: Shell) -> None:
    """The same version: all the same. What cannot be replayed is exit code 2 with the reason."""
    version = shell.asked()
    report = json.loads(shell.printed("replay", "reflection", "--from", version, "--to", "file", "--last", "5", "--json"))
    assert (report["calls"], report["same"], report["from"], report["to"]) == (1, 1, version, version)
    table = shell.printed("replay", "reflection")
    assert "the same: 1 of 1 answer" in table and "tokens a call" in table
    assert shell.recipes("replay", "retrieval", "--layer", "LARGE").exit_code == 2
    none = shell.recipes("replay", "profile")
    assert none.exit_code == 2 and "no logged call could be repeated" in none.stderr


def test_scores_stand_beside_the_version_before(shell: Shell) -> None:
    """One call each: figures, and that it is too little to judge."""
    first = shell.asked()
    shell.edited("Ask back.")
    second = shell.asked()
    report = json.loads(shell.printed("scores", "reflection", "--json"))[0]
    assert (report["verdict"], report["predecessor"], report["version"]) == ("not enough data", first, second)
    assert {version: row["calls"] for version, row in report["figures"].items()} == {first: 1, second: 1}
    assert f"pipeline/phase1_reflection@{second}" in shell.printed("scores")


@pytest.mark.parametrize("name", ["nobody", "reflection@ffff"])
def test_what_is_not_there_is_named(shell: Shell, name: str) -> None:
    """Before anything runs."""
    result = shell.recipes("test", name)
    assert result.exit_code != 0 and "expected" in str(result.exception)
    assert Path(shell.folder / "edited").is_dir()
