"""`pandora search`."""

import json
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
    asked = [{"user_id": "example", "query": "desk"}, {"user_id": "nobody", "query": "desk"}, {"user_id": "example", "query": ""}]
    file = tmp_path / "questions.jsonl"
    file.write_text("\n".join(json.dumps(q) for q in asked))
    result = invoke("search", "--jsonl", str(file), "--budget-tokens", "200")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [f["query"] for f in found] == ["desk", "desk", ""]
    assert [bool(f["results"]) for f in found] == [True, False, False]


def test_the_text_for_people_stands_in_time_order(invoke: Invoke) -> None:
    """The found messages under their dates; nothing found is said on stderr."""
    assert "desk" in invoke("search", "desk", "-u", "example").stdout
    assert invoke("search", "giraffes", "-u", "example").stdout == ""


@pytest.mark.parametrize(
    ("line", "says"),
    [("{", "questions.jsonl:1"), ("[]", "user_id"), ('{"user_id": "ann"}', "query"), ('{"user_id": 1, "query": "x"}', "expected strings")],
)
def test_a_faulty_line_is_named(invoke: Invoke, tmp_path: Path, line: str, says: str) -> None:
    """With its number, and nothing is answered."""
    file = tmp_path / "questions.jsonl"
    file.write_text(line)
    result = invoke("search", "--jsonl", str(file))
    assert (result.exit_code, result.stdout) == (2, "")
    assert says in result.stderr


def test_wrong_filters_are_refused(invoke: Invoke) -> None:
    """A state or a time that is none is named."""
    assert "expected one of" in str(invoke("search", "desk", "-u", "example", "--state", "asleep").exception)
    assert "ISO 8601" in str(invoke("search", "desk", "-u", "example", "--since", "soon").exception)
