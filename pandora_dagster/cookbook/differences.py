"""Two versions of a recipe beside each other: a unified difference of each part, with tokens. Knows texts; opens nothing."""

from collections.abc import Iterator
from difflib import unified_diff

import yaml

from pandora_dagster.contracts.ports import TokenMeasure
from pandora_dagster.contracts.recipes import LoadedRecipe


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
