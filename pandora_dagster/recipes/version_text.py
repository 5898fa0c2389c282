"""A version of a recipe as one text, and back: recipe, policy and prompt texts whole. The version is the hash of the text.

Knows no disk. The version is the hash of what the text holds, so one wrong byte of it is another version's text, or none.
"""

import json
from collections.abc import Iterator
from difflib import unified_diff
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.recipe_schema import LoadedRecipe, PromptFile, Recipe
from pandora_dagster.errors import DocumentError
from pandora_dagster.recipes.recipe_reader import INLINE_PROMPT, content_digest, versioned_fields


class _VersionText(BaseModel):
    """The text's own shape. `recipe` stays as it was written: a later program may know more fields, the hash is of these."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    format: Literal[1] = 1
    recipe: dict[str, Any]
    policy: str
    prompts: tuple[str, ...]


def version_text(loaded: LoadedRecipe) -> str:
    """The text of a version, the same for the same version."""
    written = _VersionText(recipe=versioned_fields(loaded.recipe), policy=loaded.policy, prompts=tuple(text for _, text in loaded.prompts))
    return _rendered(written)


def read_version(text: str, *, path: str, version: str, where: str) -> LoadedRecipe:
    """The version that a text holds; raises DocumentError, beginning with `where`, where it is not the one named."""
    try:
        written = _VersionText.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise DocumentError(
            f"{where}: {'.'.join(map(str, first['loc'])) or 'text'}: {first['msg']}: expected a recipe's version"
        ) from error
    words = [written.policy, *written.prompts]
    found = content_digest([written.recipe, words])
    if found != version or text != _rendered(written):
        raise DocumentError(f"{where}: damaged: its content is version {found}: expected {version}, byte for byte")
    try:
        recipe = Recipe.model_validate(written.recipe)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise DocumentError(f"{where}: {'.'.join(map(str, first['loc']))}: {first['msg']}: expected what this program reads") from error
    named = recipe.prompt_files or (PromptFile(path=INLINE_PROMPT),)
    if len(named) != len(written.prompts):
        raise DocumentError(f"{where}: {len(written.prompts)} prompt texts: expected {len(named)}")
    prompts = tuple(zip(named, written.prompts, strict=True))
    return LoadedRecipe(
        recipe=recipe, path=path, version=version, prompt_version=content_digest(words), prompts=prompts, policy=written.policy
    )


def _rendered(written: _VersionText) -> str:
    return json.dumps(written.model_dump(), ensure_ascii=False, indent=1, sort_keys=True) + "\n"


# Two versions of a recipe beside each other: a unified difference of each part, with tokens. Knows texts; opens nothing.


def version_parts(loaded: LoadedRecipe) -> dict[str, str]:
    """What a version consists of, by name: the recipe as YAML, the policy, each prompt file."""
    plain = loaded.recipe.model_dump(mode="json", exclude_none=True, exclude_defaults=True, exclude={"tests"})
    recipe = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=100)
    return {"recipe": recipe, "policy": loaded.policy, **{entry.path: text for entry, text in loaded.prompts}}


def version_difference(old: LoadedRecipe, new: LoadedRecipe, counter: TokenMeasure) -> str:
    """A unified difference, part by part, each headed by its tokens before and after; "" for the same version."""
    before, after = version_parts(old), version_parts(new)
    names = dict.fromkeys([*before, *after])
    return "".join(line for name in names for line in _part_difference(name, before.get(name, ""), after.get(name, ""), old, new, counter))


def _part_difference(name: str, was: str, now: str, old: LoadedRecipe, new: LoadedRecipe, counter: TokenMeasure) -> Iterator[str]:
    if was == now:
        return
    before, after = (f"{one.path}@{one.version} {name} ({counter.count(text)} tokens)" for one, text in ((old, was), (new, now)))
    for line in unified_diff(was.splitlines(), now.splitlines(), before, after, lineterm=""):
        yield f"{line}\n"
