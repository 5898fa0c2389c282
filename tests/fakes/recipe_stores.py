"""Stores about recipes in memory: versions and what is in production, corrections, tests made from calls."""

import re
from collections import defaultdict
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.ports.measurement import Clock
from pandora_dagster.contracts.recipe_governance import Correction, ProductionChange, RecipeCalibration, RecipeProduction
from pandora_dagster.contracts.recipe_schema import LoadedRecipe, RecipeTest
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.errors import ConfigurationError, DocumentError, InputError, StoreError, UnknownTurnError
from pandora_dagster.recipes.version_text import read_version, version_text
from pandora_dagster.stores.turns.commits import iso
from tests.fakes.turn_store import utc_now

R = TypeVar("R", bound=BaseModel)
_DIGITS = re.compile(r"[0-9a-f]{4,12}")


@dataclass
class MemoryRecipeVersions:
    """`RecipeVersionStore` over dictionaries: the texts of versions, and of the records of production, so that a test can damage one."""

    clock: Clock = utc_now
    lock_seconds: float = 10.0
    texts: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    records: dict[str, str] = field(default_factory=dict[str, str])
    calibrations: dict[str, RecipeCalibration] = field(default_factory=dict[str, RecipeCalibration])
    locks: defaultdict[str, Lock] = field(default_factory=lambda: defaultdict(Lock))

    def keep(self, loaded: LoadedRecipe) -> None:
        self.texts[loaded.path, loaded.version] = version_text(loaded)
        with self._locked(loaded.path):
            known = self.production(loaded.path)
            if not known.pinned and known.version != loaded.version:
                change = ProductionChange(at=iso(self.clock()), kind="file", version=loaded.version, layer=known.layer)
                self._append(known, change, pinned="")

    def production(self, recipe: str) -> RecipeProduction:
        if (text := self.records.get(recipe)) is None:
            return RecipeProduction(recipe=recipe)
        try:
            found = RecipeProduction.model_validate_json(text)
        except ValidationError as error:
            raise ConfigurationError(f"{recipe}: {error.error_count()} faults: expected a record of what is in production") from error
        if found.recipe != recipe:
            raise ConfigurationError(f"{recipe}: its record describes {found.recipe}: expected {recipe}")
        return found

    def version(self, recipe: str, version: str) -> LoadedRecipe:
        if not _DIGITS.fullmatch(version):
            raise InputError(f"{recipe}: version {version[:40]!r}: expected 4 to 12 digits of a hash")
        found = [known for known in self.versions(recipe) if known.startswith(version)]
        if len(found) != 1:
            raise InputError(f"{recipe}: version {version} fits {len(found)} kept versions: expected one")
        return self._read(recipe, found[0])

    def versions(self, recipe: str) -> tuple[str, ...]:
        return tuple(sorted(version for owner, version in self.texts if owner == recipe))

    def change(self, recipe: str, change: ProductionChange, *, since: RecipeProduction, pinned: str) -> RecipeProduction:
        with self._locked(recipe):
            known = self.production(recipe)
            if known != since:
                raise InputError(f"{recipe}: what is in production changed meanwhile: expected no change since it was read")
            return self._append(known, change, pinned=pinned)

    def calibration(self, recipe: str) -> RecipeCalibration:
        return self.calibrations.get(recipe, RecipeCalibration(recipe=recipe))

    def keep_calibration(self, calibration: RecipeCalibration) -> None:
        self.calibrations[calibration.recipe] = calibration

    def faults(self) -> Sequence[str]:
        faults: list[str] = []
        for recipe in sorted({*self.records, *(owner for owner, _ in self.texts)}):
            try:
                standing = self.production(recipe)
            except ConfigurationError as error:
                faults.append(str(error))
            else:
                named = {standing.pinned, *(change.version for change in standing.history)} - {"", *self.versions(recipe)}
                faults += [f"{recipe}@{version}: missing: expected a version that ran" for version in sorted(named)]
            for version in self.versions(recipe):
                try:
                    self._read(recipe, version)
                except DocumentError as error:
                    faults.append(str(error))
        return faults

    @contextmanager
    def _locked(self, recipe: str) -> Generator[None]:
        if not self.locks[recipe].acquire(timeout=self.lock_seconds):
            raise StoreError(f"{recipe}: another process works on its versions: expected them to be free")
        try:
            yield
        finally:
            self.locks[recipe].release()

    def _append(self, known: RecipeProduction, change: ProductionChange, *, pinned: str) -> RecipeProduction:
        history = (*known.history, change.model_copy(update={"before": known.version}))
        made = RecipeProduction(recipe=known.recipe, pinned=pinned, layer=change.layer, history=history)
        self.records[known.recipe] = made.model_dump_json()
        return made

    def _read(self, recipe: str, version: str) -> LoadedRecipe:
        return read_version(self.texts[recipe, version], path=recipe, version=version, where=f"{recipe}@{version}")


