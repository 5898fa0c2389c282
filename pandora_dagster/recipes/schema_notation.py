"""A short type notation for JSON Schemas, which small models follow better than the schema itself.

`{"decision": "PROCEED"|"CLARIFY", "confidence": number 0..1, "question"?: string|null}`: a `?` after a name marks an optional
property, `string[]` is an array, `(<=300 chars)` a limit, `...` allows further properties.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

Schema = Mapping[str, Any]
_BRANCHES = ("anyOf", "oneOf")


def render_schema(schema: Schema) -> str:
    """The notation for `schema`, one line per property of its outermost object (specification 000, section 6)."""
    renderer = _Renderer(schema)
    properties = _properties(schema)
    if not properties:
        return renderer.type(schema)
    lines = ",\n".join(renderer.members(schema, properties))
    return f"{{\n{lines}\n}}"


def property_names(schema: Schema) -> tuple[str, ...]:
    """Names of all properties at any depth of `schema`, each once, in order."""
    return tuple(dict.fromkeys(name for node in subschemas(schema) for name in _properties(node)))


def subschemas(schema: Schema) -> Iterator[Schema]:
    """`schema` and every mapping below it that can be a schema, outermost first; `enum`, `const`, `default` and `examples` have values."""
    yield schema
    for key, value in schema.items():
        if key in ("properties", "patternProperties", "$defs", "definitions"):
            for child in _mapping(value).values():
                yield from _nested_schemas(child)
        elif key not in ("enum", "const", "default", "examples"):
            yield from _nested_schemas(value)


def resolve_reference(root: Schema, reference: str) -> object:
    """The schema inside `root` that `$ref` names as a JSON pointer; None where there is none."""
    node: object = root if reference.startswith("#") else None
    for step in reference.removeprefix("#").split("/")[1:]:
        node = _mapping(node).get(step.replace("~1", "/").replace("~0", "~"))
    return node


def _nested_schemas(value: object) -> Iterator[Schema]:
    if isinstance(value, Mapping):
        yield from subschemas(cast("Schema", value))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for child in cast("Sequence[object]", value):
            yield from _nested_schemas(child)


class _Renderer:
    """Renders the parts of one schema; a `$ref` is resolved in the same schema."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._resolving: list[str] = []
        """References that are being resolved: one inside itself is rendered by its name."""

    def members(self, schema: Schema, properties: Schema) -> list[str]:
        """`"name": type` of each property, and `...` where others are allowed."""
        required = schema.get("required", ())
        members = [f'"{name}"{"" if name in required else "?"}: {self.type(child)}' for name, child in properties.items()]
        return [*members, "..."] if schema.get("additionalProperties") is True else members

    def type(self, schema: object) -> str:
        """The notation for the type of any schema."""
        if not isinstance(schema, Mapping):
            return "any" if schema else "never"
        node = cast("Schema", schema)
        if "$ref" in node:
            return self._reference(str(node["$ref"]))
        if "const" in node:
            return _value(node["const"])
        if "enum" in node:
            return "|".join(_value(v) for v in node["enum"])
        for keyword in _BRANCHES:
            if keyword in node:
                return "|".join(dict.fromkeys(self.type(branch) for branch in node[keyword]))
        return self._declared_type(node)

    def _declared_type(self, schema: Schema) -> str:
        declared = schema.get("type", "object" if "properties" in schema else "any")
        if isinstance(declared, str):
            return self._named_type(declared, schema)
        return "|".join(self._named_type(str(name), schema) for name in declared)

    def _named_type(self, name: str, schema: Schema) -> str:
        if name == "array":
            return self._array(schema)
        if name == "object":
            return self._object(schema)
        if name in ("number", "integer"):
            return name + _between(schema.get("minimum"), schema.get("maximum"))
        if name == "string":
            return name + _limit(schema.get("minLength"), schema.get("maxLength"), "chars")
        return name

    def _array(self, schema: Schema) -> str:
        item = self.type(schema.get("items", True))
        grouped = f"({item})" if "|" in item and not item.startswith("{") else item
        return f"{grouped}[]" + _limit(schema.get("minItems"), schema.get("maxItems"), "items")

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
        if reference in self._resolving:
            return reference.rsplit("/", 1)[-1]
        target = resolve_reference(self._root, reference)
        self._resolving.append(reference)
        try:
            return self.type(True if target is None else target)
        finally:
            self._resolving.pop()


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
