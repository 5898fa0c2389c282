"""The recipe loader, which implements the port `RecipeCatalog` over recipe files: finds the file of a name and caches what it has read.

An edited file is read again at the next call, an unchanged one is read once. A version pinned in production replaces the file.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pandora_dagster.contracts.enums import ContentType, Mode, ModelLayer
from pandora_dagster.contracts.recipe_schema import LoadedRecipe
from pandora_dagster.documents.plain_yaml import SourceFault
from pandora_dagster.errors import RecipeNotFoundError, RecipeValidationError
from pandora_dagster.recipes.recipe_paths import (
    POLICY_PROMPT,
    own_name,
    prompt_files,
    recipe_files,
    recipe_names,
    recipes_root,
    short_stem,
    split_name,
)
from pandora_dagster.recipes.recipe_reader import frame_files, read_recipe
from pandora_dagster.recipes.text_files import FileStamp, file_stamp, read_text
from pandora_dagster.shipped import shipped_folder

_NAME_LINE = re.compile(r"^name:[ \t]*['\"]?([\w-]+)", re.MULTILINE | re.ASCII)
_NO_FILE: FileStamp = (0, 0, -1, 0)


@dataclass(frozen=True, slots=True)
class RecipeOverride:
    """What replaces a recipe's file in production: an older version, another layer, or nothing."""

    pinned: LoadedRecipe | None = None
    layer: ModelLayer | None = None


_CachedRecipe = tuple[LoadedRecipe, dict[Path, FileStamp]]
"""A recipe as it was read, and the stamps of its files."""


class RecipeLoader:
    """Loads recipes (specification 000, sections 9, 17 and 18). A faulty recipe has no fallback."""

    def __init__(self, recipes: Path, prompts: Path, production: Callable[[str], RecipeOverride] | None = None) -> None:
        """`production`: `{category}/{name}` -> what replaces its file; without it every recipe is its file."""
        self.recipes = recipes
        self.prompts = prompts
        self._production = production
        self._cache: dict[str, _CachedRecipe] = {}
        self._recipe_names: dict[Path, tuple[FileStamp, str]] = {}
        self._files: dict[str, Path] = {}
        self._names: dict[str, str] = {}
        """`{category}/{name}` -> the field `name`, as of the last look at all files."""

    def names(self) -> tuple[str, ...]:
        """`{category}/{name}` of every recipe file."""
        return recipe_names(self.recipes)

    def load(self, name: str) -> LoadedRecipe:
        """The recipe `{category}/{name}` in production: its file, unless an older version or another layer replaces it.

        Raises RecipeNotFoundError, RecipeValidationError with all its faults.
        """
        return self._load(name, self._list_files())

    def load_file(self, name: str) -> LoadedRecipe:
        """The recipe `{category}/{name}` as its file has it, without its tests; raises like `load`."""
        return self._from_file("/".join(split_name(name)), self._list_files())

    def load_with_tests(self, name: str) -> LoadedRecipe:
        """The same with its tests, read again; raises like `load`, also for a faulty test."""
        files = self._list_files()
        path = self._from_file("/".join(split_name(name)), files).path
        return read_recipe(files[path], self.prompts, path=path, display_path=f"recipes/{path}.yaml")

    def _load(self, name: str, files: Mapping[str, Path]) -> LoadedRecipe:
        path = "/".join(split_name(name))
        path = path if path in files else own_name(path)
        override = self._production(path) if self._production else RecipeOverride()
        loaded = override.pinned or self._from_file(path, files)
        return loaded.model_copy(update={"assigned": override.layer}) if override.layer else loaded

    def _from_file(self, path: str, files: Mapping[str, Path]) -> LoadedRecipe:
        if path not in files:
            raise RecipeNotFoundError(
                f"{path}: no recipe: expected the file {self.recipes / path}.yaml", hint="`pandora recipes list` names them all"
            )
        if others := self._with_same_name(path, files):
            raise RecipeValidationError(
                [f"recipes/{path}.yaml:1: name: {self._names[path]} is also the name of {', '.join(others)}: expected a unique name"]
            )
        cached = self._cache.get(path)
        if cached is None or any(_stamp(file) != stamp for file, stamp in cached[1].items()):
            cached = self._cache[path] = self._read_stamped(path, files[path])
        return cached[0]

    def get(self, phase: str, mode: str) -> LoadedRecipe:
        """The variant for `mode` of `pipeline/phase3_planner`, `phase3_planner` or `planner`, else the recipe without a mode."""
        if mode not in tuple(Mode):
            raise RecipeNotFoundError(f"{mode!r}: not a mode: expected {' or '.join(Mode)}")
        files = self._list_files()
        for name in (f"{phase}_{mode}", phase):
            if path := _matching_path(name, files):
                loaded = self._load(path, files)
                if loaded.recipe.mode in (None, mode):
                    return loaded
        raise RecipeNotFoundError(f"{phase}: no recipe for mode {mode}: expected one in {self.recipes}")

    def path_of(self, name: str) -> str:
        """`{category}/{name}` of the recipe that a user names by it, by its stem with or without its phase, or by its field `name`."""
        files = self._list_files()
        path = _matching_path(name, files) or next((path for path, file in files.items() if self._recipe_name(file) == name), None)
        path = path or _matching_path(own_name(name), files)
        if path is None:
            raise RecipeNotFoundError(
                f"{name[:80]}: no recipe: expected one in {self.recipes}", hint="`pandora recipes list` names them all"
            )
        return path

    def compressor(self, content_type: ContentType) -> LoadedRecipe:
        """The one recipe in `compression/` for a content type (specification 000, section 23)."""
        files = self._list_files()
        compressors = (self._load(path, files) for path in files if path.startswith("compression/"))
        matching = [loaded for loaded in compressors if loaded.recipe.content_type is content_type]
        if len(matching) != 1:
            names = ", ".join(loaded.path for loaded in matching) or "none"
            raise RecipeNotFoundError(f"content type {content_type}: {names}: expected exactly one recipe in compression/")
        return matching[0]

    def _list_files(self) -> Mapping[str, Path]:
        """The recipe files as they are now, `{category}/{name}` -> file. Their paths are built again only where a name changed."""
        if self.names() != tuple(self._files):
            self._files, self._names = recipe_files(self.recipes), {}
        return self._files

    def _with_same_name(self, path: str, files: Mapping[str, Path]) -> tuple[str, ...]:
        """Other recipes of the same name. Names must be unique (specification 000, section 10.1): records identify recipes by them.

        All files are looked at again where this one has another name than before: a name that is given twice is found, at the latest, by
        the load of the file that took it.
        """
        name = self._recipe_name(files[path])
        if self._names.get(path) != name:
            self._names = {other: self._recipe_name(file) for other, file in files.items()}
        return tuple(other for other, taken in self._names.items() if taken == name and other != path) if name else ()

    def _read_stamped(self, path: str, file: Path) -> _CachedRecipe:
        """Read a recipe. Its stamps are taken before: a file that is edited meanwhile is read again at the next call."""
        stamps = {f: _stamp(f) for f in (file, *prompt_files(self.prompts).values())}
        loaded = read_recipe(file, self.prompts, path=path, display_path=f"recipes/{path}.yaml", with_tests=False)
        names = (POLICY_PROMPT, *(entry.path for entry, _ in loaded.prompts), *frame_files(loaded.recipe.output_format).values())
        prompts = [self.prompts / name.removeprefix("prompts/") for name in names]
        return loaded, {f: stamps.get(f, _NO_FILE) for f in (file, *prompts)}

    def _recipe_name(self, file: Path) -> str:
        """The field `name` of a recipe file; "" where it cannot be read."""
        stamp = _stamp(file)
        cached = self._recipe_names.get(file)
        if cached is None or cached[0] != stamp:
            text = read_text(file)
            match = None if isinstance(text, SourceFault) else _NAME_LINE.search(text)
            cached = self._recipe_names[file] = (stamp, match[1] if match else "")
        return cached[1]


