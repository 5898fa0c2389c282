"""The JSON Schema of an answer as a schema that SGLang's grammar can hold. Only ever loosens: the full schema is checked on our side.

Measured on SGLang 0.5.23 with xgrammar: `uniqueItems` and `multipleOf` are refused with 400; `minLength`, `maxLength`
and `pattern` let raw control characters through and forbid escapes; an `allOf` of several branches is ignored silently.
`$ref`, `anyOf`, `oneOf`, `enum`, `const`, formats and numeric bounds hold.
"""

from collections.abc import Mapping, Sequence
from typing import cast

from pandora_dagster.recipes.schema_notation import resolve_reference

Schema = Mapping[str, object]

_DROPPED = (
    frozenset({"minLength", "maxLength", "pattern", "uniqueItems", "multipleOf"})
    | {"contains", "minContains", "maxContains", "minProperties", "maxProperties", "patternProperties", "propertyNames"}
    | {"not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"}
    | {"unevaluatedProperties", "unevaluatedItems"}
    | {"$schema", "$id", "$comment", "examples", "default"}
)
_NAMED = frozenset({"properties", "$defs", "definitions"})
"""Keywords whose keys are names, not keywords: a property may be called `pattern`."""
_ONE = frozenset({"items", "additionalProperties"})
_MANY = frozenset({"anyOf", "oneOf", "prefixItems"})
_NOTES = frozenset({"title", "description"})
_HIGHER = frozenset({"minimum", "exclusiveMinimum", "minItems"})
_LOWER = frozenset({"maximum", "exclusiveMaximum", "maxItems"})


def schema_for_grammar(schema: Schema) -> dict[str, object]:
    """`schema` as it can be sent; whatever fits `schema` fits the result."""
    return _safe(schema, schema, frozenset())


def _safe(schema: Schema, root: Schema, within: frozenset[str]) -> dict[str, object]:
    """`within`: references that are being merged into this place; met again, they would never end."""
    merged, within = _without_all_of(schema, root, within)
    found = {word: _keyword(word, value, root, within) for word, value in merged.items() if word not in _DROPPED}
    if "patternProperties" in merged:
        found["additionalProperties"] = True  # else what the patterns allowed would be forbidden now
    if "oneOf" in found:
        branches = found.pop("oneOf")  # loosened branches may overlap, and oneOf refuses what fits two
        found.setdefault("anyOf", branches)
    if _is_unresolvable(found.get("$ref")):
        del found["$ref"]
    return found


def _is_unresolvable(reference: object) -> bool:
    """Whether a reference points into a place that is not sent."""
    return isinstance(reference, str) and not {"allOf", "oneOf", *_DROPPED}.isdisjoint(reference.split("/"))


def _keyword(word: str, value: object, root: Schema, within: frozenset[str]) -> object:
    if word in _NAMED and isinstance(value, Mapping):
        return {name: _inner(part, root, within) for name, part in cast("Schema", value).items()}
    if word in _ONE:
        return _inner(value, root, within)
    if word in _MANY and isinstance(value, Sequence):
        return [_inner(part, root, within) for part in cast("Sequence[object]", value)]
    return value


def _inner(part: object, root: Schema, within: frozenset[str]) -> object:
    return _safe(cast("Schema", part), root, within) if isinstance(part, Mapping) else part


def _without_all_of(schema: Schema, root: Schema, within: frozenset[str]) -> tuple[dict[str, object], frozenset[str]]:
    """The branches of `allOf` merged into their parent as far as they can be, and the references followed for it."""
    merged = {word: value for word, value in schema.items() if word != "allOf"}
    branches = _branches(schema)
    if len(branches) == 1 and set(merged) <= _NOTES:
        return _without_all_of({**merged, **branches[0]}, root, within)
    for branch in branches:
        flat, within = _resolved(branch, root, within)
        merged = _merge(merged, flat)
    return merged, within


def _branches(schema: Schema) -> list[Schema]:
    branches = schema.get("allOf")
    listed = cast("Sequence[object]", branches) if isinstance(branches, Sequence) else ()
    return [cast("Schema", branch) for branch in listed if isinstance(branch, Mapping)]


def _resolved(branch: Schema, root: Schema, within: frozenset[str]) -> tuple[dict[str, object], frozenset[str]]:
    """A branch with its own `allOf` merged and its `$ref` followed; one that leads back or nowhere asks for nothing."""
    flat, within = _without_all_of(branch, root, within)
    reference = flat.pop("$ref", None)
    if not isinstance(reference, str):
        return flat, within
    target = resolve_reference(root, reference) if reference.startswith("#/") and reference not in within else None
    if not isinstance(target, Mapping):
        return flat, within
    there, within = _resolved(cast("Schema", target), root, within | {reference})
    return _merge(there, flat), within


_CONFLICT = object()


def _merge(first: Schema, second: Schema) -> dict[str, object]:
    """What both ask for, as one schema; a keyword on which they differ beyond `_both` is dropped."""
    shared = [word for word in first if word in second]
    both = {word: first[word] if first[word] == second[word] else _both(word, first[word], second[word]) for word in shared}
    merged = {word: value for word, value in {**first, **second, **both}.items() if value is not _CONFLICT}
    if ("additionalProperties" in first) != ("additionalProperties" in second) and "properties" in both:
        del merged["additionalProperties"]  # it spoke of one side's properties only
    return merged


def _both(word: str, one: object, other: object) -> object:
    if word == "required" and isinstance(one, Sequence) and isinstance(other, Sequence):
        return list(dict.fromkeys([*cast("Sequence[str]", one), *cast("Sequence[str]", other)]))
    if word in _NAMED and isinstance(one, Mapping) and isinstance(other, Mapping):
        return _both_named(cast("Schema", one), cast("Schema", other))
    if word in _HIGHER | _LOWER and isinstance(one, int | float) and isinstance(other, int | float):
        bounds = (cast("float", one), cast("float", other))
        return max(bounds) if word in _HIGHER else min(bounds)
    if word == "type" and (one, other) in (("integer", "number"), ("number", "integer")):
        return "integer"
    return _CONFLICT


def _both_named(one: Schema, other: Schema) -> dict[str, object]:
    """Both sides' names; a name on both sides must fit both, as an `allOf` that is merged when its turn comes."""
    shared = {name: {"allOf": [one[name], other[name]]} for name in one if name in other and one[name] != other[name]}
    return {**one, **other, **shared}
