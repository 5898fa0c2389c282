"""Outcomes of an output schema, and the examples that show them."""

from typing import Any

import pytest

from pandora_dagster.recipes.example_coverage import example_tools, missing_outcomes

FLAG: dict[str, Any] = {"type": "boolean"}
VERDICT: dict[str, Any] = {"enum": ["same", "changed"]}
LABEL: dict[str, Any] = {"enum": ["a", "b", "c", "d"]}
QUESTION: dict[str, Any] = {"anyOf": [{"type": "string"}, {"type": "null"}]}


def of_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("schema", "examples", "missing"),
    [
        (of_object(flag=FLAG), [{"flag": True}], ["flag false"]),
        (of_object(flag=FLAG), [{"flag": True}, {"flag": False}], []),
        (of_object(verdict=VERDICT), [{"verdict": "same"}], ["verdict changed"]),
        (of_object(label=LABEL), [{"label": "a"}], []),
        (of_object(question=QUESTION), [{"question": None}, {}], ["question with a value"]),
        (of_object(question=QUESTION), [{"question": "Which?"}], []),
        (of_object(rows={"type": "array", "items": of_object(v=VERDICT)}), [{"rows": [{"v": "same"}]}], ["rows[].v changed"]),
        ({"type": "object", "additionalProperties": of_object(v=VERDICT)}, [{"x": {"v": "same"}}], ["*.v changed"]),
        ({**of_object(v={"$ref": "#/$defs/V"}), "$defs": {"V": VERDICT}}, [{"v": "changed"}], ["v same"]),
        (of_object(flag=FLAG), [], []),
    ],
)
def test_an_outcome_without_an_example_is_named(schema: dict[str, Any], examples: list[object], missing: list[str]) -> None:
    """By the path of the property, through lists, maps and references; without any example another rule reports it."""
    assert [outcome.removeprefix(".") for outcome in missing_outcomes(schema, examples)] == missing


def test_tools_are_found_at_any_depth() -> None:
    """A plan names its tools in a list of tasks, a call its tool at the top."""
    assert list(example_tools({"tasks": [{"tool": "doc.search"}, {"tool": None}], "tool": "memory.query"})) == [
        "doc.search",
        "memory.query",
    ]
