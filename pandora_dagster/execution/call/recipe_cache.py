"""Compiled schemas and counted shared parts of recipes, which stay the same between calls. Bounded, one cache per executor."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from jsonschema import Draft202012Validator
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for

from pandora_dagster.contracts.model_calls import Part, PartKind
from pandora_dagster.contracts.recipe_schema import LoadedRecipe
from pandora_dagster.execution.fit.call_budget import TokenCountFunction
from pandora_dagster.recipes import io_schema

Value = TypeVar("Value")
MAX_ENTRIES = 128
"""Entries of a cache; the shipped recipes are about 25, each in a few cases of mode and intent."""


class LruCache(Generic[Value]):
    """The most recently used values by key, at most `MAX_ENTRIES`."""

    def __init__(self, most: int = MAX_ENTRIES) -> None:
        self._most = most
        self._values: OrderedDict[Hashable, Value] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of `key`, made on a miss."""
        if key not in self._values:
            self._values[key] = make()
            if len(self._values) > self._most:
                self._values.popitem(last=False)
        self._values.move_to_end(key)
        return self._values[key]


@dataclass(frozen=True, slots=True)
class SharedParts:
    """The parts that stand first in every pack of a recipe, with their tokens and the blank line after them."""

    parts: tuple[Part, ...]
    tokens: int


class RecipeCache:
    """Compiled schemas and shared parts by recipe version."""

    def __init__(self, count: TokenCountFunction) -> None:
        self._count = count
        self._shared: LruCache[SharedParts] = LruCache()
        self._validators: LruCache[Validator] = LruCache()

    def shared_parts(self, loaded: LoadedRecipe, prompts: tuple[str, ...]) -> SharedParts:
        """Policy, role prompts and IO schema, in this order (000 section 6)."""
        return self._shared.get((loaded.path, loaded.version, prompts), lambda: self._build_shared_parts(loaded, prompts))

    def validator(self, loaded: LoadedRecipe) -> Validator | None:
        """The compiled output schema, None where the recipe has none."""
        schema = loaded.recipe.output_schema
        return None if schema is None else self._validators.get((loaded.path, loaded.version), lambda: _compile_schema(schema))

    def _build_shared_parts(self, loaded: LoadedRecipe, prompts: tuple[str, ...]) -> SharedParts:
        texts: list[tuple[PartKind, str, str]] = [("policy", "policy", loaded.policy)]
        texts.extend(("role", "role", text) for text in prompts)
        texts.append(("schema", "schema", io_schema(loaded.recipe)))
        parts = tuple(Part(kind, name, text, self._count(text)) for kind, name, text in texts if text.strip())
        return SharedParts(parts, self._count("\n\n".join(part.text for part in parts) + "\n\n") if parts else 0)


def _compile_schema(schema: Mapping[str, Any]) -> Validator:
    return validator_for(schema, default=Draft202012Validator)(dict(schema))
