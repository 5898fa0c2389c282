"""The generated files of `recipes/`, which are never edited by hand.

`registry.yaml` lists all recipes and prompts with their metadata (specification 000, section 5.1). `schema.json` is the recipe model as
JSON Schema, by which editors complete and check recipes. Each has a function that builds it, one that renders its text, one that writes the
file, and one that compares the file with it.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, cast

from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.recipe_schema import ASSERTIONS, LoadedRecipe, Recipe
from pandora_dagster.documents.plain_yaml import SourceFault, read_yaml, render_yaml
from pandora_dagster.recipes.recipe_loader import RecipeLoader
from pandora_dagster.recipes.recipe_paths import FRAMES, POLICY_PROMPT, REGISTRY_FILE, SCHEMA_FILE, prompt_files
from pandora_dagster.recipes.recipe_reader import content_digest, frame_files, read_prompt
from pandora_dagster.recipes.schema_notation import render_schema

_FILE_HEADER = "# Generated from recipes/ and prompts/: edit those, then write the registry again.\n"
_SHARED_FRAMES = frozenset(f"{FRAMES}{name}.md" for name in ("retry", "retry_short", "answer_cue"))
_FIRST_SENTENCE = re.compile(r"(.+?[.!?])(?:\s|$)", re.DOTALL)


def build_registry(loader: RecipeLoader, counter: TokenMeasure, *, excluded: Collection[str] = ()) -> dict[str, Any]:
    """Every recipe but the `excluded`, and every prompt, with its metadata; raises RecipeValidationError for a broken recipe."""
    loaded = [loader.load_file(name) for name in loader.names() if name not in excluded]
    return {
        "recipes": {item.path: _recipe_entry(item) for item in loaded},
        "prompts": {name: _prompt_entry(loader, name, loaded, counter) for name in prompt_files(loader.prompts)},
    }


def render_registry(loader: RecipeLoader, counter: TokenMeasure) -> str:
    """The text that `recipes/registry.yaml` must have."""
    return _FILE_HEADER + render_yaml(build_registry(loader, counter), width=140)


def write_registry(loader: RecipeLoader, counter: TokenMeasure) -> None:
    """Write `recipes/registry.yaml`."""
    (loader.recipes / REGISTRY_FILE).write_text(render_registry(loader, counter), encoding="utf-8", newline="\n")


def check_registry(loader: RecipeLoader, counter: TokenMeasure, *, broken: Collection[str] = ()) -> tuple[str, ...]:
    """Every entry in which `recipes/registry.yaml` and the files differ; empty where they agree.

    `broken` recipes, which cannot be read, and the prompts that they name are not compared.
    """
    file = loader.recipes / REGISTRY_FILE
    if not file.is_file():
        return (f"recipes/{REGISTRY_FILE}: missing: expected the generated registry",)
    written = file.read_text(encoding="utf-8", errors="replace")
    if not broken and written == render_registry(loader, counter):
        return ()
    skipped = {*broken, *referenced_prompts(loader, broken)}
    differences = tuple(_differences(_parse_registry(written), build_registry(loader, counter, excluded=broken), skipped))
    return differences if differences or broken else (f"recipes/{REGISTRY_FILE}: edited by hand: expected the generated text",)


def referenced_prompts(loader: RecipeLoader, recipes: Collection[str]) -> frozenset[str]:
    """The prompt files whose names occur in the text of these recipes, which need not be valid."""
    texts = [(loader.recipes / f"{name}.yaml").read_text(encoding="utf-8", errors="replace") for name in recipes]
    return frozenset(name for name in prompt_files(loader.prompts) if any(name.removeprefix("prompts/") in text for text in texts))


def _differences(written: Mapping[str, Any], built: Mapping[str, Any], skipped: Collection[str]) -> Iterator[str]:
    """Each entry of the written registry that differs from the built one, as a fault."""
    for group in ("recipes", "prompts"):
        value, entries = written.get(group), built[group]
        listed: Mapping[str, Any] = cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
        for name in sorted({*listed, *entries}):
            if name not in skipped and listed.get(name) != entries.get(name):
                state = "not listed" if name not in listed else "no such file" if name not in entries else "differs from its file"
                yield f"recipes/{REGISTRY_FILE}: {name}: {state}: expected the registry to be written again"


def _parse_registry(text: str) -> Mapping[str, Any]:
    """The registry in a text; {} where the text is not a YAML mapping."""
    return read_yaml(text).fields


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
            **({"images": True} if recipe.input_images else {}),
            "format": str(recipe.output_format),
            "output": answer_shape(recipe),
        },
        "prompts": [entry.path for entry in recipe.prompt_files] or ["system_prompt"],
    }


def answer_shape(recipe: Recipe) -> str | None:
    """The output schema in short notation on one line; None where the recipe has none."""
    return None if recipe.output_schema is None else render_schema(recipe.output_schema).replace("\n", " ")


def _prompt_entry(loader: RecipeLoader, name: str, loaded: list[LoadedRecipe], counter: TokenMeasure) -> dict[str, Any]:
    source = read_prompt(loader.prompts, name)
    text = "" if isinstance(source, SourceFault) else source
    recipes = [recipe.path for recipe in loaded if name in _prompts_of(recipe)]
    return {
        "purpose": prompt_purpose(text),
        "tokens": counter.count(text),
        "version": content_digest(text),
        "used_by": ["every recipe"] if name == POLICY_PROMPT or name in _SHARED_FRAMES else recipes,
    }


def _prompts_of(loaded: LoadedRecipe) -> tuple[str, ...]:
    """The prompt files of a recipe that not every recipe uses."""
    shape = [frame_files(loaded.recipe.output_format)["answer_shape"]] if loaded.recipe.output_schema else []
    return (*(entry.path for entry, _ in loaded.prompts), frame_files(loaded.recipe.output_format)["answer_format"], *shape)


def prompt_purpose(prompt: str) -> str:
    """A prompt's first heading, or its first sentence."""
    paragraph = prompt.split("\n\n", 1)[0].strip()
    if paragraph.startswith("#"):
        return paragraph.splitlines()[0].lstrip("# ").strip()
    sentence = _FIRST_SENTENCE.match(paragraph)
    return " ".join((sentence[1] if sentence else paragraph).split())


