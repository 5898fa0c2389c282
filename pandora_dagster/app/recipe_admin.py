"""What the commands that govern recipes work with. Opens no runtime and no index."""

import asyncio
import secrets
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pandora_dagster.app.composition import (
    open_compression_stack,
    open_counter,
    open_recipe_loader,
    open_runtime,
    open_versions,
    served_endpoints,
    utc_now,
)
from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.ports.model_runtime import ModelRuntime
from pandora_dagster.contracts.recipe_schema import LoadedRecipe, RecipeTest
from pandora_dagster.errors import InputError
from pandora_dagster.execution.call.executor import Executor
from pandora_dagster.execution.fit.call_budget import CallLimit
from pandora_dagster.execution.fit.compression_log import EMBEDDED
from pandora_dagster.governance.dry_run import CallCapture, DryRunExecutor, PinnedRecipeLoader
from pandora_dagster.governance.promotion import PromotionContext, resolve_version
from pandora_dagster.governance.recipe_test_run import RecipeTestOutcome, run_recipe_tests
from pandora_dagster.phases.flow.answer_models import answer_model
from pandora_dagster.recipes import RecipeLoader, check_all, check_file, write_registry, write_schema_file
from pandora_dagster.settings import Settings
from pandora_dagster.stores.records.recipe_version_files import RecipeTestFiles, RecipeVersionFiles
from pandora_dagster.tools.tool_registry import TOOL_NAMES

# The cookbook as the command line looks after it: checked, listed, generated. Opens no store and no runtime.

__all__ = ["RecipeCheckResult", "check_files", "check_recipes", "open_recipe_loader", "recipe_rows", "write_generated"]


@dataclass(frozen=True, slots=True)
class RecipeCheckResult:
    """What a check found: `count` recipes looked at."""

    count: int
    faults: tuple[str, ...]
    notices: tuple[str, ...] = ()


def check_recipes(settings: Settings) -> RecipeCheckResult:
    """The whole cookbook: recipes, prompts, registry and schema."""
    shelf = open_recipe_loader(settings)
    checked = check_all(shelf, TOOL_NAMES, open_counter(settings))
    return RecipeCheckResult(len(shelf.names()), checked.faults, checked.notices)


def check_files(settings: Settings, files: Sequence[Path]) -> RecipeCheckResult:
    """These files alone, wherever they lie, without the registry."""
    return RecipeCheckResult(len(files), tuple(fault for file in files for fault in check_file(file)))


def write_generated(settings: Settings) -> None:
    """Generate `registry.yaml` and `schema.json` from the recipe files."""
    shelf = open_recipe_loader(settings)
    write_schema_file(shelf)
    write_registry(shelf, open_counter(settings))


def recipe_rows(settings: Settings) -> list[dict[str, Any]]:
    """One row a recipe as it is in production, for a table."""
    shelf = open_recipe_loader(settings, open_versions(settings))
    return [_row(shelf, name) for name in shelf.names()]


def _row(shelf: RecipeLoader, name: str) -> dict[str, Any]:
    loaded = shelf.load(name)
    recipe, budget = loaded.recipe, loaded.recipe.token_budget
    return {
        "recipe": name,
        "layer": loaded.layer.value,
        "mode": recipe.mode.value if recipe.mode else "",
        **budget.model_dump(),
        "version": loaded.version,
    }


# A bench over the runtime that the settings name: versions are tried on it, and the store is not touched.

T = TypeVar("T")
_AT_ONCE = 8
"""Calls under way at a server; the embedded runtime answers one after the other."""


@dataclass(frozen=True, slots=True)
class DryRun:
    """An open bench. `run` carries its async work; `close` ends what holds connections."""

    bench: DryRunExecutor
    runtime: ModelRuntime
    loop: asyncio.Runner
    at_once: int

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run(work)

    def close(self) -> None:
        self.loop.run(self.runtime.aclose())
        self.loop.close()


def open_dry_run(settings: Settings, shelf: RecipeLoader, counter: TokenMeasure, *, runtime: ModelRuntime | None = None) -> DryRun:
    """Executor and compression as a house has them, around stores that keep nothing. `shelf`: what the version that is tried calls in
    its turn, so that of production. Raises ConfigurationError."""
    runtime = runtime or open_runtime(settings, counter)
    served = served_endpoints(runtime)
    aside, chosen = CallCapture(), PinnedRecipeLoader(shelf)
    execution = Executor(
        cookbook=chosen,
        runtime=runtime,
        counter=counter,
        log=aside,
        vault=aside,
        interventions=aside,
        clock=utc_now,
        sleep=asyncio.sleep,
        new_call_id=_new_trial_id,
        tools=TOOL_NAMES,
        limit=CallLimit(settings.default_context_budget, settings.response_token_reserve),
        prices=served.prices if served else {},
    )
    open_compression_stack(
        settings,
        execution,
        cookbook=chosen,
        counter=counter,
        runtime=runtime,
        calls=aside,
        interventions=aside,
        clock=utc_now,
        new_call_id=_new_trial_id,
        log_event=_ignore_event,
    )
    return DryRun(DryRunExecutor(execution, chosen, aside), runtime, asyncio.Runner(), 1 if runtime.name == EMBEDDED else _AT_ONCE)


def _new_trial_id() -> str:
    return f"try_{secrets.token_hex(12)}"


def _ignore_event(event: str, **fields: object) -> None:
    """What a bench compresses is nobody's metric."""


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
    return RecipeAdmin(
        shelf, production, versions, PromotionContext(versions, shelf.load_file, answer_model, utc_now), open_counter(settings)
    )


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
    chosen = (
        [governing.find(name)] if name else [(one, resolve_version(governing.ctx, one, "production")) for one in governing.shelf.names()]
    )
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
