"""A short type notation of JSON Schemas that small models follow.

`{"decision": "PROCEED"|"CLARIFY", "confidence": number 0..1, "question"?: string|null}`: a `?` after a name marks an optional
property, `string[]` is an array, `(<=300 chars)` a limit, `...` allows further properties.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

Schema = Mapping[str, Any]
_BRANCHES = ("anyOf", "oneOf")


def render_schema(schema: Schema) -> str:
    """The notation for `schema`, one line per property of its outermost object (000 section 6, IO schema)."""
    shown = _Renderer(schema)
    properties = _properties(schema)
    if not properties:
        return shown.type(schema)
    lines = ",\n".join(shown.members(schema, properties))
    return f"{{\n{lines}\n}}"


def property_names(schema: Schema) -> tuple[str, ...]:
    """Names of all properties at any depth of `schema`, each once, in order."""
    return tuple(dict.fromkeys(name for node in subschemas(schema) for name in _properties(node)))


def subschemas(schema: Schema) -> Iterator[Schema]:
    """`schema` and every mapping below it that can be a schema, outermost first; `enum`, `const`, `default`, `examples` hold values."""
    yield schema
    for key, value in schema.items():
        if key in ("properties", "patternProperties", "$defs", "definitions"):
            for child in _mapping(value).values():
                yield from _below(child)
        elif key not in ("enum", "const", "default", "examples"):
            yield from _below(value)


def resolve_reference(root: Schema, reference: str) -> object:
    """The schema inside `root` that `$ref` names as a JSON pointer; None where there is none."""
    found: object = root if reference.startswith("#") else None
    for step in reference.removeprefix("#").split("/")[1:]:
        found = _mapping(found).get(step.replace("~1", "/").replace("~0", "~"))
    return found


def _below(value: object) -> Iterator[Schema]:
    if isinstance(value, Mapping):
        yield from subschemas(cast("Schema", value))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for child in cast("Sequence[object]", value):
            yield from _below(child)


class _Renderer:
    """Renders the parts of one schema; a `$ref` is resolved in the same schema."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._open: list[str] = []

    def members(self, schema: Schema, properties: Schema) -> list[str]:
        required = schema.get("required", ())
        named = [f'"{name}"{"" if name in required else "?"}: {self.type(child)}' for name, child in properties.items()]
        return [*named, "..."] if schema.get("additionalProperties") is True else named

    def type(self, schema: object) -> str:
        if not isinstance(schema, Mapping):
            return "any" if schema else "never"
        known = cast("Schema", schema)
        if "$ref" in known:
            return self._reference(str(known["$ref"]))
        if "const" in known:
            return _value(known["const"])
        if "enum" in known:
            return "|".join(_value(v) for v in known["enum"])
        for word in _BRANCHES:
            if word in known:
                return "|".join(dict.fromkeys(self.type(branch) for branch in known[word]))
        return self._plain(known)

    def _plain(self, schema: Schema) -> str:
        kind = schema.get("type", "object" if "properties" in schema else "any")
        if isinstance(kind, str):
            return self._one(kind, schema)
        return "|".join(self._one(str(k), schema) for k in kind)

    def _one(self, kind: str, schema: Schema) -> str:
        if kind == "array":
            return self._array(schema)
        if kind == "object":
            return self._object(schema)
        if kind in ("number", "integer"):
            return kind + _between(schema.get("minimum"), schema.get("maximum"))
        if kind == "string":
            return kind + _limit(schema.get("minLength"), schema.get("maxLength"), "chars")
        return kind

    def _array(self, schema: Schema) -> str:
        item = self.type(schema.get("items", True))
        shown = f"({item})" if "|" in item and not item.startswith("{") else item
        return f"{shown}[]" + _limit(schema.get("minItems"), schema.get("maxItems"), "items")

    def _object(self, schema: Schema) -> str:
        properties = _properties(schema)
        if properties:
            return "{" + ", ".join(self.members(schema, properties)) + "}"
        others = schema.get("additionalProperties", True)
        if others is False:
            return "{}"
        value = self.type(others)
        return "object" if value == "any" else f'{{"<key>": {value}}}'

    def _reference(self, reference: str) -> str:
        if reference in self._open:
            return reference.rsplit("/", 1)[-1]
        found = resolve_reference(self._root, reference)
        self._open.append(reference)
        try:
            return self.type(True if found is None else found)
        finally:
            self._open.pop()


def _mapping(value: object) -> Schema:
    return cast("Schema", value) if isinstance(value, Mapping) else {}


def _properties(schema: Schema) -> Schema:
    return _mapping(schema.get("properties"))


def _value(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _between(low: object, high: object) -> str:
    if low is None and high is None:
        return ""
    return f" {'' if low is None else low}..{'' if high is None else high}"


def _limit(low: object, high: object, unit: str) -> str:
    if low in (None, 0) and high is None:
        return ""
    if high is None:
        return f" (>={low} {unit})"
    return f" (<={high} {unit})" if low in (None, 0) else f" ({low}..{high} {unit})"