@dataclass
class MemoryCorrections:
    """`Corrections` over a dictionary: user and id -> the JSON of a correction. `turns` are those that exist."""

    turns: set[TurnKey] = field(default_factory=set[TurnKey])
    erasing: set[UserId] = field(default_factory=set[UserId])
    clock: Clock = utc_now
    texts: dict[tuple[UserId, str], str] = field(default_factory=dict[tuple[UserId, str], str])

    def add(self, key: TurnKey, *, revision: int, phase: str, recipe: str, recipe_version: str, text: str, call_id: str = "") -> Correction:
        now = self.clock()
        made = Correction(
            id=f"cor_{now:%Y%m%d_%H%M%S}_{len(self.texts):08x}",
            user_id=key.user,
            turn_id=key.turn_id,
            revision=revision,
            phase=phase,
            recipe=recipe,
            recipe_version=recipe_version,
            call_id=call_id,
            said=redact(text),
            at=iso(now),
        )
        _refuse_erased(key.user, self.erasing)
        if key not in self.turns:
            raise UnknownTurnError(f"{key}: the turn was deleted: expected a turn that exists")
        self.texts[key.user, made.id] = made.model_dump_json()
        return made

    def of_user(self, user: UserId) -> tuple[Correction, ...]:
        found = sorted((number, text) for (owner, number), text in self.texts.items() if owner == user)
        return tuple(_parsed(text, Correction, where=f"{user}/{number}") for number, text in found)


@dataclass
class MemoryRecipeTests:
    """`RecipeTestStore` over a dictionary: place -> the JSON of a test. `users` are those who exist."""

    users: set[UserId] = field(default_factory=set[UserId])
    erasing: set[UserId] = field(default_factory=set[UserId])
    texts: dict[Path, str] = field(default_factory=dict[Path, str])

    def add(self, user: UserId, recipe: str, test: RecipeTest) -> Path:
        _refuse_erased(user, self.erasing)
        if user not in self.users:
            raise InputError(f"user {user}: is gone: expected one who has turns")
        text = test.model_dump_json(exclude_defaults=True)
        path = _folder(user, recipe) / f"{sha256(text.encode()).hexdigest()}.json"
        self.texts.setdefault(path, text)
        return path

    def of_user(self, user: UserId, recipe: str) -> tuple[RecipeTest, ...]:
        own = [(path, text) for path, text in self.texts.items() if path.parent == _folder(user, recipe)]
        return tuple(sorted((_parsed(text, RecipeTest, where=str(path)) for path, text in own), key=lambda test: test.name))


def _folder(user: UserId, recipe: str) -> Path:
    return Path("memory", user, recipe)


def _refuse_erased(user: UserId, erasing: set[UserId]) -> None:
    if user in erasing:
        raise StoreError(f"user {user}: is being erased: expected a user who is not")


def _parsed(text: str, kind: type[R], *, where: str) -> R:
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        raise DocumentError(f"{where}: {error.error_count()} faults: expected a {kind.__name__}") from error
