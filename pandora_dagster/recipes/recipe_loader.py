"""The recipe loader: the `RecipeCatalog` port over recipe files. Finds the file of a name and caches what it has read."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pandora_dagster.contracts.enums import ContentType, Mode, ModelLayer
from pandora_dagster.contracts.recipe_schema import LoadedRecipe
from pandora_dagster.errors import RecipeNotFoundError, RecipeValidationError
from pandora_dagster.recipes.recipe_paths import POLICY, prompt_files, recipe_files, recipe_names, recipes_root, short_stem, split_name
from pandora_dagster.recipes.recipe_reader import read_recipe
from pandora_dagster.recipes.yaml_source import FileStamp, SourceFault, file_stamp, read_text
from pandora_dagster.shipped import shipped_folder

_NAME_LINE = re.compile(r"^name:[ \t]*['\"]?([\w-]+)", re.MULTILINE | re.ASCII)
_NO_FILE: FileStamp = (0, 0, -1, 0)


@dataclass(frozen=True, slots=True)
class RecipeOverride:
    """What overrides a recipe's file: an older version, another layer, or nothing."""

    pinned: LoadedRecipe | None = None
    layer: ModelLayer | None = None


_CachedRecipe = tuple[LoadedRecipe, dict[Path, FileStamp]]
"""A recipe as it was read, and the stamps of the files it came from."""


class RecipeLoader:
    """Loads recipes (000 sections 9, 17, 18): no fallback, no archive; an edited file is seen, an unchanged one is read once."""

    def __init__(self, recipes: Path, prompts: Path, production: Callable[[str], RecipeOverride] | None = None) -> None:
        """`production`: what overrides the file of `{category}/{name}`; without it the files are what runs."""
        self.recipes = recipes
        self.prompts = prompts
        self._production = production
        self._kept: dict[str, _CachedRecipe] = {}
        self._recipe_names: dict[Path, tuple[FileStamp, str]] = {}
        self._files: dict[str, Path] = {}

    def names(self) -> tuple[str, ...]:
        """`{category}/{name}` of every recipe file."""
        return recipe_names(self.recipes)

    def load(self, name: str) -> LoadedRecipe:
        """The recipe `{category}/{name}` that is in production: its file, unless an older version or another layer was put over it.

        Raises RecipeNotFoundError, RecipeValidationError with all its faults.
        """
        return self._load(name, self._list_files())

    def load_file(self, name: str) -> LoadedRecipe:
        """The recipe `{category}/{name}` as its file has it, without its tests; raises like `load`."""
        return self._from_file("/".join(split_name(name)), self._list_files())

    def load_with_tests(self, name: str) -> LoadedRecipe:
        """The same with its tests, read again; raises like `load`, also for what is wrong with a test."""
        files = self._list_files()
        path = self._from_file("/".join(split_name(name)), files).path
        return read_recipe(files[path], self.prompts, path=path, shown=f"recipes/{path}.yaml")

    def _load(self, name: str, files: "_RecipeListing") -> LoadedRecipe:
        path = "/".join(split_name(name))
        override = self._production(path) if self._production else RecipeOverride()
        loaded = override.pinned or self._from_file(path, files)
        return loaded.model_copy(update={"assigned": override.layer}) if override.layer else loaded

    def _from_file(self, path: str, files: "_RecipeListing") -> LoadedRecipe:
        if path not in files:
            raise RecipeNotFoundError(
                f"{path}: no recipe: expected the file {self.recipes / path}.yaml", hint="`pandora recipes list` names them all"
            )
        if others := files.sharing(path):
            name = self._recipe_name(files[path])
            raise RecipeValidationError(
                [f"recipes/{path}.yaml:1: name: {name} is also the name of {', '.join(others)}: expected a unique name"]
            )
        kept = self._kept.get(path)
        if kept is None or any(_stamp(file) != stamp for file, stamp in kept[1].items()):
            kept = self._kept[path] = self._read_cached(path, files[path])
        return kept[0]

    def get(self, phase: str, mode: str) -> LoadedRecipe:
        """The variant for `mode` of `pipeline/phase3_planner`, `phase3_planner` or `planner`, else the recipe without a mode."""
        if mode not in tuple(Mode):
            raise RecipeNotFoundError(f"{mode!r}: not a mode: expected {' or '.join(Mode)}")
        files = self._list_files()
        for wanted in (f"{phase}_{mode}", phase):
            if found := _matching_file(wanted, files):
                loaded = self._load(found, files)
                if loaded.recipe.mode in (None, mode):
                    return loaded
        raise RecipeNotFoundError(f"{phase}: no recipe for mode {mode}: expected one in {self.recipes}")

    def path_of(self, name: str) -> str:
        """`{category}/{name}` of a recipe that a user names by that, by its stem with or without its phase, or by its own name."""
        files = self._list_files()
        found = _matching_file(name, files) or next((n for n, f in files.items() if self._recipe_name(f) == name), None)
        if found is None:
            raise RecipeNotFoundError(
                f"{name[:80]}: no recipe: expected one in {self.recipes}", hint="`pandora recipes list` names them all"
            )
        return found

    def compressor(self, content_type: ContentType) -> LoadedRecipe:
        """The one recipe in `compression/` for a content type (000 section 23)."""
        files = self._list_files()
        shelved = (self._load(n, files) for n in files if n.startswith("compression/"))
        fitting = [loaded for loaded in shelved if loaded.recipe.content_type is content_type]
        if len(fitting) != 1:
            names = ", ".join(loaded.path for loaded in fitting) or "none"
            raise RecipeNotFoundError(f"content type {content_type}: {names}: expected exactly one recipe in compression/")
        return fitting[0]

    def _list_files(self) -> "_RecipeListing":
        """The files as they lie there now. Every call asks for them: their paths are built once for as long as their names stay."""
        if self.names() != tuple(self._files):
            self._files = recipe_files(self.recipes)
        return _RecipeListing(self._files, self._recipe_name)

    def _read_cached(self, path: str, file: Path) -> _CachedRecipe:
        """Stamps are taken before the reading: a file edited meanwhile is read again."""
        before = {f: _stamp(f) for f in (file, *prompt_files(self.prompts).values())}
        loaded = read_recipe(file, self.prompts, path=path, shown=f"recipes/{path}.yaml", with_tests=False)
        named = [self.prompts / n.removeprefix("prompts/") for n in (POLICY, *(entry.path for entry, _ in loaded.prompts))]
        return loaded, {f: before.get(f, _NO_FILE) for f in (file, *named)}

    def _recipe_name(self, file: Path) -> str:
        stamp = _stamp(file)
        known = self._recipe_names.get(file)
        if known is None or known[0] != stamp:
            text = read_text(file)
            found = None if isinstance(text, SourceFault) else _NAME_LINE.search(text)
            known = self._recipe_names[file] = (stamp, found[1] if found else "")
        return known[1]


