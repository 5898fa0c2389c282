"""Tests made of a person's calls: `users/<user>/recipe_tests/<category>/<name>/<digest>.json`, erased with their user. Knows files."""

import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.recipe_tests import RecipeTest
from pandora_dagster.errors import InputError
from pandora_dagster.stores.erasures import ErasureIntents
from pandora_dagster.stores.files import encode_text, path_inside, write_atomic
from pandora_dagster.stores.layout import Layout
from pandora_dagster.stores.model_files import read_json_record

_NAME = re.compile(r"[0-9a-f]{64}\.json")


@dataclass(frozen=True, slots=True)
class RecipeTestFiles:
    """The tests of one store. Content-addressed: the same test is kept once."""

    root: Path

    def add(self, user: UserId, recipe: str, test: RecipeTest) -> Path:
        """On the disk when this returns; raises StoreError, also while the user is erased, InputError for one who is gone."""
        data = encode_text("test", test.model_dump_json(exclude_defaults=True, indent=1) + "\n")
        path = path_inside(self.root, self._folder(user, recipe) / f"{sha256(data).hexdigest()}.json")
        with ErasureIntents(self.root).beginning(user):
            if not path_inside(self.root, Layout(self.root).user(user)).is_dir():
                raise InputError(f"user {user}: is gone: expected one who has turns")
            if not path.exists():
                write_atomic(path, data)
        return path

    def of_user(self, user: UserId, recipe: str) -> tuple[RecipeTest, ...]:
        """By name; raises DocumentError naming a damaged file."""
        folder = path_inside(self.root, self._folder(user, recipe))
        paths = sorted(p for p in folder.iterdir() if _NAME.fullmatch(p.name)) if folder.is_dir() else []
        found = [read_json_record(path_inside(self.root, path), RecipeTest, expected="a recipe test") for path in paths]
        return tuple(sorted(found, key=lambda test: test.name))

    def _folder(self, user: UserId, recipe: str) -> Path:
        layout = Layout(self.root)
        return layout.user(user) / "recipe_tests" / layout.recipe(recipe).relative_to(layout.recipes)
