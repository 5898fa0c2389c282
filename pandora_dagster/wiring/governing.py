"""What the commands that govern recipes work with. Opens no runtime and no index."""

from dataclasses import dataclass

from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.ports import CountsTokens, ModelRuntime
from pandora_dagster.contracts.recipe_tests import RecipeTest
from pandora_dagster.contracts.recipes import LoadedRecipe
from pandora_dagster.cookbook import Shelf
from pandora_dagster.errors import InputError
from pandora_dagster.governance.promotion import VersionDesk, resolved
from pandora_dagster.governance.testing import Outcome, tested
from pandora_dagster.phases.readers import reader_of
from pandora_dagster.settings import Settings
from pandora_dagster.stores.recipe_tests import RecipeTestFiles
from pandora_dagster.stores.recipe_versions import RecipeVersionFiles
from pandora_dagster.wiring.building import now, open_cookbook, open_counter, open_versions
from pandora_dagster.wiring.trying import open_trying


@dataclass(frozen=True, slots=True)
class Governing:
    """The recipes as files, the versions that ran, and who may change what is in production."""

    shelf: Shelf
    """The files alone: what stands over them is the desk's to say."""
    cookbook: Shelf
    """The same as it is in production."""
    versions: RecipeVersionFiles
    desk: VersionDesk
    counter: CountsTokens

    def named(self, text: str) -> tuple[str, LoadedRecipe]:
        """`NAME@VERSION` as `{category}/{name}` and the version; without one what is in production. Raises InputError."""
        name, _, version = text.partition("@")
        recipe = self.shelf.path_of(name)
        return recipe, resolved(self.desk, recipe, version or "production")


def open_governing(settings: Settings) -> Governing:
    """Built from settings; nothing is written."""
    shelf, versions = open_cookbook(settings), open_versions(settings)
    production = open_cookbook(settings, versions)
    return Governing(shelf, production, versions, VersionDesk(versions, shelf.load_file, reader_of, now), open_counter(settings))


def two_versions(governing: Governing, old: str, new: str) -> tuple[LoadedRecipe, LoadedRecipe]:
    """Two versions to compare: `NAME@VERSION` each, the second one a version of the first's recipe where it names no recipe."""
    recipe, before = governing.named(old)
    if "@" in new or "/" in new:
        return before, governing.named(new)[1]
    if not new:
        return before, resolved(governing.desk, recipe, "production")
    try:
        return before, resolved(governing.desk, recipe, new)
    except InputError as error:
        raise InputError(f"{error}", hint="expected NAME@VERSION, a version of the same recipe, file or production") from error


def tests_run(
    settings: Settings, governing: Governing, name: str = "", *, user: str = "", runtime: ModelRuntime | None = None
) -> tuple[Outcome, ...]:
    """The tests of one recipe (`NAME` or `NAME@VERSION`), or of all, on what is in production unless a version is named.

    A version is tried with the tests that its file has now, and with those made of calls of `user`.
    Raises InputError, ConfigurationError.
    """
    chosen = [governing.named(name)] if name else [(one, resolved(governing.desk, one, "production")) for one in governing.shelf.names()]
    trying = open_trying(settings, governing.cookbook, governing.counter, runtime=runtime)
    try:
        return tuple(
            outcome
            for recipe, version in chosen
            for outcome in trying.run(tested(version, _tests(settings, governing, recipe, user), trying.bench))
        )
    finally:
        trying.close()


def _tests(settings: Settings, governing: Governing, recipe: str, user: str) -> tuple[RecipeTest, ...]:
    own = governing.shelf.load_whole(recipe).recipe.tests
    return (*own, *RecipeTestFiles(settings.root).of_user(user_id(user), recipe)) if user else own
