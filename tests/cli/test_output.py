"""What commands print about a store, for users and for programs."""

import json
import sys

import pytest

from pandora_dagster.cli.output import print_table
from tests.cli.conftest import Invoke


def test_turns_as_json_is_a_whole_list(invoke: Invoke) -> None:
    """All turns of all users, each with the documented fields."""
    result = invoke("turns", "--json")
    rows = json.loads(result.stdout)
    assert (result.exit_code, len(rows)) == (0, 7)
    assert set(rows[0]) == {"turn_id", "user_id", "session_id", "state", "created_at", "summary"}


def test_turns_as_a_table_keeps_to_the_limit(invoke: Invoke) -> None:
    """The newest rows are shown, and how many are not."""
    result = invoke("turns", "--limit", "2")
    assert (result.stdout.count("example:turn_"), "5 older turns are not shown" in result.stderr) == (2, True)


@pytest.mark.parametrize("turn", ["example:turn_000001", "turn_000001", "1"])
def test_a_turn_is_found_by_its_short_forms(turn: str, invoke: Invoke) -> None:
    """The full key, its id and its bare number show the same turn."""
    shown = json.loads(invoke("show", turn, "--json").stdout)
    assert (shown["turn"], sorted(shown["manifest"]["sections"])) == ("example:turn_000001", sorted(shown["sections"]))


def test_one_section_is_shown_alone(invoke: Invoke) -> None:
    """Section 0 is the user's words and nothing else."""
    whole = json.loads(invoke("show", "example:turn_000001", "--json").stdout)["sections"]["0"]
    assert invoke("show", "example:turn_000001", "--section", "0").stdout.strip() == whole.strip()


def test_an_export_is_what_was_imported(invoke: Invoke) -> None:
    """One conversation a line, of the user that was asked for; nothing but a note for one that has none."""
    lines = invoke("export", "--user", "example").stdout.splitlines()
    assert {json.loads(line)["user_id"] for line in lines} == {"example"}
    nobody = invoke("export", "--user", "nobody")
    assert (nobody.exit_code, nobody.stdout, "no conversations of nobody" in nobody.stderr) == (0, "", True)


def test_recipes_are_listed_with_budget_and_version(invoke: Invoke) -> None:
    """Table and JSON speak of the same recipes."""
    rows = json.loads(invoke("recipes", "list", "--json").stdout)
    table = invoke("recipes", "list").stdout
    assert rows
    assert all(row["recipe"] in table and row["version"] in table and str(row["total"]) in table for row in rows)


def test_the_index_agrees_with_the_documents(invoke: Invoke) -> None:
    """Verify finds no difference in a fresh store."""
    result = invoke("index", "verify", "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (0, {"differences": []})


def test_no_interventions_is_an_empty_list(invoke: Invoke) -> None:
    """JSON without content is still a list."""
    assert json.loads(invoke("interventions", "list", "--json").stdout) == []


def test_doctor_names_every_part(invoke: Invoke) -> None:
    """Store, recipes and runtime, each with its verdict."""
    findings = json.loads(invoke("doctor", "--json").stdout)
    assert {"store", "recipes", "runtime"} <= {finding["part"] for finding in findings}
    assert all(finding["ok"] for finding in findings)


def test_ids_are_whole_in_a_terminal_of_80_columns(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """They are copied into the next command. A row that is too wide for a table becomes a paragraph; nothing is cut off."""
    for name, value in {"COLUMNS": "80", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    summary = "The desk is height-adjustable, in the version with electromechanical legs. " * 3
    print_table(("Turn", "State", "Created", "Session", "Summary"), [("ann:turn_000811", "saved", "2026-01-04 10:15", "desk", summary)])
    table = capsys.readouterr().out
    assert "┃" in table and "ann:turn_000811" in table and "…" not in table and max(map(len, table.splitlines())) <= 80
    row = {
        "Recipe": "pipeline/phase4_coordinator_code",
        "layer": "MIND",
        "total": "12000",
        "version": "7460bae003ab",
        "mode": "",
        "first time": "1",
    }
    print_table((*row, "page"), [(*row.values(), "https://example.org/" + "a" * 90)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == row["Recipe"]
    assert lines[1].startswith("  layer: MIND; total: 12000; version: 7460bae003ab; first time: 1; page:")
    assert "".join(line.strip() for line in lines).endswith("https://example.org/" + "a" * 90) and max(map(len, lines)) <= 80
