"""Checks that an output schema is valid JSON Schema and that the model server's grammar enforces it."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError

from pandora_dagster.documents.plain_yaml import FieldPath, dotted_path
from pandora_dagster.recipes.schema_notation import resolve_reference, subschemas

_MAX_MESSAGE_CHARACTERS = 160


def schema_faults(schema: Mapping[str, Any]) -> Iterator[tuple[FieldPath, str]]:
    """Faults that make a schema unusable, each as its path in the schema and `what: what was expected` (specification 000, section
    13.2)."""
    faults = _errors(Draft202012Validator.META_SCHEMA, schema)
    for fault in faults:
        yield tuple(fault.absolute_path), f"{_shorten_message(fault.message)}: expected valid JSON Schema (2020-12)"
    if not faults:
        for path, reference in _references(schema, ()):
            is_pointer = reference == "#" or reference.startswith("#/")
            if not is_pointer or not isinstance(resolve_reference(schema, reference), (Mapping, bool)):
                yield path, f"{reference}: expected a reference into this schema"


def grammar_faults(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Faults of keywords that the server's grammar does not enforce and that can be written otherwise: `multipleOf`, several `allOf`
    branches.

    Keywords that cannot be written otherwise (`uniqueItems`, `pattern`, `if`) are no faults: they are removed from the schema that is sent,
    and checked in the answer.
    """
    nodes = list(subschemas(schema))
    multiples = ["multipleOf"] if any("multipleOf" in node for node in nodes) else []
    branches = ["allOf"] if any(len(node.get("allOf", ())) > 1 for node in nodes) else []
    return tuple(f"{keyword}: expected a schema without it: the model server does not enforce it" for keyword in [*multiples, *branches])


def _references(value: object, path: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    """Each `$ref` in a schema, with its path."""
    if isinstance(value, Mapping):
        for key, child in cast("Mapping[str, object]", value).items():
            if key == "$ref" and isinstance(child, str):
                yield (*path, key), child
            elif key not in ("enum", "const", "default", "examples"):
                yield from _references(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(cast("list[object]", value)):
            yield from _references(child, (*path, index))


def example_faults(schema: Mapping[str, Any], value: object) -> tuple[str, ...]:
    """The faults of `value`, an example answer, against `schema`."""
    return tuple(
        f"{dotted_path(tuple(e.absolute_path)) or 'the whole answer'}: {_shorten_message(e.message)}" for e in _errors(schema, value)
    )


def _errors(schema: Any, value: object) -> list[ValidationError]:
    validator: Any = Draft202012Validator(schema, format_checker=FormatChecker(["regex"]))  # half-typed library
    return list(validator.iter_errors(value))


def _shorten_message(message: str) -> str:
    return message if len(message) <= _MAX_MESSAGE_CHARACTERS else f"{message[: _MAX_MESSAGE_CHARACTERS - 3]}..."
