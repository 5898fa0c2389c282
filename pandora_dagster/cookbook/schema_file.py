"""`recipes/schema.json`: the recipe model as JSON Schema, so that editors complete and check recipes. Generated, never edited."""

import json
from typing import Any

from pandora_dagster.contracts.recipe_tests import ASSERTIONS
from pandora_dagster.contracts.recipes import Recipe
from pandora_dagster.cookbook.places import SCHEMA_FILE
from pandora_dagster.cookbook.shelf import RecipeLoader


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


def write_schema_file(shelf: RecipeLoader) -> None:
    """Generate `recipes/schema.json`."""
    (shelf.recipes / SCHEMA_FILE).write_text(schema_text(), encoding="utf-8", newline="\n")


def check_schema_file(shelf: RecipeLoader) -> tuple[str, ...]:
    """The fault that `recipes/schema.json` is missing or stale; empty where it is neither."""
    file = shelf.recipes / SCHEMA_FILE
    written = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else None
    if written == schema_text():
        return ()
    return (f"recipes/{SCHEMA_FILE}: {'missing' if written is None else 'stale'}: expected what the recipe model generates",)