def _matching_path(name: str, paths: Iterable[str]) -> str | None:
    """The one path `{category}/{name}` that `name` means, with or without its category and its phase; raises RecipeNotFoundError."""
    category, _, stem = name.rpartition("/")
    matching = [path for path in paths if path.endswith(stem) and _is_named(path, category, stem)]
    if len(matching) > 1:
        raise RecipeNotFoundError(f"{name}: matches {', '.join(matching)}: expected {{category}}/{{name}}")
    return matching[0] if matching else None


def _is_named(path: str, category: str, stem: str) -> bool:
    folder, _, file_stem = path.rpartition("/")
    return category in ("", folder) and stem in (file_stem, short_stem(file_stem))


def _stamp(file: Path) -> FileStamp:
    """The stamp of a file; `_NO_FILE` for a missing one."""
    try:
        return file_stamp(file)
    except OSError:
        return _NO_FILE


def open_recipes(folder: Path | None = None) -> RecipeLoader:
    """A loader of the recipes in `folder`, which contains `recipes/` and `prompts/`; by default of the shipped ones."""
    root = folder or shipped_folder()
    return RecipeLoader(root / "recipes", root / "prompts")


def load_recipe(name: str, folder: Path | None = None) -> LoadedRecipe:
    """`load_recipe("pipeline/phase3_planner_chat")` (specification 000, section 9)."""
    return open_recipes(folder).load(name)


def get_recipe(phase: str, mode: str, folder: Path | None = None) -> LoadedRecipe:
    """`get_recipe("pipeline/phase3_planner", "chat")` (specification 000, section 17)."""
    return open_recipes(folder).get(phase, mode)


def check_file(path: Path) -> tuple[str, ...]:
    """Every fault of one recipe file at any path, without the registry; empty for a valid one."""
    root = recipes_root(path)
    try:
        read_recipe(path, root / "prompts", path=str(path), display_path=str(path))
    except RecipeValidationError as error:
        return error.faults
    return ()
