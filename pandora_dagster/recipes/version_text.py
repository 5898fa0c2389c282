"""The stored text of a recipe version, and the difference of two versions. Texts and values only; `stores` reads and writes the files.

A version text is one JSON object: `{"format": 2, "recipe": {...}, "policy": "...", "prompts": ["..."], "frames": {...}}`. The version is
the hash of its content, so a changed byte is found when the text is read. Format 1 has no frames: a call takes the shipped ones.
"""

import json
from collections.abc import Iterator
from difflib import unified_diff
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.recipe_schema import LoadedRecipe, PromptFile, PromptFrames, Recipe
from pandora_dagster.documents.plain_yaml import render_yaml
from pandora_dagster.errors import DocumentError
from pandora_dagster.recipes.recipe_reader import (
    INLINE_PROMPT,
    content_digest,
    frame_files,
    read_frames,
    version_texts,
    versioned_fields,
)
from pandora_dagster.shipped import shipped_folder


class _VersionText(BaseModel):
    """The JSON object of a version text. `recipe` stays a dict, as it was written: the hash is of these fields, whatever fields the model
    has."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    format: Literal[1, 2]
    recipe: dict[str, Any]
    policy: str
    prompts: tuple[str, ...]
    frames: PromptFrames | None = None

    @property
    def texts(self) -> list[str]:
        """The texts of which the version is the hash."""
        return version_texts(self.policy, self.prompts, self.frames) if self.frames else [self.policy, *self.prompts]


def version_text(loaded: LoadedRecipe) -> str:
    """Render a version; equal versions have equal texts."""
    prompts = tuple(text for _, text in loaded.prompts)
    fields = versioned_fields(loaded.recipe)
    return _render(_VersionText(format=2, recipe=fields, policy=loaded.policy, prompts=prompts, frames=loaded.frames))


def read_version(text: str, *, path: str, version: str, where: str) -> LoadedRecipe:
    """Read a version text; raises DocumentError, beginning with `where`, for a damaged text and for another version than `version`."""
    try:
        written = _VersionText.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise DocumentError(
            f"{where}: {'.'.join(map(str, first['loc'])) or 'text'}: {first['msg']}: expected a recipe's version"
        ) from error
    actual_version = content_digest([written.recipe, written.texts])
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
    return LoadedRecipe(
        recipe=recipe,
        path=path,
        version=version,
        prompt_version=content_digest(written.texts),
        prompts=tuple(zip(files, written.prompts, strict=True)),
        policy=written.policy,
        frames=written.frames or _shipped_frames(recipe, where),
    )


def _shipped_frames(recipe: Recipe, where: str) -> PromptFrames:
    frames, faults = read_frames(shipped_folder() / "prompts", recipe.output_format)
    if frames is None:
        raise DocumentError(f"{where}: {'; '.join(fault.text for fault in faults)}")
    return frames


def _render(written: _VersionText) -> str:
    return json.dumps(written.model_dump(exclude_none=written.format == 1), ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def version_parts(loaded: LoadedRecipe) -> dict[str, str]:
    """The parts of a version by name: the recipe as YAML, the policy, each prompt file."""
    plain = loaded.recipe.model_dump(mode="json", exclude_none=True, exclude_defaults=True, exclude={"tests"})
    recipe = render_yaml(plain, width=100, flow_leaves=False)
    frames = {name: getattr(loaded.frames, field) for field, name in frame_files(loaded.recipe.output_format).items()}
    return {"recipe": recipe, "policy": loaded.policy, **{entry.path: text for entry, text in loaded.prompts}, **frames}


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
