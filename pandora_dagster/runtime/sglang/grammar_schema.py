"""Rewrites the JSON Schema of an answer so that SGLang's grammar can enforce it.

The result is never stricter than the schema: unsupported keywords are dropped, and `allOf` is merged into its parent. `execution` validates
the answer against the full schema. Example: `{"type": "string", "pattern": "a+"}` becomes `{"type": "string"}`.

Measured on SGLang 0.5.23 with xgrammar: `uniqueItems` and `multipleOf` are refused with 400; `minLength`, `maxLength`
and `pattern` let raw control characters through and forbid escapes; an `allOf` of several branches is ignored silently.
`$ref`, `anyOf`, `oneOf`, `enum`, `const`, formats and numeric bounds hold.
"""

from collections.abc import Mapping, Sequence
from typing import cast

from pandora_dagster.recipes.schema_notation import resolve_reference

Schema = Mapping[str, object]

_DROPPED_KEYWORDS = (
    frozenset({"minLength", "maxLength", "pattern", "uniqueItems", "multipleOf"})
    | {"contains", "minContains", "maxContains", "minProperties", "maxProperties", "patternProperties", "propertyNames"}
    | {"not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"}
    | {"unevaluatedProperties", "unevaluatedItems"}
    | {"$schema", "$id", "$comment", "examples", "default"}
)
_SCHEMAS_BY_NAME = frozenset({"properties", "$defs", "definitions"})
"""Keywords whose value maps names to schemas: a property may be called `pattern`."""
_SINGLE_SCHEMA = frozenset({"items", "additionalProperties"})
_SCHEMA_LIST = frozenset({"anyOf", "oneOf", "prefixItems"})
_ANNOTATIONS = frozenset({"title", "description"})
_LOWER_BOUNDS = frozenset({"minimum", "exclusiveMinimum", "minItems"})
_UPPER_BOUNDS = frozenset({"maximum", "exclusiveMaximum", "maxItems"})


def schema_for_grammar(schema: Schema) -> dict[str, object]:
    """The schema to send; every value that is valid by `schema` is valid by it."""
    return _loosen(schema, schema, frozenset())


def _loosen(schema: Schema, root: Schema, within: frozenset[str]) -> dict[str, object]:
    """One schema of `root`, loosened with all schemas inside it.

    `within`: references whose targets were merged into this place; they are not followed again, because a recursive schema would never end.
    """
    merged, within = _merge_all_of(schema, root, within)
    loosened = {
        keyword: _loosen_keyword(keyword, value, root, within) for keyword, value in merged.items() if keyword not in _DROPPED_KEYWORDS
    }
    if "patternProperties" in merged:
        loosened["additionalProperties"] = True  # otherwise properties that a pattern allowed would be forbidden
    if "oneOf" in loosened:
        branches = loosened.pop("oneOf")  # loosened branches may overlap, and oneOf refuses a value that is valid by two
        loosened.setdefault("anyOf", branches)
    if _is_unresolvable(loosened.get("$ref")):
        del loosened["$ref"]
    return loosened


def _is_unresolvable(reference: object) -> bool:
    """Whether a reference points into a part of the schema that is not sent."""
    return isinstance(reference, str) and not {"allOf", "oneOf", *_DROPPED_KEYWORDS}.isdisjoint(reference.split("/"))


def _loosen_keyword(keyword: str, value: object, root: Schema, within: frozenset[str]) -> object:
    if keyword in _SCHEMAS_BY_NAME and isinstance(value, Mapping):
        return {name: _loosen_value(part, root, within) for name, part in cast("Schema", value).items()}
    if keyword in _SINGLE_SCHEMA:
        return _loosen_value(value, root, within)
    if keyword in _SCHEMA_LIST and isinstance(value, Sequence):
        return [_loosen_value(part, root, within) for part in cast("Sequence[object]", value)]
    return value


def _loosen_value(part: object, root: Schema, within: frozenset[str]) -> object:
    return _loosen(cast("Schema", part), root, within) if isinstance(part, Mapping) else part


def _merge_all_of(schema: Schema, root: Schema, within: frozenset[str]) -> tuple[dict[str, object], frozenset[str]]:
    """The schema with the branches of its `allOf` merged in as far as possible, and the references that were followed."""
    merged = {keyword: value for keyword, value in schema.items() if keyword != "allOf"}
    branches = _all_of_branches(schema)
    if len(branches) == 1 and set(merged) <= _ANNOTATIONS:
        return _merge_all_of({**merged, **branches[0]}, root, within)
    for branch in branches:
        flat, within = _resolve_branch(branch, root, within)
        merged = _merge(merged, flat)
    return merged, within


def _all_of_branches(schema: Schema) -> list[Schema]:
    branches = schema.get("allOf")
    items = cast("Sequence[object]", branches) if isinstance(branches, Sequence) else ()
    return [cast("Schema", branch) for branch in items if isinstance(branch, Mapping)]


def _resolve_branch(branch: Schema, root: Schema, within: frozenset[str]) -> tuple[dict[str, object], frozenset[str]]:
    """A branch with its own `allOf` merged and its `$ref` followed; a reference that is circular or has no target adds nothing."""
    flat, within = _merge_all_of(branch, root, within)
    reference = flat.pop("$ref", None)
    if not isinstance(reference, str):
        return flat, within
    target = resolve_reference(root, reference) if reference.startswith("#/") and reference not in within else None
    if not isinstance(target, Mapping):
        return flat, within
    referenced, within = _resolve_branch(cast("Schema", target), root, within | {reference})
    return _merge(referenced, flat), within


_CONFLICT = object()


def _merge(first: Schema, second: Schema) -> dict[str, object]:
    """Both schemas as one; a keyword is dropped where its two values cannot be combined."""
    shared = [keyword for keyword in first if keyword in second]
    combined = {
        keyword: first[keyword] if first[keyword] == second[keyword] else _combine_keyword(keyword, first[keyword], second[keyword])
        for keyword in shared
    }
    merged = {keyword: value for keyword, value in {**first, **second, **combined}.items() if value is not _CONFLICT}
    if ("additionalProperties" in first) != ("additionalProperties" in second) and "properties" in combined:
        del merged["additionalProperties"]  # it was about the properties of one side only
    return merged


def _combine_keyword(keyword: str, first: object, second: object) -> object:
    """The value of a keyword that satisfies both values, which differ; `_CONFLICT` where there is none."""
    if keyword == "required" and isinstance(first, Sequence) and isinstance(second, Sequence):
        return list(dict.fromkeys([*cast("Sequence[str]", first), *cast("Sequence[str]", second)]))
    if keyword in _SCHEMAS_BY_NAME and isinstance(first, Mapping) and isinstance(second, Mapping):
        return _combine_named(cast("Schema", first), cast("Schema", second))
    if keyword in _LOWER_BOUNDS | _UPPER_BOUNDS and isinstance(first, int | float) and isinstance(second, int | float):
        bounds = (cast("float", first), cast("float", second))
        return max(bounds) if keyword in _LOWER_BOUNDS else min(bounds)
    if keyword == "type" and (first, second) in (("integer", "number"), ("number", "integer")):
        return "integer"
    return _CONFLICT


def _combine_named(first: Schema, second: Schema) -> dict[str, object]:
    """The names of both sides; a name on both sides becomes an `allOf` of its two schemas, which is merged with its own level."""
    shared = {name: {"allOf": [first[name], second[name]]} for name in first if name in second and first[name] != second[name]}
    return {**first, **second, **shared}
