"""Checks that the data model of a phase accepts every answer of a recipe version, by comparing two JSON Schemas: written and read."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from jsonschema import Draft202012Validator
from pydantic import BaseModel

from pandora_dagster.contracts.enums import OutputFormat
from pandora_dagster.contracts.recipe_schema import Recipe
from pandora_dagster.recipes.schema_notation import resolve_reference

Schema = Mapping[str, Any]
_LEAST, _MOST = ("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")
_OF_TYPE = {
    "number": (*_LEAST, *_MOST),
    "integer": (*_LEAST, *_MOST),
    "string": ("minLength", "maxLength", "pattern"),
    "array": ("minItems", "maxItems", "uniqueItems"),
    "object": ("minProperties", "maxProperties"),
}
_DEFAULT_BOUNDS = {"minLength": 0, "minItems": 0, "minProperties": 0}


def wider_bounds(written: Schema, read: Schema) -> Iterator[str]:
    """Bounds of `read` that a value of `written` may exceed, each as `what: what was expected`. Both schemas have at most one type."""
    bounds = {word: read[word] for word in _OF_TYPE.get(written.get("type") or read.get("type", ""), ()) if word in read}
    if values := [written["const"]] if "const" in written else written.get("enum"):
        validator: Any = Draft202012Validator(bounds)  # half-typed library
        refused = [value for value in values if not validator.is_valid(value)]
        yield from (f"{value}: expected {', '.join(f'{word} {bound}' for word, bound in bounds.items())}" for value in refused)
        return
    for word, bound in bounds.items():
        same = next((words for words in (_LEAST, _MOST) if word in words), (word,))
        given = {name: value for name, value in {**_DEFAULT_BOUNDS, **written}.items() if name in same}
        if not any(_is_within(name, value, word, bound) for name, value in given.items()):
            description = ", ".join(f"{name} {value}" for name, value in given.items()) or f"no {word}"
            yield f"{description}: expected {word} {bound}"


def _is_within(name: str, value: Any, word: str, bound: Any) -> bool:
    """Whether a written bound satisfies a read one; an equal number is not enough where the read bound is exclusive."""
    if value == bound:
        return name == word or not word.startswith("exclusive")
    if word.startswith(("min", "exclusiveMin")):
        return value > bound
    return word.startswith(("max", "exclusiveMax")) and value < bound


_VALUES = (OutputFormat.JSON, OutputFormat.YAML)


def incompatibilities(recipe: Recipe, reader: type[BaseModel] | None, *, like: Recipe | None) -> tuple[str, ...]:
    """Fields of the answers of `recipe` that `reader` cannot read, each as `field: what: what was expected`; empty where it reads all.

    `like`: a readable version, whose format the answer must have where no reader is known.
    """
    if reader is None:
        if like is None or like.output_format is recipe.output_format:
            return ()
        return (f"output_format: {recipe.output_format}: expected {like.output_format}, as what follows reads it",)
    if recipe.output_format not in _VALUES:
        return (f"output_format: {recipe.output_format}: expected json, which {reader.__name__} is read from",)
    read = reader.model_json_schema()
    written = recipe.output_schema or {"type": "object"}
    return tuple(dict.fromkeys(_SchemaComparison(written, read).faults(written, read, "")))


class _SchemaComparison:
    """Compares a written schema with the one that reads it; references are resolved in their own schema."""

    def __init__(self, written: Schema, read: Schema) -> None:
        self._written, self._read = written, read

    def faults(self, written: Schema, read: Schema, place: str) -> Iterator[str]:
        """For each alternative of `written`: the faults against the alternative of `read` with the fewest faults."""
        readings = tuple(_alternatives(read, self._read))
        for one in _alternatives(written, self._written):
            yield from min(([*self._compare_alternative(one, reading, place)] for reading in readings), key=len)

    def _compare_alternative(self, written: Schema, read: Schema, place: str) -> Iterator[str]:
        may, takes = _types(written), _types(read)
        if takes and not may:
            yield f"{_location(place)}: any value: expected {' or '.join(sorted(takes))}"
            return
        if takes and not may <= takes | ({"integer"} if "number" in takes else set[str]()):
            yield f"{_location(place)}: {' or '.join(sorted(may))}: expected {' or '.join(sorted(takes))}"
            return
        yield from _keyword_faults(written, read, place)
        yield from (f"{_location(place)}: {fault}" for fault in wider_bounds(written, read))
        if "object" in may:
            yield from self._fields(written, read, place)
        if "array" in may and "items" in read:
            yield from self.faults(_schema(written.get("items")), _schema(read["items"]), f"{place}[]")

    def _fields(self, written: Schema, read: Schema, place: str) -> Iterator[str]:
        may, known = _schema(written.get("properties")), _schema(read.get("properties"))
        others_may, others = written.get("additionalProperties", True), read.get("additionalProperties", True)
        mapped = _schema(others)
        for name in cast("Sequence[str]", read.get("required", ())):
            if name not in written.get("required", ()):
                yield f"{_location(_child_path(place, name))}: may be left out: expected it always"
        for name, child in may.items():
            if name in known:
                yield from self.faults(_schema(child), _schema(known[name]), _child_path(place, name))
            elif others is False:
                yield f"{_location(_child_path(place, name))}: no reader: expected one of {', '.join(known)}"
            elif mapped:
                yield from self.faults(_schema(child), mapped, _child_path(place, name))
        if others is False and others_may is not False:
            yield f"{_location(place)}: any other field: expected additionalProperties: false"
        elif mapped and others_may is not False:
            yield from self.faults(_schema(others_may), mapped, _child_path(place, "*"))


def _alternatives(schema: Schema, root: Schema) -> Iterator[Schema]:
    """The alternatives of a schema: `anyOf`, `oneOf`, references and lists of types expanded."""
    if isinstance(reference := schema.get("$ref"), str):
        own = {name: value for name, value in schema.items() if name != "$ref"}
        yield from _alternatives({**_schema(resolve_reference(root, reference)), **own}, root)
        return
    word = next((word for word in ("anyOf", "oneOf") if word in schema), "")
    if word:
        common = {name: value for name, value in schema.items() if name != word}
        for branch in cast("Sequence[Schema]", schema[word]):
            yield from _alternatives({**common, **branch}, root)
    elif isinstance(schema.get("type"), Sequence) and not isinstance(schema["type"], str):
        yield from ({**schema, "type": name} for name in cast("Sequence[str]", schema["type"]))
    else:
        yield schema


def _keyword_faults(written: Schema, read: Schema, place: str) -> Iterator[str]:
    takes = _enum_values(read)
    if takes is None:
        return
    may = _enum_values(written)
    if may is None:
        yield f"{_location(place)}: any text: expected one of {', '.join(map(str, takes))}"
    elif more := [value for value in may if value not in takes]:
        yield f"{_location(place)}: {', '.join(map(str, more))}: expected one of {', '.join(map(str, takes))}"


def _enum_values(schema: Schema) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    return list(cast("Sequence[Any]", schema["enum"])) if "enum" in schema else None


def _types(schema: Schema) -> set[str]:
    if named := schema.get("type"):
        return {named}
    values = _enum_values(schema)
    return {_type_of(value) for value in values} if values else set[str]()


def _type_of(value: object) -> str:
    names = {"bool": "boolean", "int": "integer", "float": "number", "str": "string", "NoneType": "null", "list": "array", "dict": "object"}
    return names[type(value).__name__]


def _schema(value: object) -> Schema:
    return cast("Schema", value) if isinstance(value, Mapping) else {}


def _child_path(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _location(place: str) -> str:
    return place or "answer"
