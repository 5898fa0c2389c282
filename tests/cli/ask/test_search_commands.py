"""`pandora search`."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Invoke = Callable[..., Result]


def test_a_question_is_answered_as_one_json_document(invoke: Invoke) -> None:
    """Best first, each with its turn and its messages; together within the budget."""
    result = invoke("search", "Which desk did we order?", "--user", "example", "--json", "--budget-tokens", "120")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert set(found) == {"query", "tokens", "results"}
    assert found["results"]
    assert set(found["results"][0]) == {"turn_id", "message_ids", "created_at", "tokens", "score", "text"}
    assert sum(r["tokens"] for r in found["results"]) <= found["tokens"] <= 120
    assert [r["score"] for r in found["results"]] == sorted((r["score"] for r in found["results"]), reverse=True)


def test_a_file_of_questions_gives_one_object_a_line_in_order(invoke: Invoke, tmp_path: Path) -> None:
    """Each line is answered for its own user."""
    asked = [{"user_id": "example", "query": "desk"}, {"user_id": "nobody", "query": "desk"}]
    file = tmp_path / "questions.jsonl"
    file.write_text("\n".join(json.dumps(q) for q in asked))
    result = invoke("search", "--jsonl", str(file), "--budget-tokens", "200")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [f["query"] for f in found] == ["desk", "desk"]
    assert [bool(f["results"]) for f in found] == [True, False]


def test_the_text_for_users_stands_in_time_order(invoke: Invoke) -> None:
    """The found messages under their dates; nothing found is reported on stderr."""
    assert "desk" in invoke("search", "desk", "-u", "example").stdout
    assert invoke("search", "giraffes", "-u", "example").stdout == ""


def test_a_budget_without_room_for_the_best_hit_says_so(invoke: Invoke, tmp_path: Path) -> None:
    """How many tokens it takes: with them it is shown; nothing found is no such case."""
    result = invoke("search", "desk", "-u", "example", "--budget-tokens", "1")
    assert (result.exit_code, result.stdout) == (0, "") and "nothing was found" not in result.stderr
    least = re.search(r"too small for the best hit: expected at least (\d+)", result.stderr)
    assert least and invoke("search", "desk", "-u", "example", "--budget-tokens", least[1]).stdout
    assert "too small" not in invoke("search", "giraffes", "-u", "example", "--budget-tokens", "1").stderr
    file = tmp_path / "questions.jsonl"
    file.write_text(json.dumps({"user_id": "example", "query": "desk"}))
    assert f"{file}:1: --budget-tokens 1: too small" in invoke("search", "--jsonl", str(file), "--budget-tokens", "1").stderr


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "an object"),
        ("[]", "user_id"),
        ('{"user_id": "ann"}', "query"),
        ('{"user_id": 1, "query": "x"}', "expected strings"),
        ('{"user_id": "ann", "query": " "}', "empty"),
        ('{"user_id": "../ann", "query": "x"}', "user id"),
    ],
)
def test_a_faulty_line_is_named_and_the_others_answered(invoke: Invoke, tmp_path: Path, line: str, says: str) -> None:
    """In order; with its number here and on stderr, and the exit code is 2."""
    file = tmp_path / "questions.jsonl"
    good = json.dumps({"user_id": "example", "query": "desk"})
    file.write_text(f"{good}\n\n{line}\n{good}\n")
    result = invoke("search", "--jsonl", str(file))
    answers = [json.loads(answer) for answer in result.stdout.splitlines()]
    assert (result.exit_code, len(answers), answers[1]["line"]) == (2, 3, 3)
    assert answers[0] == answers[2]
    assert answers[0]["results"]
    assert says in answers[1]["error"]
    assert f"questions.jsonl:3: {answers[1]['error']}" in result.stderr


def test_fields_that_are_not_used_are_named_once(invoke: Invoke, tmp_path: Path) -> None:
    """A field that looks like a filter filters nothing: the lines are answered, and the fields are named."""
    file = tmp_path / "questions.jsonl"
    line = {"user_id": "example", "query": "desk", "since": "2099-01-01", "note\nof mine": 1}
    file.write_text(f"{json.dumps(line)}\n{json.dumps(line)}\n")
    result = invoke("search", "--jsonl", str(file))
    assert result.exit_code == 0 and all(json.loads(found)["results"] for found in result.stdout.splitlines())
    assert result.stderr.count("fields that are not used: since, note of mine: expected user_id and query") == 1


def test_one_way_to_ask_is_expected(invoke: Invoke, tmp_path: Path) -> None:
    """Neither both nor none."""
    both = invoke("search", "desk", "--jsonl", str(tmp_path / "q.jsonl"))
    none = invoke("search", "  ", "-u", "example")
    assert (both.exit_code, none.exit_code) == (2, 2)
    assert "expected one of them" in both.stderr
    assert "the query is empty" in none.stderr


def test_a_filter_that_nothing_has_is_named(invoke: Invoke) -> None:
    """On stderr, so that a slip of the pen is seen."""
    result = invoke("search", "desk", "-u", "example", "--topic", "no-such", "--session", "nowhere")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "topic 'no-such': no turn of example has it" in result.stderr
    assert "session 'nowhere'" in result.stderr


def test_wrong_filters_are_refused(invoke: Invoke) -> None:
    """A state or a time that is none is named."""
    assert "expected one of" in str(invoke("search", "desk", "-u", "example", "--state", "asleep").exception)
    assert "ISO 8601" in str(invoke("search", "desk", "-u", "example", "--since", "soon").exception)
