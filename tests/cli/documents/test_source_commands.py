"""`pandora research`, `visit` and `memory`: what is stored is shown, what is wrong is reported, one user at a time."""

import json
import os
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pandora_dagster.cli.program import command_line
from pandora_dagster.contracts.user.sources import Research, Visit
from pandora_dagster.errors import DocumentError, InputError
from tests.stores.user.test_source_files import RESEARCH, VISIT

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`pandora --root EMPTY ARGUMENTS` inside this process."""
    for name in os.environ:
        if name.startswith("PANDORA_"):
            monkeypatch.delenv(name)
    (tmp_path / "store" / "users").mkdir(parents=True)
    return lambda *arguments: CliRunner().invoke(command_line, ["--root", str(tmp_path / "store"), *arguments], prog_name="pandora")


@pytest.fixture
def given(tmp_path: Path):
    """A file with a record."""

    def write(record: object) -> str:
        path = tmp_path / "given.json"
        path.write_text(record if isinstance(record, str) else json.dumps(record))
        return str(path)

    return write


def test_research_is_added_listed_and_shown(invoke, given) -> None:
    """With age, freshness and expiry; a page that is not stored yet is reported."""
    added = invoke("research", "add", given(RESEARCH), "--user", "anna", "--json")
    assert (added.exit_code, json.loads(added.stdout)) == (0, {"user_id": "anna", "id": "research_cache/commerce.laptop.json"})
    assert "visit_abc123 is not stored yet" in added.stderr
    (row,) = json.loads(invoke("research", "list", "--user", "anna", "--json").stdout)
    assert (row["topic"], row["expired"], row["freshness_score"]) == ("commerce.laptop", True, 0.0) and row["age_hours"] > 1_000
    shown = json.loads(invoke("research", "show", "commerce.laptop", "--user", "anna", "--json").stdout)
    assert shown.pop("provenance")["by"] == "pandora research add" and shown == RESEARCH
    assert "commerce.laptop" in invoke("research", "list", "--user", "anna").stdout
    assert "Lenovo LOQ 15 @ $697" in invoke("research", "show", "commerce.laptop", "--user", "anna").stdout


def test_a_record_of_tomorrow_is_stored_and_reported(invoke, given) -> None:
    """A clock may run ahead: it is no fault, and it is seen."""
    research = {**RESEARCH, "created_at": "2199-01-01T00:00:00Z", "expires_at": "2199-01-02T00:00:00Z"}
    text = "2199-01-01T00:00:00Z is in the future"
    assert f"created_at {text}" in invoke("research", "add", given(research), "--user", "anna").stderr
    assert f"visited_at {text}" in invoke("visit", "add", given({**VISIT, "visited_at": "2199-01-01T00:00:00Z"}), "--user", "anna").stderr
    assert "future" not in invoke("visit", "add", given(VISIT), "--user", "anna").stderr


def test_a_visit_is_added_listed_and_shown(invoke, given) -> None:
    """The page's data come back as they were given."""
    assert invoke("visit", "add", given(VISIT), "--user", "anna").stdout.strip() == "webpage_cache/visit_abc123.json stored for anna"
    (row,) = json.loads(invoke("visit", "list", "--user", "anna", "--json").stdout)
    assert (row["visit_id"], row["title"]) == ("visit_abc123", "Lenovo LOQ 15")
    shown = json.loads(invoke("visit", "show", "visit_abc123", "--user", "anna", "--json").stdout)
    assert shown.pop("provenance")["by"] == "pandora visit add" and shown == VISIT
    assert "NVIDIA RTX 4050" in invoke("visit", "show", "visit_abc123", "--user", "anna").stdout
    assert json.loads(invoke("index", "verify", "--json").stdout) == {"differences": []}


