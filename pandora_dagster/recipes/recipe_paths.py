"""Paths of recipes and prompts, and what their names look like. Knows paths; reads no recipe."""

import os
import re
from pathlib import Path

from pandora_dagster.errors import RecipeNotFoundError
from pandora_dagster.shipped import shipped_folder

POLICY = "prompts/policy/shared.md"
"""The policy before every role prompt (000 section 5.2)."""
ARCHIVE = "archive"
"""Category of deprecated recipes and prompts; nothing in it is ever loaded (000 section 9)."""
SCHEMA_FILE = "schema.json"
REGISTRY_FILE = "registry.yaml"
_NAME = re.compile(r"([a-z][a-z0-9_]{0,63})/([a-z][a-z0-9_]{0,63})(?:\.yaml)?")
_PHASE_PREFIX = re.compile(r"^phase\d_")


def recipes_root(file: Path) -> Path:
    """The nearest folder above `file` with both `recipes/` and `prompts/`; the shipped one where there is none."""
    above = (p for p in file.resolve().parents if (p / "recipes").is_dir() and (p / "prompts").is_dir())
    return next(above, shipped_folder())


def split_name(name: str) -> tuple[str, str]:
    """`{category}/{name}` as its two words; raises RecipeNotFoundError for anything else (000 section 9)."""
    found = _NAME.fullmatch(name)
    if not found:
        raise RecipeNotFoundError(f"{name[:80]!r}: not a recipe name: expected {{category}}/{{name}} in small letters, digits and _")
    if found[1] == ARCHIVE:
        raise RecipeNotFoundError(f"{name}: archived: expected a recipe outside recipes/{ARCHIVE}/")
    return found[1], found[2]


def short_stem(stem: str) -> str:
    """A file's stem without its phase: `phase3_planner_chat` is `planner_chat`."""
    return _PHASE_PREFIX.sub("", stem)


def recipe_names(recipes: Path) -> tuple[str, ...]:
    """`{category}/{name}`, sorted, of every recipe that may be loaded."""
    # every call asks for them: os.scandir takes a fifth of the time of Path.glob
    folders = [folder.name for folder in _entries(recipes) if folder.name != ARCHIVE and folder.is_dir()]
    found = ((folder, entry.name) for folder in folders for entry in _entries(recipes / folder))
    return tuple(f"{folder}/{name.removesuffix('.yaml')}" for folder, name in sorted(found) if name.endswith(".yaml"))


def recipe_files(recipes: Path) -> dict[str, Path]:
    """`{category}/{name}` -> file, sorted, for every recipe that may be loaded."""
    return {name: recipes / f"{name}.yaml" for name in recipe_names(recipes)}


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        return []


def stray_files(recipes: Path) -> tuple[str, ...]:
    """Files below `recipes/` that are no recipe and would be passed over in silence: a wrong ending, no category, too deep."""
    known = {*recipe_files(recipes).values(), recipes / SCHEMA_FILE, recipes / REGISTRY_FILE}
    below = sorted(p for p in recipes.rglob("*") if p.is_file() and p not in known)
    return tuple(name for p in below if not (name := p.relative_to(recipes).as_posix()).startswith(f"{ARCHIVE}/"))


def prompt_files(prompts: Path) -> dict[str, Path]:
    """`prompts/...` as recipes write it -> file, sorted, the archive left out."""
    files = sorted(prompts.rglob("*.md"))
    named = {f"prompts/{p.relative_to(prompts).as_posix()}": p for p in files}
    return {name: p for name, p in named.items() if not name.startswith(f"prompts/{ARCHIVE}/")}
