"""The generated catalogue and the generated schema: complete, and never stale unnoticed."""

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import yaml

from pandora_dagster.recipes.generated_files import (
    build_recipe_schema,
    build_registry,
    check_registry,
    check_schema_file,
    prompt_purpose,
    write_registry,
    write_schema_file,
)
from pandora_dagster.recipes.recipe_loader import RecipeLoader
from pandora_dagster.runtime.token_counter import TokenCounter

Put = Callable[[str, str | bytes], Path]


def test_the_registry_lists_recipes_and_prompts(loader: RecipeLoader, counter: TokenCounter) -> None:
    """Role, purpose, IO schema, budget, risk level, layer and version of every recipe and prompt (000 section 5.1)."""
    listed = build_registry(loader, counter)
    gate = listed["recipes"]["pipeline/gate"]
    assert gate["version"] == loader.load("pipeline/gate").version
    assert gate["io"] == {
        "documents": [],
        "sections": ["§0"],
        "format": "json",
        "output": '{ "decision": "PROCEED"|"CLARIFY", "confidence": number }',
    }
    assert (gate["purpose"], gate["layer"], gate["risk_level"]) == ("PROCEED or CLARIFY gate", "REFLEX", "low")
    prompt = listed["prompts"]["prompts/pipeline/gate.md"]
    assert (prompt["purpose"], prompt["used_by"]) == ("Say yes or no.", ["pipeline/gate"])
    assert prompt["tokens"] == counter.count((loader.prompts / "pipeline/gate.md").read_text().strip())
    assert listed["prompts"]["prompts/policy/shared.md"]["used_by"] == ["every recipe"]


def test_a_written_registry_is_fresh_and_readable(loader: RecipeLoader, counter: TokenCounter) -> None:
    """What was written agrees with the files and reads back as the same values."""
    assert check_registry(loader, counter) == ("recipes/registry.yaml: missing: expected the generated registry",)
    write_registry(loader, counter)
    assert check_registry(loader, counter) == ()
    assert yaml.safe_load((loader.recipes / "registry.yaml").read_text()) == build_registry(loader, counter)


@pytest.mark.parametrize(
    ("file", "text", "faults"),
    [
        ("prompts/pipeline/gate.md", "Other words.", ["pipeline/gate: differs from its file", "prompts/pipeline/gate.md: differs"]),
        ("prompts/pipeline/new.md", "New.", ["prompts/pipeline/new.md: not listed"]),
        (
            "recipes/registry.yaml",
            "recipes: {old/one: {}}",
            ["old/one: no such file", "pipeline/gate: not listed", "prompts/pipe", "prompts/pol"],
        ),
        (
            "recipes/registry.yaml",
            "{",
            ["pipeline/gate: not listed", "prompts/pipeline/gate.md: not listed", "prompts/policy/shared.md: not"],
        ),
        (
            "recipes/registry.yaml",
            b"\xff",
            ["pipeline/gate: not listed", "prompts/pipeline/gate.md: not listed", "prompts/policy/shared.md: not"],
        ),
    ],
)
def test_every_difference_is_named(
    loader: RecipeLoader, put: Put, counter: TokenCounter, file: str, text: str | bytes, faults: list[str]
) -> None:
    """A changed, new or removed file, and a registry that is none, each give their lines."""
    write_registry(loader, counter)
    put(file, text)
    found = check_registry(loader, counter)
    assert len(found) == len(faults), found
    for fault, expected in zip(found, faults, strict=True):
        assert fault.startswith(f"recipes/registry.yaml: {expected}")


def test_a_registry_edited_by_hand_is_noticed(loader: RecipeLoader, put: Put, counter: TokenCounter) -> None:
    """Even a comment: one truth, the files."""
    write_registry(loader, counter)
    put("recipes/registry.yaml", (loader.recipes / "registry.yaml").read_text() + "# mine\n")
    assert check_registry(loader, counter) == ("recipes/registry.yaml: edited by hand: expected the generated text",)


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ("# The planner\n\nYou plan.", "The planner"),
        ("You are the Planner. You plan.", "You are the Planner."),
        ("Say `v1.2` of\nit: now! Then", "Say `v1.2` of it: now!"),
        ("no end", "no end"),
    ],
)
def test_the_purpose_is_the_heading_or_the_first_sentence(prompt: str, message: str) -> None:
    """One line tells what a prompt is for."""
    assert prompt_purpose(prompt) == message


def test_the_recipe_schema_takes_what_the_model_takes(loader: RecipeLoader, shipped: RecipeLoader, recipe: str) -> None:
    """Every shipped recipe passes `schema.json`, and it refuses what the model refuses across fields."""
    check = jsonschema.Draft202012Validator(build_recipe_schema())
    for name in shipped.names():
        check.validate(yaml.safe_load((shipped.recipes / f"{name}.yaml").read_text()))
    sound = yaml.safe_load(recipe)
    assert check.is_valid(sound)
    for wrong in ({"colour": "red"}, {"system_prompt": "x"}, {"model_layer": "BRAIN"}, {"prompt_files": ["x.md"]}):
        assert not check.is_valid({**sound, **wrong})
    assert not check.is_valid({key: value for key, value in sound.items() if key != "input_sections"})


def test_a_stale_schema_is_noticed(loader: RecipeLoader, put: Put) -> None:
    """`recipes/schema.json` is missing, stale or fresh."""
    assert check_schema_file(loader)[0].startswith("recipes/schema.json: missing")
    write_schema_file(loader)
    assert check_schema_file(loader) == ()
    put("recipes/schema.json", json.dumps(build_recipe_schema()))
    assert check_schema_file(loader)[0].startswith("recipes/schema.json: stale")
