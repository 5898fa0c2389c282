"""One recipe file -> a LoadedRecipe, or every fault it has (000 section 18). Knows files and the Recipe model; knows no registry."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pandora_dagster.contracts.recipe_schema import ASSERTIONS, TAGGED_SCHEMA_FAULT, LoadedRecipe, PromptFile, Recipe, RecipeTest
from pandora_dagster.errors import RecipeValidationError
from pandora_dagster.recipes.output_schema import schema_faults
from pandora_dagster.recipes.recipe_paths import POLICY
from pandora_dagster.recipes.yaml_source import SourceFault, YamlSource, dotted_path, read_text, read_yaml

INLINE_PROMPT = "prompts/inline/system_prompt.md"
"""Names a recipe's own `system_prompt` in LoadedRecipe.prompts; no such file exists."""
_INSTEAD_OF_PROMPTS = "expected exactly one of system_prompt and prompt_files"
_INSTEAD_OF_INPUT = "expected input_docs or input_sections"
_TESTS = re.compile(r"^tests:.*?(?=^[^\s#-]|\Z)", re.MULTILINE | re.DOTALL)
"""The block `tests:` of a recipe, up to the next field."""
_KINDS = {
    "tuple_type": "a list",
    "model_type": "a mapping",
    "dataclass_type": "a mapping",
    "dict_type": "a mapping",
    "string_type": "a string",
}
"""The model checker's names of what YAML calls otherwise."""


def read_recipe(file: Path, prompts: Path, *, path: str, shown: str, with_tests: bool = True) -> LoadedRecipe:
    """Load one recipe; raises RecipeValidationError with every fault as `file:line: field: what: what was expected`.

    `path` is how its records name it, `shown` how its faults do; `prompts` is the folder of its prompts.
    Without its tests a recipe is read in half the time, and no fault of theirs stops a call.
    """
    text = read_text(file)
    if not with_tests and not isinstance(text, SourceFault):
        text = _TESTS.sub(lambda block: "\n" * block[0].count("\n"), text)
    source, recipe, faults = (YamlSource(None, (text,)), None, ()) if isinstance(text, SourceFault) else _parse_recipe(text)
    named = _prompt_references(source.data or {})
    texts = {name: read_prompt(prompts, name) for name in named}
    policy = read_prompt(prompts, POLICY)
    missing = [
        SourceFault(source.line(named[name]), f"{dotted_path(named[name])}: {t.text}")
        for name, t in texts.items()
        if isinstance(t, SourceFault)
    ]
    found = [*source.faults, *faults, *missing, *([policy] if isinstance(policy, SourceFault) else [])]
    if found or recipe is None or isinstance(policy, SourceFault):
        raise RecipeValidationError([f"{shown}:{f.line}: {f.text}" for f in sorted(found, key=lambda f: f.line)])
    return _build_recipe(recipe, path, {name: t for name, t in texts.items() if isinstance(t, str)}, policy)


def read_prompt(prompts: Path, name: str) -> str | SourceFault:
    """The text of `prompts/...`, without the blank lines around it."""
    text = read_text(prompts / name.removeprefix("prompts/"))
    if isinstance(text, SourceFault):
        return SourceFault(1, f"{name}: {text.text}")
    return text.strip()


@lru_cache(maxsize=128)
def _parse_recipe(text: str) -> tuple[YamlSource, Recipe | None, tuple[SourceFault, ...]]:
    """A parsed recipe text and its faults. All open stores of a process share it; none changes it."""
    source = read_yaml(text)
    if source.data is None:
        return source, None, ()
    faults = (*_choice_faults(source), *_output_faults(source))
    try:
        return source, Recipe.model_validate(source.data), faults
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False)
        return source, None, (*faults, *(_fault(source, d) for d in details if d["loc"]))


