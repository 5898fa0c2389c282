"""Every version of a recipe that ever ran, and which one is in production: `<root>/recipes/<category>/<name>/`.

A version is one file, named by its hash and never changed; only `production.json` changes, under a lock.
"""

import re
from pathlib import Path

from pandora_dagster.contracts.ports.measurement import Clock
from pandora_dagster.contracts.recipe_governance import ProductionChange, RecipeProduction
from pandora_dagster.contracts.recipe_schema import LoadedRecipe
from pandora_dagster.errors import ConfigurationError, DocumentError, InputError
from pandora_dagster.recipes.version_text import read_version, version_text
from pandora_dagster.stores.disk.files import disk_errors, encode_text, path_inside, read_text, write_atomic
from pandora_dagster.stores.disk.layout import Layout, recipe_key
from pandora_dagster.stores.disk.record_files import RecordFiles
from pandora_dagster.stores.turns.commits import iso

_VERSION = re.compile(r"[0-9a-f]{12}")
_BEGINNING = re.compile(r"[0-9a-f]{4,12}")


class RecipeVersionFiles:
    """The RecipeVersionStore port below one store root."""

    def __init__(self, root: Path, *, clock: Clock, lock_seconds: float = 10.0) -> None:
        self._layout = Layout(root)
        self._clock = clock
        pattern, lock = "recipes/{category}/{name}/production.json", "recipes/{category}/{name}/.lock"
        expected = "a record of what is in production"
        self._production = RecordFiles(root, pattern, RecipeProduction, expected=expected, lock=lock, lock_seconds=lock_seconds)
        self._ran: dict[str, str] = {}
        """Recipe -> the stored version that this process ran last."""
        self._read: dict[Path, tuple[tuple[int, int, int], RecipeProduction]] = {}
        self._loaded: dict[tuple[str, str], LoadedRecipe] = {}

    def keep(self, loaded: LoadedRecipe) -> None:
        """Write a version that is not kept yet, or damaged (whole or not at all), and note it where it is new in production."""
        if self._ran.get(loaded.path) == loaded.version and not _is_new_version(loaded, self.production(loaded.path)):
            return
        path, text = self._path(loaded.path, loaded.version), version_text(loaded)
        if not _holds(path, text):
            write_atomic(path, encode_text(path.name, text))
        if _is_new_version(loaded, self.production(loaded.path)):
            with self._production.lock(*recipe_key(loaded.path), what=f"the versions of {loaded.path}"):
                known = self._read_production(loaded.path)
                if _is_new_version(loaded, known):
                    change = ProductionChange(
                        at=iso(self._clock()), kind="file", version=loaded.version, before=known.version, layer=known.layer
                    )
                    self._write(loaded.path, known, change, pinned="")
        self._ran[loaded.path] = loaded.version

    def production(self, recipe: str) -> RecipeProduction:
        """The content of `production.json`; read again only when it changed. Raises ConfigurationError where it is damaged."""
        path = Path(self._production.locate(*recipe_key(recipe)))
        try:
            about = path.stat()
        except FileNotFoundError:
            return RecipeProduction(recipe=recipe)
        stamp = (about.st_mtime_ns, about.st_size, about.st_ino)
        known = self._read.get(path)
        if known is None or known[0] != stamp:
            known = self._read[path] = (stamp, self._read_production(recipe))
        return known[1]

    def version(self, recipe: str, version: str) -> LoadedRecipe:
        """A kept version by the first digits of its hash (4 at least), its content verified against its name."""
        full = self._full_hash(recipe, version)
        if (recipe, full) not in self._loaded:
            self._loaded[recipe, full] = self._checked(recipe, full)
        return self._loaded[recipe, full]

    def versions(self, recipe: str) -> tuple[str, ...]:
        """The kept versions, by hash; whether each is sound is for `faults`."""
        folder = self._folder(recipe)
        return tuple(sorted(p.stem for p in folder.glob("*.json") if _VERSION.fullmatch(p.stem))) if folder.is_dir() else ()

    def change(self, recipe: str, change: ProductionChange, *, since: RecipeProduction, pinned: str) -> RecipeProduction:
        """Append to the history what is in production from now on; `change.before` is filled in. One process after the other."""
        with self._production.lock(*recipe_key(recipe), what=f"the versions of {recipe}"):
            known = self._read_production(recipe)
            if known != since:
                raise InputError(_conflict_message(recipe, known), hint=f"look again with pandora recipes history {recipe}, then decide")
            return self._write(recipe, known, change.model_copy(update={"before": known.version}), pinned=pinned)

    def faults(self) -> tuple[str, ...]:
        """What is wrong with each damaged version or record, naming its file."""
        return tuple(fault for recipe in self._recipes() for fault in self._faults_of(recipe))

    def _faults_of(self, recipe: str) -> list[str]:
        faults: list[str] = []
        try:
            production = self._read_production(recipe)
        except ConfigurationError as error:
            faults.append(str(error))
        else:
            named = {change.version for change in production.history} | ({production.pinned} if production.pinned else set[str]())
            gone = sorted(named - set(self.versions(recipe)))
            faults += [f"{self._path(recipe, version)}: missing: expected a version that ran" for version in gone]
        for version in self.versions(recipe):
            try:
                self._checked(recipe, version)
            except DocumentError as error:
                faults.append(str(error))
        return faults

    def _full_hash(self, recipe: str, version: str) -> str:
        kept = self.versions(recipe)
        if not _BEGINNING.fullmatch(version):
            raise InputError(
                f"{recipe}: version {version[:40]!r}: expected 4 to 12 digits of a hash, such as {kept[0] if kept else '3fd9c2'}"
            )
        found = [one for one in kept if one.startswith(version)]
        if len(found) > 1:
            raise InputError(f"{recipe}: version {version} is ambiguous: {', '.join(found)}: expected more digits")
        if not found:
            known = f"one of {', '.join(kept)}" if kept else "one that ran, and none has yet"
            raise InputError(f"{recipe}: version {version} is not kept: expected {known}", hint=f"pandora recipes history {recipe}")
        return found[0]

    def _checked(self, recipe: str, version: str) -> LoadedRecipe:
        path = self._path(recipe, version)
        return read_version(read_text(path), path=recipe, version=version, where=str(path))

    def _read_production(self, recipe: str) -> RecipeProduction:
        key = recipe_key(recipe)
        path = self._production.locate(*key)
        try:
            found = self._production.find(*key)
        except DocumentError as error:
            hint = f"correct {path}, or move it out of the store: then the recipe's file is what runs"
            raise ConfigurationError(str(error), hint=hint) from error
        if found and found.recipe != recipe:
            raise ConfigurationError(f"{path}: it describes {found.recipe}: expected {recipe}", hint="move the file where it belongs")
        return found or RecipeProduction(recipe=recipe)

    def _write(self, recipe: str, known: RecipeProduction, change: ProductionChange, *, pinned: str) -> RecipeProduction:
        history = (*known.history, change)
        made = RecipeProduction(recipe=recipe, pinned=pinned, layer=change.layer, history=history)
        return self._production.put(made, *recipe_key(recipe))

    def _recipes(self) -> list[str]:
        root = path_inside(self._layout.root, self._layout.recipes)
        with disk_errors(root, "cannot read"):
            folders = sorted(root.glob("*/*")) if root.is_dir() else []
        return [f"{folder.parent.name}/{folder.name}" for folder in folders if folder.is_dir()]

    def _folder(self, recipe: str) -> Path:
        return path_inside(self._layout.root, self._layout.recipe(recipe))

    def _path(self, recipe: str, version: str) -> Path:
        return self._folder(recipe) / f"{version}.json"


def _is_new_version(loaded: LoadedRecipe, production: RecipeProduction) -> bool:
    """Whether the running version differs from the history; never for a pinned one."""
    return not production.pinned and production.version != loaded.version


def _conflict_message(recipe: str, known: RecipeProduction) -> str:
    last = known.history[-1] if known.history else None
    change = f"{last.who or 'a call'} put {last.version} there ({last.kind})" if last else "its record is gone"
    return f"{recipe}: what is in production changed meanwhile: {change}: expected it as it was when this was decided"


def _holds(path: Path, text: str) -> bool:
    try:
        return read_text(path) == text
    except DocumentError:
        return False
