"""The short notation of JSON Schemas."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandora_dagster.recipes.schema_notation import property_names, render_schema, subschemas

OBJECT = {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({"type": "string"}, "string"),
        ({"type": "string", "maxLength": 300}, "string (<=300 chars)"),
        ({"type": "string", "minLength": 1}, "string (>=1 chars)"),
        ({"type": "number", "minimum": 0, "maximum": 1}, "number 0..1"),
        ({"type": "integer", "minimum": 1}, "integer 1.."),
        ({"type": ["string", "null"]}, "string|null"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string|null"),
        ({"enum": ["A", "B", None, 3]}, '"A"|"B"|null|3'),
        ({"const": "A"}, '"A"'),
        ({"type": "array", "items": {"type": "string"}}, "string[]"),
        ({"type": "array", "items": {"enum": ["A", "B"]}}, '("A"|"B")[]'),
        ({"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 5}, "string[] (2..5 items)"),
        ({"type": "array"}, "any[]"),
        ({"type": "array", "items": OBJECT}, '{"a": string, "b"?: integer}[]'),
        ({"type": "object"}, "object"),
        ({"type": "object", "additionalProperties": False}, "{}"),
        ({"type": "object", "additionalProperties": {"type": "boolean"}}, '{"<key>": boolean}'),
        (OBJECT, '{\n"a": string,\n"b"?: integer\n}'),
        ({**OBJECT, "additionalProperties": True}, '{\n"a": string,\n"b"?: integer,\n...\n}'),
        ({"properties": {"x": OBJECT}}, '{\n"x"?: {"a": string, "b"?: integer}\n}'),
        ({"$defs": {"T": {"type": "string"}}, "properties": {"x": {"$ref": "#/$defs/T"}}}, '{\n"x"?: string\n}'),
        ({"$defs": {"T": {"properties": {"t": {"$ref": "#/$defs/T"}}}}, "$ref": "#/$defs/T"}, '{"t"?: T}'),
        ({}, "any"),
    ],
)
def test_a_schema_in_short_notation(schema: dict[str, Any], shown: str) -> None:
    """What must be there, what may be left out, and every limit."""
    assert render_schema(schema) == shown


def test_property_names_at_every_depth() -> None:
    """Each name once, outermost first; values that look like schemas are none."""
    schema = {"properties": {"a": {"items": OBJECT}, "c": {"default": {"properties": {"no": {}}}}}}
    assert property_names(schema) == ("a", "c", "b")


json_schemas = st.recursive(
    st.sampled_from([{"type": "string"}, {"type": "number"}, {"enum": ["x"]}, {"type": "null"}]),
    lambda inner: st.one_of(
        st.builds(lambda item: {"type": "array", "items": item}, inner),
        st.builds(lambda branches: {"anyOf": branches}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda fields: {"type": "object", "properties": fields}, st.dictionaries(st.sampled_from("abcd"), inner, max_size=3)),
    ),
    max_leaves=8,
)


@given(json_schemas)
def test_every_property_is_shown(schema: dict[str, Any]) -> None:
    """No property of any schema is lost in its notation."""
    shown = render_schema(schema)
    assert all(f'"{name}"' in shown for name in property_names(schema))
    assert all(isinstance(node, dict) for node in subschemas(schema))
