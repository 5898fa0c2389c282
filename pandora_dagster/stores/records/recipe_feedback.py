"""Feedback on recipes, in the folder of the user who gave it: corrections, and recipe tests made from a user's calls."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.ports.measurement import Clock
from pandora_dagster.contracts.recipe_governance import Correction
from pandora_dagster.contracts.recipe_schema import RecipeTest
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.errors import InputError, UnknownTurnError
from pandora_dagster.stores.disk.erasure_intents import ErasureIntents
from pandora_dagster.stores.disk.files import path_inside
from pandora_dagster.stores.disk.layout import Layout, recipe_key
from pandora_dagster.stores.disk.record_files import RecordFiles
from pandora_dagster.stores.turns.commits import iso


class CorrectionFiles:
    """The Corrections port over `users/<user>/corrections/`. `random_hex(n)` gives n bytes as hex (`secrets.token_hex`)."""

    def __init__(self, root: Path, clock: Clock, random_hex: Callable[[int], str]) -> None:
        self._root, self._clock, self._random_hex = root, clock, random_hex
        pattern, names = "users/{user}/corrections/{id}.json", {"id": "cor_[0-9]{8}_[0-9]{6}_[0-9a-f]{8}"}
        self._files = RecordFiles(root, pattern, Correction, expected="a correction", names=names)

    def add(self, key: TurnKey, *, revision: int, phase: str, recipe: str, recipe_version: str, text: str, call_id: str = "") -> Correction:
        """Store a correction of a turn; raises StoreError, also while the user is erased, UnknownTurnError for a deleted turn."""
        now = self._clock()
        correction_id = f"cor_{now.strftime('%Y%m%d_%H%M%S')}_{self._random_hex(4)}"
        correction = Correction(
            id=correction_id,
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
        with ErasureIntents(self._root).keeping_erasure_out(key.user):
            if not path_inside(self._root, Layout(self._root).turn(key)).is_dir():
                raise UnknownTurnError(f"{key}: the turn was deleted: expected a turn that `pandora turns` lists")
            return self._files.put(correction, key.user, correction_id)

    def of_user(self, user: UserId) -> tuple[Correction, ...]:
        """The user's corrections, oldest first; raises DocumentError for a damaged file."""
        return tuple(self._files.all(user))


class RecipeTestFiles:
    """Recipe tests over `users/<user>/recipe_tests/<category>/<name>/<sha256>.json`: the same test is stored once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        pattern, names = "users/{user}/recipe_tests/{category}/{name}/{digest}.json", {"digest": "[0-9a-f]{64}"}
        self._files = RecordFiles(root, pattern, RecipeTest, expected="a recipe test", names=names, exclude_defaults=True)

    def add(self, user: UserId, recipe: str, test: RecipeTest) -> Path:
        """Store a test and return its path; raises StoreError, also while the user is erased, InputError for a deleted user."""
        key = user, *recipe_key(recipe), sha256(self._files.encode(test)).hexdigest()
        with ErasureIntents(self._root).keeping_erasure_out(user):
            if not path_inside(self._root, Layout(self._root).user(user)).is_dir():
                raise InputError(f"user {user}: was deleted: expected a user who has turns")
            if not self._files.exists(*key):
                self._files.put(test, *key)
        return Path(self._files.locate(*key))

    def of_user(self, user: UserId, recipe: str) -> tuple[RecipeTest, ...]:
        """The user's tests of a recipe, by name; raises DocumentError naming a damaged file."""
        return tuple(sorted(self._files.all(user, *recipe_key(recipe)), key=lambda test: test.name))
