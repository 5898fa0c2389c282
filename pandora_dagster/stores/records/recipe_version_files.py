"""The versions of each recipe that ever ran, and the one in production: `<root>/recipes/<category>/<name>/`.

A version is one file, named by its hash and never changed; only `production.json` changes, under a lock, and `calibration.json`.
"""

import re
from pathlib import Path

from pandora_dagster.contracts.ports.measurement import Clock
from pandora_dagster.contracts.recipe_governance import ProductionChange, RecipeCalibration, RecipeProduction
from pandora_dagster.contracts.recipe_schema import LoadedRecipe
from pandora_dagster.errors import ConfigurationError, DocumentError, InputError, StoreError
from pandora_dagster.recipes.version_text import read_version, version_text
from pandora_dagster.stores.disk.files import disk_errors, encode_text, path_inside, read_text, write_atomic
from pandora_dagster.stores.disk.layout import Layout, recipe_key
from pandora_dagster.stores.disk.record_files import RecordFiles
from pandora_dagster.stores.turns.commits import iso

_VERSION = re.compile(r"[0-9a-f]{12}")
_VERSION_PREFIX = re.compile(r"[0-9a-f]{4,12}")


class RecipeVersionFiles:
    """The RecipeVersionStore port below one store root."""

    def __init__(self, root: Path, *, clock: Clock, lock_seconds: float = 10.0) -> None:
        self._layout = Layout(root)
        self._clock = clock
        pattern, lock = "recipes/{category}/{name}/production.json", "recipes/{category}/{name}/.lock"
        expected = "a record of what is in production"
        self._production = RecordFiles(root, pattern, RecipeProduction, expected=expected, lock=lock, lock_seconds=lock_seconds)
        self._calibrations = RecordFiles(
            root, "recipes/{category}/{name}/calibration.json", RecipeCalibration, expected="a record of stated confidence and outcomes"
        )
        self._last_kept: dict[str, str] = {}
        """Recipe -> the version that this process kept last."""
        self._production_cache: dict[Path, tuple[tuple[int, int, int], RecipeProduction]] = {}
        """`production.json` -> its time, size and inode, and its content."""
        self._version_cache: dict[tuple[str, str], LoadedRecipe] = {}

    def keep(self, loaded: LoadedRecipe) -> None:
        """Store a version that is not stored yet, or is damaged, and add it to the history where it is new in production."""
        if self._last_kept.get(loaded.path) == loaded.version and not _is_new_version(loaded, self.production(loaded.path)):
            return
        path, text = self._path(loaded.path, loaded.version), version_text(loaded)
        if not _file_has_text(path, text):
            write_atomic(path, encode_text(path.name, text))
        if _is_new_version(loaded, self.production(loaded.path)):
            with self._production.lock(*recipe_key(loaded.path), what=f"the versions of {loaded.path}"):
                production = self._read_production(loaded.path)
                if _is_new_version(loaded, production):
                    change = ProductionChange(
                        at=iso(self._clock()), kind="file", version=loaded.version, before=production.version, layer=production.layer
                    )
                    self._write(loaded.path, production, change, pinned="")
        self._last_kept[loaded.path] = loaded.version

    def production(self, recipe: str) -> RecipeProduction:
        """The content of `production.json`; read again only when the file changed. Raises ConfigurationError where it is damaged."""
        path = Path(self._production.locate(*recipe_key(recipe)))
        try:
            status = path.stat()
        except FileNotFoundError:
            return RecipeProduction(recipe=recipe)
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        cached = self._production_cache.get(path)
        if cached is None or cached[0] != stamp:
            cached = self._production_cache[path] = (stamp, self._read_production(recipe))
        return cached[1]

    def version(self, recipe: str, version: str) -> LoadedRecipe:
        """A kept version by the first digits of its hash (4 at least), its content verified against its hash."""
        key = recipe, self._full_hash(recipe, version)
        if key not in self._version_cache:
            self._version_cache[key] = self._load_version(*key)
        return self._version_cache[key]

    def versions(self, recipe: str) -> tuple[str, ...]:
        """The kept versions, by hash; `faults` checks their content."""
        folder = self._folder(recipe)
        return tuple(sorted(p.stem for p in folder.glob("*.json") if _VERSION.fullmatch(p.stem))) if folder.is_dir() else ()

    def change(self, recipe: str, change: ProductionChange, *, since: RecipeProduction, pinned: str) -> RecipeProduction:
        """Append a change of what is in production to the history, with `change.before` filled in.

        Raises InputError where another process changed it after the caller read `since`.
        """
        with self._production.lock(*recipe_key(recipe), what=f"the versions of {recipe}"):
            production = self._read_production(recipe)
            if production != since:
                raise InputError(
                    _conflict_message(recipe, production), hint=f"look again with pandora recipes history {recipe}, then decide"
                )
            return self._write(recipe, production, change.model_copy(update={"before": production.version}), pinned=pinned)

    def calibration(self, recipe: str) -> RecipeCalibration:
        """The content of `calibration.json`; without tables where it is missing or damaged, which `faults` names."""
        try:
            return self._calibrations.find(*recipe_key(recipe)) or RecipeCalibration(recipe=recipe)
        except (DocumentError, StoreError):
            return RecipeCalibration(recipe=recipe)

    def keep_calibration(self, calibration: RecipeCalibration) -> None:
        """Replace `calibration.json`; raises StoreError."""
        self._calibrations.put(calibration, *recipe_key(calibration.recipe))

    def faults(self) -> tuple[str, ...]:
        """One sentence for each damaged version or record, with its file."""
        return tuple(fault for recipe in self._recipes() for fault in self._faults_of(recipe))

    def _faults_of(self, recipe: str) -> list[str]:
        faults: list[str] = []
        try:
            production = self._read_production(recipe)
        except ConfigurationError as error:
            faults.append(str(error))
        else:
            production_versions = {change.version for change in production.history} | (
                {production.pinned} if production.pinned else set[str]()
            )
            missing = sorted(production_versions - set(self.versions(recipe)))
            faults += [f"{self._path(recipe, version)}: missing: expected a version that ran" for version in missing]
        for version in self.versions(recipe):
            try:
                self._load_version(recipe, version)
            except DocumentError as error:
                faults.append(str(error))
        try:
            self._calibrations.find(*recipe_key(recipe))
        except (DocumentError, StoreError) as error:
            faults.append(str(error))
        return faults

    def _full_hash(self, recipe: str, version: str) -> str:
        """The whole hash of a kept version by its first digits; raises InputError where none fits, or several."""
        versions = self.versions(recipe)
        if not _VERSION_PREFIX.fullmatch(version):
            raise InputError(
                f"{recipe}: version {version[:40]!r}: expected 4 to 12 digits of a hash, such as {versions[0] if versions else '3fd9c2'}"
            )
        matches = [full_hash for full_hash in versions if full_hash.startswith(version)]
        if len(matches) > 1:
            raise InputError(f"{recipe}: version {version} is ambiguous: {', '.join(matches)}: expected more digits")
        if not matches:
            expected = f"one of {', '.join(versions)}" if versions else "one that ran, and none has yet"
            raise InputError(f"{recipe}: version {version} is not kept: expected {expected}", hint=f"pandora recipes history {recipe}")
        return matches[0]

    def _load_version(self, recipe: str, version: str) -> LoadedRecipe:
        """A kept version from its file; raises DocumentError where it is damaged."""
        path = self._path(recipe, version)
        return read_version(read_text(path), path=recipe, version=version, where=str(path))

    def _read_production(self, recipe: str) -> RecipeProduction:
        """The content of `production.json`, empty where it is missing; raises ConfigurationError where it is damaged."""
        key = recipe_key(recipe)
        path = self._production.locate(*key)
        try:
            production = self._production.find(*key)
        except DocumentError as error:
            hint = f"correct {path}, or move it out of the store: then the recipe's file is what runs"
            raise ConfigurationError(str(error), hint=hint) from error
        if production and production.recipe != recipe:
            raise ConfigurationError(
                f"{path}: it describes {production.recipe}: expected {recipe}", hint="move the file to the folder of its recipe"
            )
        return production or RecipeProduction(recipe=recipe)

    def _write(self, recipe: str, before: RecipeProduction, change: ProductionChange, *, pinned: str) -> RecipeProduction:
        history = (*before.history, change)
        production = RecipeProduction(recipe=recipe, pinned=pinned, layer=change.layer, history=history)
        return self._production.put(production, *recipe_key(recipe))

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


def _conflict_message(recipe: str, production: RecipeProduction) -> str:
    last = production.history[-1] if production.history else None
    change = f"{last.who or 'a call'} put {last.version} into production ({last.kind})" if last else "its record was deleted"
    return f"{recipe}: what is in production changed meanwhile: {change}: expected no change since it was read"


def _file_has_text(path: Path, text: str) -> bool:
    try:
        return read_text(path) == text
    except DocumentError:
        return False