@pytest.mark.parametrize(
    ("command", "record", "says"),
    [
        ("research", "{", r"given\.json:1: not JSON"),
        ("research", VISIT, r"(?s)topic: missing: expected category\.subcategory.*summary: missing: expected a text"),
        ("research", {**RESEARCH, "provenance": {"added_at": "2026-01-04", "by": "me"}}, "provenance: expected none"),
        ("visit", {**VISIT, "visit_id": "../x"}, r"visit_id: expected visit_"),
        ("visit", {**VISIT, "extracted_data": []}, r"extracted_data: "),
    ],
)
def test_a_wrong_record_is_refused_with_its_place(invoke, given, command, record, says) -> None:
    """Where, what, expected; nothing is stored."""
    result = invoke(command, "add", given(record), "--user", "anna")
    assert isinstance(result.exception, DocumentError | InputError)
    with pytest.raises(type(result.exception), match=says):
        raise result.exception
    assert json.loads(invoke(command, "list", "--user", "anna", "--json").stdout) == []


@pytest.mark.parametrize(("command", "shape"), [("research", Research), ("visit", Visit)])
def test_an_empty_record_names_every_field_that_is_missing(invoke, given, command, shape) -> None:
    """Each with what is expected there, so that the errors alone teach the format."""
    output = str(invoke(command, "add", given("{}"), "--user", "anna").exception).splitlines()
    required = [name for name, field in shape.model_fields.items() if field.is_required()]
    assert [line.split(": ")[1:3] for line in output] == [[name, "missing"] for name in required]
    assert all(": expected " in line and "section" not in line for line in output)


@pytest.mark.parametrize(("command", "shape"), [("research", Research), ("visit", Visit)])
def test_help_and_manual_name_every_field(invoke, given, command, shape) -> None:
    """The sample of the manual has them all, and is stored as it stands."""
    text = invoke(command, "add", "--help").stdout
    manual = (REPOSITORY / "docs" / "guides" / "add-sources.md").read_text(encoding="utf-8")
    sample = next(s for s in re.findall(r"```json[^\n]*\n(.*?)```", manual, re.DOTALL) if set(json.loads(s)) <= set(shape.model_fields))
    assert set(json.loads(sample)) == set(shape.model_fields) - {"provenance", "page"}
    for name in json.loads(sample):
        assert re.search(rf"^ +{name}  +\S", text, re.MULTILINE) and f"`{name}`" in manual
    assert invoke(command, "add", given(sample), "--user", "anna").exit_code == 0


def test_a_file_that_is_none_is_named(invoke, tmp_path) -> None:
    """Neither missing nor a folder."""
    assert "no such file" in str(invoke("visit", "add", str(tmp_path / "gone.json")).exception)
    assert "not a file" in str(invoke("research", "add", str(tmp_path)).exception)


def test_one_user_s_sources_are_not_another_s(invoke, given) -> None:
    """Lists are empty, and what is named is missing."""
    invoke("research", "add", given(RESEARCH), "--user", "anna")
    invoke("memory", "set", "budget", "$500-800", "--user", "anna")
    for group in ("research", "visit", "memory"):
        assert json.loads(invoke(group, "list", "--user", "ben", "--json").stdout) == []
    assert "not among the cached research of ben" in str(invoke("research", "show", "commerce.laptop", "--user", "ben").exception)
    assert invoke("memory", "forget", "budget", "--user", "ben").exit_code == 2


def test_memory_is_set_contradicted_listed_and_forgotten(invoke) -> None:
    """The newer value is current, the older one stands beside it; forgetting takes both."""
    invoke("memory", "set", "budget", "$500-800")
    assert invoke("memory", "set", "budget", "$900").stdout.strip() == "preference budget stored for me"
    (entry,) = json.loads(invoke("memory", "list", "--json").stdout)
    assert (entry["value"], [e["value"] for e in entry["earlier"]], entry["confidence"]) == ("$900", ["$500-800"], 1.0)
    assert "$500-800" in invoke("memory", "list").stdout
    assert json.loads(invoke("memory", "forget", "budget", "--json").stdout) == {"user_id": "me", "forgotten": "budget"}
    assert json.loads(invoke("memory", "list", "--json").stdout) == []


@pytest.mark.parametrize("arguments", [("Budget!", "x"), ("budget", " "), ("budget", "x" * 2_001), ("budget", "x", "--kind", "poem")])
def test_memory_that_cannot_be_kept_is_refused(invoke, arguments) -> None:
    """Exit code 2 and one sentence."""
    result = invoke("memory", "set", *arguments)
    assert (result.exit_code, "expected" in result.stderr) == (2, True)
