"""How large, long or many a value may be, beside how its reader takes it. Knows the words of JSON Schema that bound one value."""

from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator

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
    """Where a value may be written beyond a bound of reading, each as `what: what was expected`. Both are of one type at most."""
    bounds = {word: read[word] for word in _OF_TYPE.get(written.get("type") or read.get("type", ""), ()) if word in read}
    if values := [written["const"]] if "const" in written else written.get("enum"):
        validator: Any = Draft202012Validator(bounds)  # half-typed library
        refused = [value for value in values if not validator.is_valid(value)]
        yield from (f"{value}: expected {', '.join(f'{word} {bound}' for word, bound in bounds.items())}" for value in refused)
        return
    for word, bound in bounds.items():
        same = next((words for words in (_LEAST, _MOST) if word in words), (word,))
        said = {name: value for name, value in {**_DEFAULT_BOUNDS, **written}.items() if name in same}
        if not any(_is_within(name, value, word, bound) for name, value in said.items()):
            told = ", ".join(f"{name} {value}" for name, value in said.items()) or f"no {word}"
            yield f"{told}: expected {word} {bound}"


def _is_within(name: str, value: Any, word: str, bound: Any) -> bool:
    """Whether what is written keeps to what is read; the same number is not enough where reading alone excludes it."""
    if value == bound:
        return name == word or not word.startswith("exclusive")
    if word.startswith(("min", "exclusiveMin")):
        return value > bound
    return word.startswith(("max", "exclusiveMax")) and value < bound
