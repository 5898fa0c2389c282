"""What a version may answer, compared with what the phases read."""

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from pandora_dagster.contracts.phase_outputs import GatheredContext, QueryAnalysis, Reflection, TaskPlan
from pandora_dagster.contracts.recipe_schema import Recipe
from pandora_dagster.governance.answer_compatibility import find_incompatibilities
from pandora_dagster.phases.flow.phase_table import PHASES, answer_model
from pandora_dagster.recipes.recipe_loader import open_recipes

RECIPES = open_recipes()
REFLECTION = RECIPES.load("pipeline/phase1_reflection").recipe
GATHERED = RECIPES.load("pipeline/phase2_synthesis").recipe


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


@pytest.mark.parametrize("name", RECIPES.names())
def test_every_shipped_recipe_can_be_read(name):
    """As it must: its phase reads it every day."""
    recipe = RECIPES.load(name).recipe
    assert find_incompatibilities(recipe, answer_model(name), like=recipe) == ()


def test_every_reader_belongs_to_a_recipe():
    """In each mode in which there is one."""
    models = {recipe.answer for spec in PHASES for recipe in spec.recipes if recipe.answer}
    assert all(any(answer_model(name) is model for name in RECIPES.names()) for model in models)
    assert answer_model("pipeline/phase3_planner_code") is answer_model("pipeline/phase3_planner") is TaskPlan
    assert answer_model("pipeline/phase5_synthesizer_chat") is None


@pytest.mark.parametrize(
    ("field", "schema", "says"),
    [
        ("confidence", None, "confidence: may be left out: expected it always"),
        ("confidence", {"type": "string"}, "confidence: string: expected number"),
        ("decision", {"type": "string", "enum": ["PROCEED", "CLARIFY", "WAIT"]}, "decision: WAIT: expected one of PROCEED, CLARIFY"),
        ("decision", {"type": "string"}, "decision: any text: expected one of PROCEED, CLARIFY"),
        ("decision", {}, "decision: any value: expected string"),
        ("confidence", {"type": "number", "minimum": 0, "maximum": 100}, "confidence: maximum 100: expected maximum 1"),
        ("confidence", {"type": "number", "minimum": 0}, "confidence: no maximum: expected maximum 1"),
        ("confidence", {"type": "number", "exclusiveMinimum": -1, "maximum": 1}, "confidence: exclusiveMinimum -1: expected minimum 0"),
        ("confidence", {"type": "integer", "enum": [0, 2]}, "confidence: 2: expected minimum 0, maximum 1"),
        ("confidence", {"const": 2}, "confidence: 2: expected minimum 0, maximum 1"),
        ("question", {"type": ["string", "null", "number"]}, "question: number: expected string"),
        ("mood", {"type": "string"}, "mood: no reader: expected one of decision, confidence, reasoning, question"),
    ],
)
def test_a_field_that_changed_is_named(field, schema, says):
    """With what was expected of it."""
    assert find_incompatibilities(changed(REFLECTION, field, schema), Reflection, like=None) == (says,)


@pytest.mark.parametrize(
    ("field", "schema"),
    [
        ("confidence", {"type": "number", "exclusiveMinimum": 0, "maximum": 0.9}),
        ("confidence", {"type": "integer", "enum": [0, 1]}),
        ("question", {"type": ["string", "null"]}),
        ("question", {"oneOf": [{"type": "null"}, {"type": "string", "maxLength": 80}]}),
    ],
)
def test_what_is_narrower_can_be_read(field, schema):
    """However the bounds and choices are written."""
    assert find_incompatibilities(changed(REFLECTION, field, schema), Reflection, like=None) == ()


class Read(BaseModel):
    """A reader with each kind of bound."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(min_length=1, max_length=9, pattern=r"\S")]
    marks: Annotated[list[Annotated[float, Field(gt=0, lt=6)]], Field(min_length=2, max_length=5)]
    of: dict[str, Annotated[int, Field(ge=1)]] = {}


FITTING: dict[str, Any] = {
    "name": {"type": "string", "minLength": 2, "maxLength": 9, "pattern": r"\S"},
    "marks": {"type": "array", "minItems": 2, "maxItems": 5, "items": {"type": "number", "exclusiveMinimum": 0, "maximum": 5}},
    "of": {
        "type": "object",
        "properties": {"a": {"const": 3, "type": "integer"}},
        "additionalProperties": {"type": "integer", "minimum": 1},
    },
}


@pytest.mark.parametrize(
    ("field", "more", "says"),
    [
        ("name", {}, ()),
        ("name", {"minLength": 0}, ("name: minLength 0: expected minLength 1",)),
        ("name", {"maxLength": 10}, ("name: maxLength 10: expected maxLength 9",)),
        ("name", {"pattern": "x"}, (r"name: pattern x: expected pattern \S",)),
        ("marks", {"minItems": 1, "maxItems": 6}, ("marks: minItems 1: expected minItems 2", "marks: maxItems 6: expected maxItems 5")),
        ("marks", {"items": {"type": "number", "minimum": 0, "exclusiveMaximum": 6}}, ("marks[]: minimum 0: expected exclusiveMinimum 0",)),
        ("marks", {"items": {"type": "number", "minimum": 1, "maximum": 6}}, ("marks[]: maximum 6: expected exclusiveMaximum 6",)),
        ("of", {"properties": {"a": {"type": "integer", "minimum": 0}}}, ("of.a: minimum 0: expected minimum 1",)),
        ("of", {"additionalProperties": {"type": "string"}}, ("of.*: string: expected integer",)),
        ("of", {"additionalProperties": True}, ("of.*: any value: expected integer",)),
    ],
)
def test_each_bound_is_held_against_the_readers(field, more, says):
    """Lengths, items, patterns, exclusive ends, and the values of a mapping."""
    properties = {**FITTING, field: {**FITTING[field], **more}}
    schema = {"type": "object", "additionalProperties": False, "required": ["name", "marks"], "properties": properties}
    assert find_incompatibilities(with_schema(REFLECTION, schema), Read, like=None) == says
    open_ended = {name: fields for name, fields in schema.items() if name != "additionalProperties"}
    refused = "answer: any other field: expected additionalProperties: false"
    assert find_incompatibilities(with_schema(REFLECTION, open_ended), Read, like=None) == (*says, refused)


def test_fields_at_any_depth_are_looked_at():
    """Below lists, and through references of either side."""
    turns = {"type": "array", "items": {"$ref": "#/$defs/turn"}}
    schema = {
        "type": "object",
        "required": ["prior_turns"],
        "properties": {"prior_turns": turns},
        "$defs": {"turn": {"type": "object", "required": ["turn"], "properties": {"turn": {"type": "number"}}}},
    }
    assert find_incompatibilities(with_schema(GATHERED, schema), GatheredContext, like=None) == (
        "prior_turns[].relevance: may be left out: expected it always",
        "prior_turns[].summary: may be left out: expected it always",
        "prior_turns[].turn: number: expected integer",
        "prior_turns[]: any other field: expected additionalProperties: false",
        "answer: any other field: expected additionalProperties: false",
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
    found = find_incompatibilities(REFLECTION.model_copy(update=update), reader, like=REFLECTION)
    assert found and found[0].startswith(says)
