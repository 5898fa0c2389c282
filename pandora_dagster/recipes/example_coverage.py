"""Which outcomes of an output schema the examples of a prompt show.

An outcome is a choice that the answer makes: a value of an enum of at most three (`decision` is PROCEED or CLARIFY), true or false, a value
where null is allowed. Longer enums are labels (`intent`), which the schema in the prompt lists: an example of each would not fit.

The schema is walked beside all example values of its node: `tasks[]` beside every task of every example.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from pandora_dagster.recipes.schema_notation import resolve_reference

_MAX_OUTCOMES = 3
"""Values of an enum that are outcomes; one with more is a list of labels."""


def missing_outcomes(schema: Mapping[str, Any], examples: Sequence[object]) -> Iterator[str]:
    """Each outcome that no example shows, as `decision CLARIFY`."""
    yield from _missing(schema, schema, examples, "")


def _missing(root: Mapping[str, Any], schema: Mapping[str, Any], values: Sequence[object], path: str) -> Iterator[str]:
    """The outcomes of the node at `path` and below it that none of its `values` shows."""
    if "$ref" in schema:
        schema = cast("Mapping[str, Any]", resolve_reference(root, schema["$ref"]))
    if len(choices := schema.get("enum", ())) <= _MAX_OUTCOMES:
        yield from (f"{path} {choice}" for choice in choices if choice not in values)
    if schema.get("type") == "boolean":
        yield from (f"{path} {str(choice).lower()}" for choice in (True, False) if not any(value is choice for value in values))
    branches = schema.get("anyOf", ())
    if any(branch.get("type") == "null" for branch in branches) and all(value is None for value in values):
        yield f"{path} with a value"
    present = [value for value in values if value is not None]
    for branch in branches:
        if branch.get("type") != "null":
            yield from _missing(root, branch, present, path)
    yield from _missing_below(root, schema, present, path)


def _missing_below(root: Mapping[str, Any], schema: Mapping[str, Any], values: Sequence[object], path: str) -> Iterator[str]:
    """The outcomes of properties and items."""
    objects = [cast("Mapping[str, object]", value) for value in values if isinstance(value, Mapping)]
    for name, child in schema.get("properties", {}).items():
        if objects:  # without an example of the object nothing is known of its properties
            yield from _missing(root, child, [value.get(name) for value in objects], f"{path}.{name}" if path else name)
    items = [item for value in values if isinstance(value, list) for item in cast("list[object]", value)]
    if isinstance(schema.get("items"), Mapping) and items:
        yield from _missing(root, schema["items"], items, f"{path}[]")
    extra = schema.get("additionalProperties")
    entries = [entry for value in objects for entry in value.values()]
    if isinstance(extra, Mapping) and entries:
        yield from _missing(root, cast("Mapping[str, Any]", extra), entries, f"{path}.*")


def example_tools(answer: object) -> Iterator[str]:
    """The values of every field `tool` in an answer."""
    if isinstance(answer, Mapping):
        for name, value in cast("Mapping[str, object]", answer).items():
            if name == "tool" and isinstance(value, str):
                yield value
            else:
                yield from example_tools(value)
    elif isinstance(answer, list):
        for value in cast("list[object]", answer):
            yield from example_tools(value)
