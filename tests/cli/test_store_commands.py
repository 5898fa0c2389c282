"""`pandora calls`, and what `pandora show` says of a turn that took too much."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pandora_dagster.app import open_app
from pandora_dagster.cli.program import command_line
from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.model_calls import CallRecord, CallTokens, Usage
from pandora_dagster.settings import load_settings
from pandora_dagster.stores.calls.call_log import CallFiles


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """One turn with two calls, one of which failed, and a call without a turn."""
    app = open_app(load_settings({"PANDORA_ROOT": str(tmp_path)}))
    key = app.start("hi", user="ann")
    plain = {
        "timestamp": "2026-01-04T14:30:00Z",
        "recipe": "planner_chat",
        "recipe_version": "a",
        "model_layer": ModelLayer.MIND,
        "runtime": "sglang",
        "user_id": key.user,
        "phase": "task_plan",
        "tokens": CallTokens(total=35),
        "latency_ms": 2_000.0,
        "success": True,
        "spent": Usage(prompt=39_000, output=1_000, cached=30_000),
        "cost": 0.25,
        "queue_ms": 500.0,
    }
    files = CallFiles(tmp_path)
    records = (
        {"call_id": "1", "turn_id": key.turn_id},
        {"call_id": "2", "turn_id": key.turn_id, "success": False},
        {"call_id": "3", "model_layer": "NERVES", "timestamp": "2026-01-05T09:00:00Z"},
    )
    for record in records:
        files.append(CallRecord.model_validate(plain | record))
    app.calls.index_turns([(key, 0)])
    app.close()
    return tmp_path


def invoke(store: Path, *arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(command_line, ["--root", str(store), *arguments], prog_name="pandora")
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize(
    "command",
    [
        "calls --user bob",
        "turns --user bob",
        "turns --state archived",
        "research list",
        "visit list",
        "interventions list",
        "memory facts",
        "recipes history reflection",
    ],
)
def test_an_empty_list_is_one_sentence(store: Path, command: str) -> None:
    """No table of headings alone."""
    code, out, err = invoke(store, *command.split())
    assert (code, out) == (0, "") and len(err.splitlines()) == 1


def test_sums_by_layer_are_numbers(store: Path) -> None:
    """Failed calls and those without a turn are in."""
    code, out, _ = invoke(store, "calls", "--json")
    found = {row["layer"]: row for row in json.loads(out)}
    assert code == 0 and set(found) == {"MIND", "NERVES"}
    mind = found["MIND"]
    assert (mind["calls"], mind["failed"], mind["used_tokens"], mind["cost"], mind["queue_ms"]) == (2, 1, 80_000, 0.5, 1_000.0)


def test_a_table_by_day_from_a_day_on(store: Path) -> None:
    """Asked twice, nothing counts twice."""
    invoke(store, "calls", "--by", "day")
    code, out, _ = invoke(store, "calls", "--by", "day", "--since", "2026-01-05")
    assert code == 0 and "2026-01-05" in out and "2026-01-04" not in out and "40000" in out and "0.2500" in out


@pytest.mark.parametrize(
    ("option", "message"), [(("--by", "mood"), "expected one of layer"), (("--since", "monday"), "expected a day such as")]
)
def test_what_is_no_property_or_day_is_reported(store: Path, option: tuple[str, str], message: str) -> None:
    """Exit code 2."""
    code, _, err = invoke(store, "calls", *option)
    assert code == 2 and message in err


def test_show_says_when_a_turn_took_too_much(store: Path) -> None:
    """Beside the sums, and in the JSON as a number."""
    code, _, err = invoke(store, "show", "turn_000001")
    assert code == 0 and "80000 tokens" in err and "cost 0.5000" in err
    assert "80,000 tokens in this turn: expected about 70,000 (specification 000, section 11.2)" in err
    assert json.loads(invoke(store, "show", "turn_000001", "--json")[1])["calls"]["used_tokens"] == 80_000
