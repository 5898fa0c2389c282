"""The stored text of a recipe version, and the difference of two versions. Texts and values only; `stores` reads and writes the files.

A version text is one JSON object: `{"format": 1, "recipe": {...}, "policy": "...", "prompts": ["..."]}`. The version is the hash of its
content, so a changed byte is found when the text is read.
"""

import json
from collections.abc import Iterator
from difflib import unified_diff
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.recipe_schema import LoadedRecipe, PromptFile, Recipe
from pandora_dagster.documents.plain_yaml import render_yaml
from pandora_dagster.errors import DocumentError
from pandora_dagster.recipes.recipe_reader import INLINE_PROMPT, content_digest, versioned_fields


class _VersionText(BaseModel):
    """The JSON object of a version text. `recipe` stays a dict, as it was written: the hash is of these fields, whatever fields the model
    has."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    format: Literal[1] = 1
    recipe: dict[str, Any]
    policy: str
    prompts: tuple[str, ...]


def version_text(loaded: LoadedRecipe) -> str:
    """Render a version; equal versions have equal texts."""
    prompts = tuple(text for _, text in loaded.prompts)
    return _render(_VersionText(recipe=versioned_fields(loaded.recipe), policy=loaded.policy, prompts=prompts))


def read_version(text: str, *, path: str, version: str, where: str) -> LoadedRecipe:
    """Read a version text; raises DocumentError, beginning with `where`, for a damaged text and for another version than `version`."""
    try:
        written = _VersionText.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise DocumentError(
            f"{where}: {'.'.join(map(str, first['loc'])) or 'text'}: {first['msg']}: expected a recipe's version"
        ) from error
    texts = [written.policy, *written.prompts]
    actual_version = content_digest([written.recipe, texts])
    if actual_version != version or text != _render(written):
        raise DocumentError(f"{where}: damaged: its content is version {actual_version}: expected {version}, byte for byte")
    try:
        recipe = Recipe.model_validate(written.recipe)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise DocumentError(f"{where}: {'.'.join(map(str, first['loc']))}: {first['msg']}: expected what this program reads") from error
    files = recipe.prompt_files or (PromptFile(path=INLINE_PROMPT),)
    if len(files) != len(written.prompts):
        raise DocumentError(f"{where}: {len(written.prompts)} prompt texts: expected {len(files)}")
    prompts = tuple(zip(files, written.prompts, strict=True))
    return LoadedRecipe(
        recipe=recipe, path=path, version=version, prompt_version=content_digest(texts), prompts=prompts, policy=written.policy
    )


def _render(written: _VersionText) -> str:
    return json.dumps(written.model_dump(), ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def version_parts(loaded: LoadedRecipe) -> dict[str, str]:
    """The parts of a version by name: the recipe as YAML, the policy, each prompt file."""
    plain = loaded.recipe.model_dump(mode="json", exclude_none=True, exclude_defaults=True, exclude={"tests"})
    recipe = render_yaml(plain, width=100, flow_leaves=False)
    return {"recipe": recipe, "policy": loaded.policy, **{entry.path: text for entry, text in loaded.prompts}}


def version_difference(old: LoadedRecipe, new: LoadedRecipe, counter: TokenMeasure) -> str:
    """A unified difference, part by part, each headed by its tokens before and after; "" for the same version."""
    before, after = version_parts(old), version_parts(new)
    names = dict.fromkeys([*before, *after])
    return "".join(line for name in names for line in _part_difference(name, before.get(name, ""), after.get(name, ""), old, new, counter))


def _part_difference(name: str, before: str, after: str, old: LoadedRecipe, new: LoadedRecipe, counter: TokenMeasure) -> Iterator[str]:
    if before == after:
        return
    old_header, new_header = (
        f"{loaded.path}@{loaded.version} {name} ({counter.count(text)} tokens)" for loaded, text in ((old, before), (new, after))
    )
    for line in unified_diff(before.splitlines(), after.splitlines(), old_header, new_header, lineterm=""):
        yield f"{line}\n"