def _choice_faults(source: YamlSource) -> Iterator[SourceFault]:
    """What the model checks only once every field is sound, so that all faults come at once."""
    data = source.data or {}
    if (data.get("system_prompt") is None) == (not data.get("prompt_files")):
        both = data.get("system_prompt") is not None
        yield SourceFault(
            source.line(("system_prompt",)) if both else 1, f"prompt: {'both' if both else 'none'} given: {_INSTEAD_OF_PROMPTS}"
        )
    if not data.get("input_docs") and not data.get("input_sections"):
        yield SourceFault(1, f"input: none given: {_INSTEAD_OF_INPUT}")
    if data.get("output_format") == "tagged" and data.get("output_schema") is not None:
        yield SourceFault(source.line(("output_schema",)), f"output_schema: given for a tagged answer: {TAGGED_SCHEMA_FAULT}")


def _output_faults(source: YamlSource) -> Iterator[SourceFault]:
    schema: Any = (source.data or {}).get("output_schema")
    if isinstance(schema, dict):
        schema = cast("dict[str, Any]", schema)
        for place, text in schema_faults(schema):
            at = ("output_schema", *place)
            yield SourceFault(source.line(at), f"{dotted_path(at)}: {text}")


def _fault(source: YamlSource, detail: ErrorDetails) -> SourceFault:
    place = detail["loc"]
    line = source.line(place[:-1] if detail["type"] == "missing" else place)
    return SourceFault(line, f"{dotted_path(place)}: {_fault_text(detail)}")


def _fault_text(detail: ErrorDetails) -> str:
    """What is wrong and what was expected, in our words."""
    if detail["type"] == "missing":
        return "missing: expected this required field"
    if detail["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return _unknown(detail["loc"])
    if detail["type"] in _KINDS:
        return f"{_quote_value(detail['input'])}: expected {_KINDS[detail['type']]}"
    message = detail["msg"].removeprefix("Value error, ").removeprefix("Input should be ").replace("String should ", "a string to ")
    if detail["type"] == "value_error":
        return message
    return f"{_quote_value(detail['input'])}: expected {message[0].lower() + message[1:]}"


def _unknown(place: tuple[int | str, ...]) -> str:
    if place[0] != "tests":
        return "unknown field: expected a field of the recipe schema"
    if "expect" in place[:-1]:
        return f"unknown assertion: expected one of {', '.join(ASSERTIONS)}"
    return f"unknown field: expected one of {', '.join(RecipeTest.model_fields)}"


def _quote_value(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _prompt_references(data: Mapping[str, Any]) -> dict[str, tuple[str | int, ...]]:
    """Prompt files that a recipe names in the right form -> where it names them."""
    listed: Any = data.get("prompt_files")
    named: dict[str, tuple[str | int, ...]] = {}
    for index, item in enumerate(cast("list[Any]", listed) if isinstance(listed, list) else []):
        try:
            entry = PromptFile.model_validate({"path": item} if isinstance(item, str) else item)
        except ValidationError:
            continue  # reported as a fault of the recipe itself
        named.setdefault(entry.path, ("prompt_files", index))
    return named


def _build_recipe(recipe: Recipe, path: str, texts: Mapping[str, str], policy: str) -> LoadedRecipe:
    if recipe.system_prompt is not None:
        prompts = ((PromptFile(path=INLINE_PROMPT), recipe.system_prompt.strip()),)
    else:
        prompts = tuple((entry, texts[entry.path]) for entry in recipe.prompt_files)
    words = [policy, *(text for _, text in prompts)]
    return LoadedRecipe(
        recipe=recipe,
        path=path,
        version=content_digest([versioned_fields(recipe), words]),
        prompt_version=content_digest(words),
        prompts=prompts,
        policy=policy,
    )


def versioned_fields(recipe: Recipe) -> dict[str, Any]:
    """What of a recipe its version is the hash of, beside its texts: everything that a call can notice."""
    return recipe.model_dump(mode="json", exclude={"tests"})


def content_digest(value: object) -> str:
    """The first 12 hex digits of the sha256 of `value` as canonical JSON."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]
