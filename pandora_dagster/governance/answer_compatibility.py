"""Checks that the data model of a phase accepts every answer that a recipe version allows, by comparing two JSON Schemas.

The written schema is the recipe's `output_schema`; the read schema is that of the pydantic model. Both are expanded into alternatives of
one type each; every written alternative must fit a read one in type, bounds, enum values, fields and items. A fault is a text such as
`tasks[].tool: any text: expected one of doc.search, memory.query`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from jsonschema import Draft202012Validator
from pydantic import BaseModel

from pandora_dagster.contracts.enums import OutputFormat
from pandora_dagster.contracts.recipe_schema import Recipe
from pandora_dagster.recipes.schema_notation import resolve_reference

Schema = Mapping[str, Any]
_LOWER_BOUNDS, _UPPER_BOUNDS = ("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")
_BOUNDS_OF_TYPE = {
    "number": (*_LOWER_BOUNDS, *_UPPER_BOUNDS),
    "integer": (*_LOWER_BOUNDS, *_UPPER_BOUNDS),
    "string": ("minLength", "maxLength", "pattern"),
    "array": ("minItems", "maxItems", "uniqueItems"),
    "object": ("minProperties", "maxProperties"),
}
_DEFAULT_BOUNDS = {"minLength": 0, "minItems": 0, "minProperties": 0}


def find_wider_bounds(written: Schema, read: Schema) -> Iterator[str]:
    """Yield each bound of `read` that a value of `written` may exceed, as `what: what was expected`. Each schema has at most one type."""
    keywords = _BOUNDS_OF_TYPE.get(written.get("type") or read.get("type", ""), ())
    read_bounds = {keyword: read[keyword] for keyword in keywords if keyword in read}
    if values := [written["const"]] if "const" in written else written.get("enum"):
        validator: Any = Draft202012Validator(read_bounds)  # half-typed library
        expected = ", ".join(f"{keyword} {bound}" for keyword, bound in read_bounds.items())
        yield from (f"{value}: expected {expected}" for value in values if not validator.is_valid(value))
        return
    for keyword, bound in read_bounds.items():
        same_direction = next((names for names in (_LOWER_BOUNDS, _UPPER_BOUNDS) if keyword in names), (keyword,))
        written_bounds = {name: value for name, value in {**_DEFAULT_BOUNDS, **written}.items() if name in same_direction}
        if not any(_is_within(name, value, keyword, bound) for name, value in written_bounds.items()):
            description = ", ".join(f"{name} {value}" for name, value in written_bounds.items()) or f"no {keyword}"
            yield f"{description}: expected {keyword} {bound}"


def _is_within(written_keyword: str, value: Any, read_keyword: str, bound: Any) -> bool:
    """Whether a written bound satisfies a read one; an equal number is not enough where the read bound is exclusive."""
    if value == bound:
        return written_keyword == read_keyword or not read_keyword.startswith("exclusive")
    if read_keyword.startswith(("min", "exclusiveMin")):
        return value > bound
    return read_keyword.startswith(("max", "exclusiveMax")) and value < bound


_STRUCTURED_FORMATS = (OutputFormat.JSON, OutputFormat.YAML)


def find_incompatibilities(recipe: Recipe, reader: type[BaseModel] | None, *, like: Recipe | None) -> tuple[str, ...]:
    """Find the fields of the answers of `recipe` that `reader` cannot read, each as `field: what: what was expected`.

    Without a reader the answer must have the format of `like`, a version that is in use.
    """
    if reader is None:
        if like is None or like.output_format is recipe.output_format:
            return ()
        return (f"output_format: {recipe.output_format}: expected {like.output_format}, as what follows reads it",)
    if recipe.output_format not in _STRUCTURED_FORMATS:
        return (f"output_format: {recipe.output_format}: expected json, which {reader.__name__} is read from",)
    read = reader.model_json_schema()
    written = recipe.output_schema or {"type": "object"}
    return tuple(dict.fromkeys(_SchemaComparison(written, read).faults(written, read, "")))


class _SchemaComparison:
    """Compares a written schema with the one that reads it; references are resolved in their own schema."""

    def __init__(self, written: Schema, read: Schema) -> None:
        self._written, self._read = written, read

    def faults(self, written: Schema, read: Schema, path: str) -> Iterator[str]:
        """For each alternative of `written`: the faults against the alternative of `read` with the fewest faults."""
        read_alternatives = tuple(_alternatives(read, self._read))
        for alternative in _alternatives(written, self._written):
            yield from min(([*self._compare_alternative(alternative, reading, path)] for reading in read_alternatives), key=len)

    def _compare_alternative(self, written: Schema, read: Schema, path: str) -> Iterator[str]:
        written_types, read_types = _types_of(written), _types_of(read)
        if read_types and not written_types:
            yield f"{_location(path)}: any value: expected {' or '.join(sorted(read_types))}"
            return
        if read_types and not written_types <= read_types | ({"integer"} if "number" in read_types else set[str]()):
            yield f"{_location(path)}: {' or '.join(sorted(written_types))}: expected {' or '.join(sorted(read_types))}"
            return
        yield from _compare_enums(written, read, path)
        yield from (f"{_location(path)}: {fault}" for fault in find_wider_bounds(written, read))
        if "object" in written_types:
            yield from self._compare_fields(written, read, path)
        if "array" in written_types and "items" in read:
            yield from self.faults(_as_schema(written.get("items")), _as_schema(read["items"]), f"{path}[]")

    def _compare_fields(self, written: Schema, read: Schema, path: str) -> Iterator[str]:
        written_fields, read_fields = _as_schema(written.get("properties")), _as_schema(read.get("properties"))
        written_extra, read_extra = written.get("additionalProperties", True), read.get("additionalProperties", True)
        read_extra_schema = _as_schema(read_extra)
        for name in cast("Sequence[str]", read.get("required", ())):
            if name not in written.get("required", ()):
                yield f"{_location(_child_path(path, name))}: may be left out: expected it always"
        for name, child in written_fields.items():
            if name in read_fields:
                yield from self.faults(_as_schema(child), _as_schema(read_fields[name]), _child_path(path, name))
            elif read_extra is False:
                yield f"{_location(_child_path(path, name))}: no reader: expected one of {', '.join(read_fields)}"
            elif read_extra_schema:
                yield from self.faults(_as_schema(child), read_extra_schema, _child_path(path, name))
        if read_extra is False and written_extra is not False:
            yield f"{_location(path)}: any other field: expected additionalProperties: false"
        elif read_extra_schema and written_extra is not False:
            yield from self.faults(_as_schema(written_extra), read_extra_schema, _child_path(path, "*"))


def _alternatives(schema: Schema, root: Schema) -> Iterator[Schema]:
    """The alternatives of a schema: `anyOf`, `oneOf`, references and lists of types expanded."""
    if isinstance(reference := schema.get("$ref"), str):
        siblings = {name: value for name, value in schema.items() if name != "$ref"}
        yield from _alternatives({**_as_schema(resolve_reference(root, reference)), **siblings}, root)
        return
    keyword = next((keyword for keyword in ("anyOf", "oneOf") if keyword in schema), "")
    if keyword:
        common = {name: value for name, value in schema.items() if name != keyword}
        for alternative in cast("Sequence[Schema]", schema[keyword]):
            yield from _alternatives({**common, **alternative}, root)
    elif isinstance(schema.get("type"), Sequence) and not isinstance(schema["type"], str):
        yield from ({**schema, "type": name} for name in cast("Sequence[str]", schema["type"]))
    else:
        yield schema


def _compare_enums(written: Schema, read: Schema, path: str) -> Iterator[str]:
    read_values = _enum_values(read)
    if read_values is None:
        return
    written_values = _enum_values(written)
    if written_values is None:
        yield f"{_location(path)}: any text: expected one of {', '.join(map(str, read_values))}"
    elif extra_values := [value for value in written_values if value not in read_values]:
        yield f"{_location(path)}: {', '.join(map(str, extra_values))}: expected one of {', '.join(map(str, read_values))}"


def _enum_values(schema: Schema) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    return list(cast("Sequence[Any]", schema["enum"])) if "enum" in schema else None


def _types_of(schema: Schema) -> set[str]:
    if named := schema.get("type"):
        return {named}
    values = _enum_values(schema)
    return {_type_of(value) for value in values} if values else set[str]()


def _type_of(value: object) -> str:
    names = {"bool": "boolean", "int": "integer", "float": "number", "str": "string", "NoneType": "null", "list": "array", "dict": "object"}
    return names[type(value).__name__]


def _as_schema(value: object) -> Schema:
    return cast("Schema", value) if isinstance(value, Mapping) else {}


def _child_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _location(path: str) -> str:
    return path or "answer"
