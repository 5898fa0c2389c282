"""Paths and names of recipe and prompt files: which exist, and which name belongs to which file. Opens none of them."""

import os
import re
from pathlib import Path

from pandora_dagster.errors import RecipeNotFoundError
from pandora_dagster.shipped import shipped_folder

POLICY_PROMPT = "prompts/policy/shared.md"
"""The policy, which precedes every role prompt (specification 000, section 5.2)."""
FRAMES = "prompts/frames/"
"""The folder of the texts around the parts of every call."""
ARCHIVE = "archive"
"""Category of deprecated recipes and prompts; nothing in it is ever loaded (specification 000, section 9)."""
SCHEMA_FILE = "schema.json"
REGISTRY_FILE = "registry.yaml"
OTHER_NAMES = {
    "phase1_context_gatherer": ("pipeline/phase2_retrieval", "pipeline/phase2_synthesis"),
    "phase2_reflection": ("pipeline/phase1_reflection",),
}
"""Names of specification 000, section 9, whose recipes have the phases' numbers of this project or are two (decisions 10 and 42)."""
_NAME = re.compile(r"([a-z][a-z0-9_]{0,63})/([a-z][a-z0-9_]{0,63})(?:\.yaml)?")
_PHASE_PREFIX = re.compile(r"^phase\d_")


def recipes_root(file: Path) -> Path:
    """The nearest folder above `file` with both `recipes/` and `prompts/`; the shipped one where there is none."""
    above = (p for p in file.resolve().parents if (p / "recipes").is_dir() and (p / "prompts").is_dir())
    return next(above, shipped_folder())


def split_name(name: str) -> tuple[str, str]:
    """The category and the name in `{category}/{name}`; raises RecipeNotFoundError for anything else (specification 000, section 9)."""
    match = _NAME.fullmatch(name)
    if not match:
        raise RecipeNotFoundError(f"{name[:80]!r}: not a recipe name: expected {{category}}/{{name}} in small letters, digits and _")
    if match[1] == ARCHIVE:
        raise RecipeNotFoundError(f"{name}: archived: expected a recipe outside recipes/{ARCHIVE}/")
    return match[1], match[2]


def own_name(name: str) -> str:
    """The name of the recipe that specification 000 calls `name`; raises RecipeNotFoundError where it is more than one recipe here."""
    category, _, stem = name.rpartition("/")
    names = OTHER_NAMES.get(stem, ()) if category in ("", "pipeline") else ()
    if len(names) > 1:
        raise RecipeNotFoundError(f"{name}: more than one recipe here: expected {' or '.join(names)}")
    return names[0] if names else name


def short_stem(stem: str) -> str:
    """A file's stem without its phase: `phase3_planner_chat` is `planner_chat`."""
    return _PHASE_PREFIX.sub("", stem)


def recipe_names(recipes: Path) -> tuple[str, ...]:
    """`{category}/{name}`, sorted, of every recipe that may be loaded."""
    # Every call lists them: os.scandir takes a fifth of the time of Path.glob.
    folders = [folder.name for folder in _entries(recipes) if folder.name != ARCHIVE and folder.is_dir()]
    files = ((folder, entry.name) for folder in folders for entry in _entries(recipes / folder))
    return tuple(f"{folder}/{name.removesuffix('.yaml')}" for folder, name in sorted(files) if name.endswith(".yaml"))


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
    """Files below `recipes/` that no loader reads: another suffix than `.yaml`, no category, or too deep. The archive is left out."""
    expected = {*recipe_files(recipes).values(), recipes / SCHEMA_FILE, recipes / REGISTRY_FILE}
    strays = sorted(p for p in recipes.rglob("*") if p.is_file() and p not in expected)
    return tuple(name for p in strays if not (name := p.relative_to(recipes).as_posix()).startswith(f"{ARCHIVE}/"))


def prompt_files(prompts: Path) -> dict[str, Path]:
    """`prompts/...`, as recipes name it -> file, sorted. The archive is left out."""
    files = sorted(prompts.rglob("*.md"))
    named = {f"prompts/{p.relative_to(prompts).as_posix()}": p for p in files}
    return {name: p for name, p in named.items() if not name.startswith(f"prompts/{ARCHIVE}/")}
