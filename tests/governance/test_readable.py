"""What a version may answer, held against what the phases read."""

from typing import Any

import pytest
from pydantic import BaseModel

from pandora_dagster.contracts.answers import GatheredContext, QueryAnalysis, Reflection
from pandora_dagster.contracts.recipes import Recipe
from pandora_dagster.cookbook import open_shelf
from pandora_dagster.governance.readable import unreadable
from pandora_dagster.phases.readers import READERS, reader_of

SHELF = open_shelf()
REFLECTION = SHELF.load("pipeline/phase1_reflection").recipe
GATHERED = SHELF.load("pipeline/phase2_synthesis").recipe


def with_schema(recipe: Recipe, schema: dict[str, Any] | None) -> Recipe:
    return recipe.model_copy(update={"output_schema": schema})


def changed(recipe: Recipe, field: str, schema: dict[str, Any] | None) -> Recipe:
    """The recipe whose answer has `field` otherwise, or not at all."""
    was: Any = recipe.output_schema
    properties = {name: child for name, child in was["properties"].items() if name != field}
    required = [name for name in was["required"] if name != field]
    if schema is not None:
        properties, required = {**properties, field: schema}, [*required, field]
    return with_schema(recipe, {**was, "properties": properties, "required": required})


@pytest.mark.parametrize("name", SHELF.names())
def test_every_shipped_recipe_can_be_read(name):
    """As it must: its phase reads it every day."""
    recipe = SHELF.load(name).recipe
    assert unreadable(recipe, reader_of(name), like=recipe) == ()


def test_every_reader_belongs_to_a_recipe():
    """In each mode in which there is one."""
    assert all(any(reader_of(name) is shape for name in SHELF.names()) for shape in READERS.values())
    assert reader_of("pipeline/phase3_planner_code") is READERS["pipeline/phase3_planner"]
    assert reader_of("pipeline/phase5_synthesizer_chat") is None


@pytest.mark.parametrize(
    ("field", "schema", "says"),
    [
        ("confidence", None, "confidence: may be left out: expected it always"),
        ("confidence", {"type": "string"}, "confidence: string: expected number"),
        ("decision", {"type": "string", "enum": ["PROCEED", "CLARIFY", "WAIT"]}, "decision: WAIT: expected one of PROCEED, CLARIFY"),
        ("decision", {"type": "string"}, "decision: any text: expected one of PROCEED, CLARIFY"),
        ("decision", {}, "decision: any value: expected string"),
        ("mood", {"type": "string"}, "mood: nobody reads it: expected one of decision, confidence, reasoning, question"),
    ],
)
def test_a_field_that_changed_is_named(field, schema, says):
    """With what was expected of it."""
    assert unreadable(changed(REFLECTION, field, schema), Reflection, like=None) == (says,)


def test_fields_at_any_depth_are_looked_at():
    """Below lists, and through references of either side."""
    turns = {"type": "array", "items": {"$ref": "#/$defs/turn"}}
    schema = {
        "type": "object",
        "required": ["prior_turns"],
        "properties": {"prior_turns": turns},
        "$defs": {"turn": {"type": "object", "required": ["turn"], "properties": {"turn": {"type": "number"}}}},
    }
    assert unreadable(with_schema(GATHERED, schema), GatheredContext, like=None) == (
        "prior_turns[].relevance: may be left out: expected it always",
        "prior_turns[].summary: may be left out: expected it always",
        "prior_turns[].turn: number: expected integer",
    )


@pytest.mark.parametrize(
    ("update", "reader", "says"),
    [
        ({"output_format": "markdown", "output_schema": None}, QueryAnalysis, "output_format: markdown: expected json"),
        ({"output_schema": None}, Reflection, "decision: may be left out"),
        ({"output_format": "text"}, None, "output_format: text: expected json"),
    ],
)
def test_another_format_is_refused(update: dict[str, Any], reader: type[BaseModel] | None, says: str):
    """A shape is read from JSON or YAML; a text keeps its format."""
    found = unreadable(REFLECTION.model_copy(update=update), reader, like=REFLECTION)
    assert found and found[0].startswith(says)
