"""Schemas as they reach the server: only what its grammar holds, and never stricter than the recipe's."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pandora_dagster.runtime.sglang.grammar_schema import schema_for_grammar

A = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
B = {"type": "object", "properties": {"b": {"type": "string", "maxLength": 3}}, "required": ["b"]}
B_SAFE = {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]}

TABLE: dict[str, tuple[Any, Any]] = {
    "length and pattern": ({"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^a"}, {"type": "string"}),
    "unique items": ({"type": "array", "uniqueItems": True, "minItems": 2, "items": B}, {"type": "array", "minItems": 2, "items": B_SAFE}),
    "multiple of": ({"type": "number", "multipleOf": 5, "minimum": 0}, {"type": "number", "minimum": 0}),
    "bounds and enums stay": ({"enum": ["pattern", 1], "const": 1, "maximum": 2}, {"enum": ["pattern", 1], "const": 1, "maximum": 2}),
    "names are no keywords": (
        {"properties": {"pattern": {"type": "string", "pattern": "x"}, "allOf": {"not": {}}}},
        {"properties": {"pattern": {"type": "string"}, "allOf": {}}},
    ),
    "references stay": (
        {"$ref": "#/$defs/b", "$defs": {"b": B}},
        {"$ref": "#/$defs/b", "$defs": {"b": B_SAFE}},
    ),
    "null stays": ({"anyOf": [B, {"type": "null"}]}, {"anyOf": [B_SAFE, {"type": "null"}]}),
    "one becomes any": ({"oneOf": [B, {"type": "null"}]}, {"anyOf": [B_SAFE, {"type": "null"}]}),
    "several branches": (
        {"allOf": [A, B]},
        {"type": "object", "properties": {**A["properties"], **B_SAFE["properties"]}, "required": ["a", "b"]},
    ),
    "a branch by reference": (
        {"allOf": [{"$ref": "#/$defs/a"}, B], "$defs": {"a": A}},
        {"type": "object", "properties": {**A["properties"], **B_SAFE["properties"]}, "required": ["a", "b"], "$defs": {"a": A}},
    ),
    "one branch": (
        {"properties": {"x": {"description": "d", "allOf": [{"$ref": "#/$defs/a"}]}}, "$defs": {"a": A}},
        {"properties": {"x": {"description": "d", "$ref": "#/$defs/a"}}, "$defs": {"a": A}},
    ),
    "bounds meet": ({"allOf": [{"minimum": 1, "maximum": 9}, {"minimum": 3, "maximum": 5}]}, {"minimum": 3, "maximum": 5}),
    "conflicts are dropped": ({"allOf": [{"enum": [1, 2]}, {"enum": [2, 3]}, {"type": "integer"}]}, {"type": "integer"}),
    "a property of both": (
        {"allOf": [{"properties": {"a": {"type": "number"}}}, {"properties": {"a": {"type": "integer", "minimum": 0}}}]},
        {"properties": {"a": {"type": "integer", "minimum": 0}}},
    ),
    "true and false": (
        {"properties": {"a": True}, "additionalProperties": False},
        {"properties": {"a": True}, "additionalProperties": False},
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_what_is_sent(case: str) -> None:
    """The table of what stays, what goes, and what is merged."""
    schema, safe = TABLE[case]
    before = copy.deepcopy(schema)
    assert schema_for_grammar(schema) == safe
    assert schema == before


def test_recursive_schemas_end() -> None:
    """A definition that leads back into itself through allOf stays finite."""
    node = {"allOf": [{"$ref": "#/$defs/base"}, {"properties": {"next": {"allOf": [{"$ref": "#/$defs/node"}, {"type": "object"}]}}}]}
    schema = {"$ref": "#/$defs/node", "$defs": {"node": node, "base": A}}
    sent = schema_for_grammar(schema)
    assert "allOf" not in json.dumps(sent)
    Draft202012Validator(sent).validate({"a": 1, "next": {"a": 2, "next": {"a": 3}}})


names = st.sampled_from(["a", "b", "pattern"])
leaves = st.one_of(
    st.just({"type": "integer"}),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "number"])}, optional={"minimum": st.integers(0, 5), "multipleOf": st.just(2)}
    ),
    st.fixed_dictionaries({"type": st.just("string")}, optional={"minLength": st.integers(0, 2), "maxLength": st.integers(1, 4)}),
    st.just({"$ref": "#/$defs/a"}),
    st.just({"enum": [1, "x", None]}),
    st.just({"not": {"type": "null"}}),
)


def _wider(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    objects = st.fixed_dictionaries(
        {"properties": st.dictionaries(names, inner, max_size=2)},
        optional={
            "required": st.lists(names, max_size=2, unique=True),
            "additionalProperties": st.booleans(),
            "patternProperties": st.just({"^a": {"type": "integer"}}),
        },
    )
    arrays = st.fixed_dictionaries(
        {"type": st.just("array"), "items": inner}, optional={"uniqueItems": st.just(True), "maxItems": st.just(2)}
    )
    many = st.sampled_from(["allOf", "anyOf", "oneOf"]).flatmap(lambda w: st.lists(inner, min_size=1, max_size=3).map(lambda b: {w: b}))
    return st.one_of(objects, arrays, many)


schemas = st.recursive(leaves, _wider, max_leaves=8).map(lambda s: {**s, "$defs": {"a": A}})
values = st.recursive(
    st.one_of(st.integers(-1, 6), st.sampled_from(["", "x", "xyz"]), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=5,
)
REFUSED = ("minLength", "maxLength", "uniqueItems", "multipleOf", "allOf", "not")


def _keywords(node: Any) -> set[str]:
    """Every keyword of a schema, names of properties left out."""
    if not isinstance(node, dict):
        return set[str]().union(*(_keywords(n) for n in node)) if isinstance(node, list) else set()
    found = set(node)
    for word, value in node.items():
        parts = list(value.values()) if word in ("properties", "$defs") else [value]
        found |= _keywords(parts) if word != "enum" else set()
    return found


@settings(max_examples=300, deadline=None)
@given(schemas, values)
def test_never_stricter_and_always_sendable(schema: dict[str, Any], value: Any) -> None:
    """Whatever fits the recipe's schema fits the one that is sent, and no word is left that the grammar refuses."""
    sent = schema_for_grammar(schema)
    Draft202012Validator.check_schema(sent)
    assert _keywords(sent).isdisjoint(REFUSED)
    if Draft202012Validator(schema).is_valid(value):
        assert Draft202012Validator(sent).is_valid(value)


@settings(max_examples=100, deadline=None)
@given(schemas)
def test_sending_twice_changes_nothing_more(schema: dict[str, Any]) -> None:
    """A safe schema is left as it is."""
    sent = schema_for_grammar(schema)
    assert schema_for_grammar(sent) == sent
