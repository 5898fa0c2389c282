"""What the commands that govern recipes work with. Opens no runtime and no index."""

from dataclasses import dataclass

from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.ports import TokenMeasure, ModelRuntime
from pandora_dagster.contracts.recipe_tests import RecipeTest
from pandora_dagster.contracts.recipes import LoadedRecipe
from pandora_dagster.cookbook import RecipeLoader
from pandora_dagster.errors import InputError
from pandora_dagster.governance.promotion import PromotionContext, resolve_version
from pandora_dagster.governance.testing import RecipeTestOutcome, run_recipe_tests
from pandora_dagster.phases.readers import answer_model
from pandora_dagster.settings import Settings
from pandora_dagster.stores.recipe_tests import RecipeTestFiles
from pandora_dagster.stores.recipe_versions import RecipeVersionFiles
from pandora_dagster.wiring.building import utc_now, open_recipe_loader, open_counter, open_versions
from pandora_dagster.wiring.trying import open_dry_run


@dataclass(frozen=True, slots=True)
class RecipeAdmin:
    """The recipes as files, the versions that ran, and who may change what is in production."""

    shelf: RecipeLoader
    """The files alone: what stands over them is the desk's to say."""
    cookbook: RecipeLoader
    """The same as it is in production."""
    versions: RecipeVersionFiles
    ctx: PromotionContext
    counter: TokenMeasure

    def find(self, text: str) -> tuple[str, LoadedRecipe]:
        """`NAME@VERSION` as `{category}/{name}` and the version; without one what is in production. Raises InputError."""
        name, _, version = text.partition("@")
        recipe = self.shelf.path_of(name)
        return recipe, resolve_version(self.ctx, recipe, version or "production")


def open_recipe_admin(settings: Settings) -> RecipeAdmin:
    """Built from settings; nothing is written."""
    shelf, versions = open_recipe_loader(settings), open_versions(settings)
    production = open_recipe_loader(settings, versions)
    return RecipeAdmin(shelf, production, versions, PromotionContext(versions, shelf.load_file, answer_model, utc_now), open_counter(settings))


def two_versions(governing: RecipeAdmin, old: str, new: str) -> tuple[LoadedRecipe, LoadedRecipe]:
    """Two versions to compare: `NAME@VERSION` each, the second one a version of the first's recipe where it names no recipe."""
    recipe, before = governing.find(old)
    if "@" in new or "/" in new:
        return before, governing.find(new)[1]
    if not new:
        return before, resolve_version(governing.ctx, recipe, "production")
    try:
        return before, resolve_version(governing.ctx, recipe, new)
    except InputError as error:
        raise InputError(f"{error}", hint="expected NAME@VERSION, a version of the same recipe, file or production") from error


def run_tests(
    settings: Settings, governing: RecipeAdmin, name: str = "", *, user: str = "", runtime: ModelRuntime | None = None
) -> tuple[RecipeTestOutcome, ...]:
    """The tests of one recipe (`NAME` or `NAME@VERSION`), or of all, on what is in production unless a version is named.

    A version is tried with the tests that its file has now, and with those made of calls of `user`.
    Raises InputError, ConfigurationError.
    """
    chosen = [governing.find(name)] if name else [(one, resolve_version(governing.ctx, one, "production")) for one in governing.shelf.names()]
    trying = open_dry_run(settings, governing.cookbook, governing.counter, runtime=runtime)
    try:
        return tuple(
            outcome
            for recipe, version in chosen
            for outcome in trying.run(run_recipe_tests(version, _tests(settings, governing, recipe, user), trying.bench))
        )
    finally:
        trying.close()


def _tests(settings: Settings, governing: RecipeAdmin, recipe: str, user: str) -> tuple[RecipeTest, ...]:
    own = governing.shelf.load_with_tests(recipe).recipe.tests
    return (*own, *RecipeTestFiles(settings.root).of_user(user_id(user), recipe)) if user else own