def build_recipe_schema() -> dict[str, Any]:
    """JSON Schema of a recipe file (specification 000, section 10.1), with the rules that the model checks across fields."""
    schema = Recipe.model_json_schema()
    items = schema["properties"]["prompt_files"]["items"]
    path = schema["$defs"]["PromptFile"]["properties"]["path"]
    schema["properties"]["prompt_files"]["items"] = {"anyOf": [path, items]}
    documents = schema["$defs"]["RecipeTest"]["properties"]["documents"]
    documents["additionalProperties"] = {"anyOf": [{"type": "string"}, documents["additionalProperties"]]}
    schema["$defs"]["Expectation"]["oneOf"] = [{"required": [name]} for name in ASSERTIONS]
    schema["allOf"] = [
        {"oneOf": [{"required": ["system_prompt"]}, {"required": ["prompt_files"]}]},
        {"anyOf": [{"required": [name]} for name in ("input_docs", "input_sections", "input_images")]},
    ]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "Recipe"}


def render_schema_file() -> str:
    """The text that `recipes/schema.json` must have."""
    return json.dumps(build_recipe_schema(), indent=2, ensure_ascii=False) + "\n"


def write_schema_file(loader: RecipeLoader) -> None:
    """Write `recipes/schema.json`."""
    (loader.recipes / SCHEMA_FILE).write_text(render_schema_file(), encoding="utf-8", newline="\n")


def check_schema_file(loader: RecipeLoader) -> tuple[str, ...]:
    """The fault of a missing or stale `recipes/schema.json`; empty where it is up to date."""
    file = loader.recipes / SCHEMA_FILE
    written = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else None
    if written == render_schema_file():
        return ()
    return (f"recipes/{SCHEMA_FILE}: {'missing' if written is None else 'stale'}: expected what the recipe model generates",)
