"""Checks that an output schema is valid JSON Schema and that the model server's grammar enforces it."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError

from pandora_dagster.recipes.schema_notation import resolve_reference, subschemas
from pandora_dagster.recipes.yaml_source import FieldPath, dotted_path


def schema_faults(schema: Mapping[str, Any]) -> Iterator[tuple[FieldPath, str]]:
    """Faults that make a schema unusable, each as (place in the schema, `what: what was expected`) (000 section 13.2)."""
    faults = _errors(Draft202012Validator.META_SCHEMA, schema)
    for fault in faults:
        yield tuple(fault.absolute_path), f"{_shorten_message(fault.message)}: expected valid JSON Schema (2020-12)"
    if not faults:
        for place, reference in _references(schema, ()):
            is_pointer = reference == "#" or reference.startswith("#/")
            if not is_pointer or not isinstance(resolve_reference(schema, reference), (Mapping, bool)):
                yield place, f"{reference}: expected a reference into this schema"


def grammar_faults(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Keywords for which the grammar has another form: `multipleOf` (the server refuses it), several `allOf` branches (it ignores them).

    Keywords without another form (`uniqueItems`, `pattern`, `if`) are taken out of what is sent and checked in the answer.
    """
    nodes = list(subschemas(schema))
    refused = ["multipleOf"] if any("multipleOf" in node for node in nodes) else []
    several = ["allOf"] if any(len(node.get("allOf", ())) > 1 for node in nodes) else []
    return tuple(f"{word}: expected a schema without it, the model server does not obey it" for word in [*refused, *several])


def _references(value: object, place: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    if isinstance(value, Mapping):
        for key, child in cast("Mapping[str, object]", value).items():
            if key == "$ref" and isinstance(child, str):
                yield (*place, key), child
            elif key not in ("enum", "const", "default", "examples"):
                yield from _references(child, (*place, key))
    elif isinstance(value, list):
        for index, child in enumerate(cast("list[object]", value)):
            yield from _references(child, (*place, index))


def example_faults(schema: Mapping[str, Any], value: object) -> tuple[str, ...]:
    """The faults of `value`, an example answer, against `schema`."""
    return tuple(f"{dotted_path(tuple(e.absolute_path)) or 'the whole'}: {_shorten_message(e.message)}" for e in _errors(schema, value))


def _errors(schema: Any, value: object) -> list[ValidationError]:
    validator: Any = Draft202012Validator(schema, format_checker=FormatChecker(["regex"]))  # half-typed library
    return list(validator.iter_errors(value))


def _shorten_message(message: str) -> str:
    return message if len(message) <= 160 else f"{message[:157]}..."
