"""`recipes/registry.yaml`: the catalogue of all recipes and prompts, generated from their files (000 section 5.1). Never edited."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, cast

import yaml

from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.recipe_schema import ASSERTIONS, LoadedRecipe, Recipe
from pandora_dagster.recipes.recipe_loader import RecipeLoader
from pandora_dagster.recipes.recipe_paths import POLICY, REGISTRY_FILE, SCHEMA_FILE, prompt_files
from pandora_dagster.recipes.recipe_reader import content_digest, read_prompt
from pandora_dagster.recipes.schema_notation import render_schema
from pandora_dagster.recipes.yaml_source import SourceFault

_HEAD = "# Generated from recipes/ and prompts/: edit those, then write the registry again.\n"
_SENTENCE = re.compile(r"(.+?[.!?])(?:\s|$)", re.DOTALL)


def registry(loader: RecipeLoader, counter: TokenMeasure, *, without: Collection[str] = ()) -> dict[str, Any]:
    """Every recipe and prompt with its metadata, read from the files; raises RecipeValidationError for a broken recipe that is
    not among those to leave out."""
    loaded = [loader.load_file(name) for name in loader.names() if name not in without]
    return {
        "recipes": {item.path: _recipe_entry(item) for item in loaded},
        "prompts": {name: _prompt_entry(loader, name, loaded, counter) for name in prompt_files(loader.prompts)},
    }


def registry_text(loader: RecipeLoader, counter: TokenMeasure) -> str:
    """What `recipes/registry.yaml` must hold."""
    plain = yaml.safe_dump(registry(loader, counter), sort_keys=False, allow_unicode=True, default_flow_style=None, width=140)
    return _HEAD + plain


def write_registry(loader: RecipeLoader, counter: TokenMeasure) -> None:
    """Generate `recipes/registry.yaml`."""
    (loader.recipes / REGISTRY_FILE).write_text(registry_text(loader, counter), encoding="utf-8", newline="\n")


def check_registry(loader: RecipeLoader, counter: TokenMeasure, *, broken: Collection[str] = ()) -> tuple[str, ...]:
    """Every entry in which `recipes/registry.yaml` and the files differ; empty where they agree.

    `broken` recipes and the prompts that they name are passed over, as they cannot be read.
    """
    file = loader.recipes / REGISTRY_FILE
    if not file.is_file():
        return (f"recipes/{REGISTRY_FILE}: missing: expected the generated registry",)
    written = file.read_text(encoding="utf-8", errors="replace")
    if not broken and written == registry_text(loader, counter):
        return ()
    passed = {*broken, *referenced_prompts(loader, broken)}
    differing = tuple(_differences(_parse_registry(written), registry(loader, counter, without=broken), passed))
    return differing if differing or broken else (f"recipes/{REGISTRY_FILE}: edited by hand: expected the generated text",)


def referenced_prompts(loader: RecipeLoader, recipes: Collection[str]) -> frozenset[str]:
    """The prompt files whose names are in the text of these recipes, which need not be sound."""
    texts = [(loader.recipes / f"{name}.yaml").read_text(encoding="utf-8", errors="replace") for name in recipes]
    return frozenset(name for name in prompt_files(loader.prompts) if any(name.removeprefix("prompts/") in text for text in texts))


def _differences(written: Mapping[str, Any], files: Mapping[str, Any], passed: Collection[str]) -> Iterator[str]:
    for kind in ("recipes", "prompts"):
        was, now = written.get(kind), files[kind]
        known: Mapping[str, Any] = cast("Mapping[str, Any]", was) if isinstance(was, Mapping) else {}
        for name in sorted({*known, *now}):
            if name not in passed and known.get(name) != now.get(name):
                state = "not listed" if name not in known else "no such file" if name not in now else "differs from its file"
                yield f"recipes/{REGISTRY_FILE}: {name}: {state}: expected the registry to be written again"


def _parse_registry(text: str) -> Mapping[str, Any]:
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return {}
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _recipe_entry(loaded: LoadedRecipe) -> dict[str, Any]:
    recipe = loaded.recipe
    return {
        "name": recipe.name,
        "role": recipe.role,
        "purpose": recipe.description,
        "layer": str(recipe.model_layer),
        "mode": str(recipe.mode) if recipe.mode else None,
        "risk_level": recipe.risk_level,
        "version": loaded.version,
        "prompt_version": loaded.prompt_version,
        "budget": recipe.token_budget.model_dump(),
        "io": {
            "documents": list(recipe.input_docs),
            "sections": list(recipe.input_sections),
            "format": str(recipe.output_format),
            "output": answer_shape(recipe),
        },
        "prompts": [entry.path for entry in recipe.prompt_files] or ["system_prompt"],
    }


def answer_shape(recipe: Recipe) -> str | None:
    """The output schema in short notation on one line, None where the answer has no schema."""
    return None if recipe.output_schema is None else render_schema(recipe.output_schema).replace("\n", " ")


def _prompt_entry(loader: RecipeLoader, name: str, loaded: list[LoadedRecipe], counter: TokenMeasure) -> dict[str, Any]:
    text = read_prompt(loader.prompts, name)
    words = "" if isinstance(text, SourceFault) else text
    users = [r.path for r in loaded if name in [entry.path for entry, _ in r.prompts]]
    return {
        "purpose": purpose(words),
        "tokens": counter.count(words),
        "version": content_digest(words),
        "used_by": ["every recipe"] if name == POLICY else users,
    }


def purpose(prompt: str) -> str:
    """A prompt's first heading, or its first sentence."""
    first = prompt.split("\n\n", 1)[0].strip()
    if first.startswith("#"):
        return first.splitlines()[0].lstrip("# ").strip()
    sentence = _SENTENCE.match(first)
    return " ".join((sentence[1] if sentence else first).split())


# `recipes/schema.json`: the recipe model as JSON Schema, so that editors complete and check recipes. Generated, never edited.


def recipe_schema() -> dict[str, Any]:
    """JSON Schema of a recipe file (000 section 10.1), with what the model checks across fields."""
    schema = Recipe.model_json_schema()
    items = schema["properties"]["prompt_files"]["items"]
    path = schema["$defs"]["PromptFile"]["properties"]["path"]
    schema["properties"]["prompt_files"]["items"] = {"anyOf": [path, items]}
    documents = schema["$defs"]["RecipeTest"]["properties"]["documents"]
    documents["additionalProperties"] = {"anyOf": [{"type": "string"}, documents["additionalProperties"]]}
    schema["$defs"]["Expectation"]["oneOf"] = [{"required": [word]} for word in ASSERTIONS]
    schema["allOf"] = [
        {"oneOf": [{"required": ["system_prompt"]}, {"required": ["prompt_files"]}]},
        {"anyOf": [{"required": ["input_docs"]}, {"required": ["input_sections"]}]},
    ]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "Recipe"}


def schema_text() -> str:
    """What `recipes/schema.json` must hold."""
    return json.dumps(recipe_schema(), indent=2, ensure_ascii=False) + "\n"


def write_schema_file(loader: RecipeLoader) -> None:
    """Generate `recipes/schema.json`."""
    (loader.recipes / SCHEMA_FILE).write_text(schema_text(), encoding="utf-8", newline="\n")


def check_schema_file(loader: RecipeLoader) -> tuple[str, ...]:
    """The fault that `recipes/schema.json` is missing or stale; empty where it is neither."""
    file = loader.recipes / SCHEMA_FILE
    written = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else None
    if written == schema_text():
        return ()
    return (f"recipes/{SCHEMA_FILE}: {'missing' if written is None else 'stale'}: expected what the recipe model generates",)
