"""A version of a recipe as one text, and back: recipe, policy and prompt texts whole. The text bears its own proof, the version.

Knows no disk. The version is the hash of what the text holds, so one wrong byte of it is another version's text, or none.
"""

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from pandora_dagster.contracts.recipes import LoadedRecipe, PromptFile, Recipe
from pandora_dagster.cookbook.reading import INLINE_PROMPT, content_digest, versioned_fields
from pandora_dagster.errors import DocumentError


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
    return LoadedRecipe(recipe=recipe, path=path, version=version, prompt_version=content_digest(words), prompts=prompts, policy=written.policy)


def _rendered(written: _VersionText) -> str:
    return json.dumps(written.model_dump(), ensure_ascii=False, indent=1, sort_keys=True) + "\n"