class _RecipeListing(dict[str, Path]):
    """The recipe files of one call, `{category}/{name}` -> file, each looked at once for the name that it says it has."""

    def __init__(self, files: dict[str, Path], name_of: Callable[[Path], str]) -> None:
        super().__init__(files)
        self._name_of = name_of

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path, file in self.items():
            found.setdefault(self._name_of(file), []).append(path)
        return found

    def sharing(self, path: str) -> tuple[str, ...]:
        """Other recipes of the same name. Names are unique (000 section 10.1): records identify recipes by them."""
        name = self._name_of(self[path])
        return tuple(other for other in self._by_name[name] if other != path) if name else ()


def _matching_file(wanted: str, files: Iterable[str]) -> str | None:
    """The one file that `wanted` names, with or without its category and its phase."""
    category, _, stem = wanted.rpartition("/")
    found = [name for name in files if name.endswith(stem) and _is_named(name, category, stem)]
    if len(found) > 1:
        raise RecipeNotFoundError(f"{wanted}: fits {', '.join(found)}: expected {{category}}/{{name}}")
    return found[0] if found else None


def _is_named(name: str, category: str, stem: str) -> bool:
    folder, _, own = name.rpartition("/")
    return category in ("", folder) and stem in (own, short_stem(own))


def _stamp(file: Path) -> FileStamp:
    try:
        return file_stamp(file)
    except OSError:
        return _NO_FILE


def open_recipes(folder: Path | None = None) -> RecipeLoader:
    """The recipes in `folder`, which holds `recipes/` and `prompts/`; the shipped one by default."""
    root = folder or shipped_folder()
    return RecipeLoader(root / "recipes", root / "prompts")


def load_recipe(name: str, folder: Path | None = None) -> LoadedRecipe:
    """`load_recipe("pipeline/phase3_planner_chat")` (000 section 9)."""
    return open_recipes(folder).load(name)


def get_recipe(phase: str, mode: str, folder: Path | None = None) -> LoadedRecipe:
    """`get_recipe("pipeline/phase3_planner", "chat")` (000 section 17)."""
    return open_recipes(folder).get(phase, mode)


def check_file(path: Path) -> tuple[str, ...]:
    """Every fault of one recipe file, wherever it lies, without the registry; empty for a sound one."""
    root = recipes_root(path)
    try:
        read_recipe(path, root / "prompts", path=str(path), shown=str(path))
    except RecipeValidationError as error:
        return error.faults
    return ()
