"""Recipe administration: recipes checked, listed, generated, versioned, and tested on dry runs that store nothing."""

import asyncio
import secrets
from collections.abc import Collection, Coroutine, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pandora_dagster.app.adapters.store_adapters import open_recipe_tests, open_recorded_answers, open_vault
from pandora_dagster.app.composition import (
    open_counter,
    open_executor,
    open_recipe_loader,
    open_runtime,
    open_versions,
    utc_now,
)
from pandora_dagster.app.web.screenshot_reader import RECIPE as SCREENSHOT_READER
from pandora_dagster.archive import session_narratives, user_digests
from pandora_dagster.contracts.enums import ContentType, Mode
from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.ports.model_runtime import ModelRuntime
from pandora_dagster.contracts.ports.record_storage import RecipeVersionStore
from pandora_dagster.contracts.recipe_governance import FailureLesson, RecordedAnswer, RecordedAnswers
from pandora_dagster.contracts.recipe_schema import LoadedRecipe, RecipeTest
from pandora_dagster.errors import InputError, RecipeNotFoundError, RecipeValidationError
from pandora_dagster.execution.fit.compression_log import EMBEDDED
from pandora_dagster.governance import failure_lessons
from pandora_dagster.governance.call_metrics import reads_prompts
from pandora_dagster.governance.dry_run import CallCapture, DryRunExecutor, PinnedRecipeLoader
from pandora_dagster.governance.promotion import PromotionContext, resolve_version
from pandora_dagster.governance.recipe_failures import FailureGroup
from pandora_dagster.governance.recipe_test_run import RecipeTestOutcome, run_recipe_tests
from pandora_dagster.governance.recorded_answers import AnswerRecorder, RecordedRuntime
from pandora_dagster.phases.flow.phase_table import answer_model, recipe_documents
from pandora_dagster.recipes.generated_files import write_registry, write_schema_file
from pandora_dagster.recipes.lint import check_all
from pandora_dagster.recipes.recipe_loader import RecipeLoader, check_file
from pandora_dagster.research.recipe_calls import DOCUMENTS_OF_RECIPE
from pandora_dagster.runtime.extractive.extractive_runtime import roles
from pandora_dagster.settings import Settings
from pandora_dagster.tools.tool_registry import TOOL_NAMES, WRITING_TOOLS


@dataclass(frozen=True, slots=True)
class RecipeCheckResult:
    """The result of a check of `count` recipes."""

    count: int
    faults: tuple[str, ...]
    notices: tuple[str, ...] = ()
    approvals: tuple[str, ...] = ()
    """Recipes of high risk, with the tools that wait for the user's approval."""


def check_recipes(settings: Settings) -> RecipeCheckResult:
    """Check all recipes, prompts, the registry and the schema."""
    recipes = open_recipe_loader(settings)
    called = called_recipes(recipes)
    checked = check_all(recipes, TOOL_NAMES, open_counter(), lambda loaded: called.get(loaded.path), roles(), WRITING_TOOLS)
    return RecipeCheckResult(len(recipes.names()), checked.faults, checked.notices, checked.approvals)


def called_recipes(recipes: RecipeLoader) -> Mapping[str, Collection[str]]:
    """`{category}/{name}` of each recipe that calls lead to -> the documents that they can load.

    Names and content types are those of the callers' own tables. Each is looked up as a call does it, so that a recipe that another one
    shadows, or that is in the wrong category, is not among them. A compression recipe reads one document, under the name that it gives it.
    """
    documents_by_name: Mapping[str, Collection[str]] = {
        **recipe_documents(),
        **DOCUMENTS_OF_RECIPE,
        SCREENSHOT_READER: (),
        failure_lessons.RECIPE: failure_lessons.DOCUMENTS,
        session_narratives.RECIPE: ("entries",),
        user_digests.RECIPE: ("task_context", "summaries"),
    }
    called: dict[str, Collection[str]] = {}
    for name, documents in documents_by_name.items():
        for mode in Mode:
            with suppress(RecipeNotFoundError, RecipeValidationError):  # a missing or faulty file is a fault of its own
                called[recipes.get(name, mode).path] = documents
    called |= {compressor.path: compressor.recipe.input_docs[:1] for compressor in _compressors(recipes)}
    return called


def _compressors(recipes: RecipeLoader) -> Iterator[LoadedRecipe]:
    """The compression recipe of each content type. Where one file is faulty no lookup succeeds, which is that file's fault alone."""
    try:
        for content_type in ContentType:
            with suppress(RecipeNotFoundError):
                yield recipes.compressor(content_type)
    except RecipeValidationError:
        for name in recipes.names():
            with suppress(RecipeNotFoundError, RecipeValidationError):
                if name.startswith("compression/") and (loaded := recipes.load(name)).recipe.content_type:
                    yield loaded


def check_files(files: Sequence[Path]) -> RecipeCheckResult:
    """Check these files alone, at any path, without the registry."""
    return RecipeCheckResult(len(files), tuple(fault for file in files for fault in check_file(file)))


def write_generated(settings: Settings) -> None:
    """Generate `registry.yaml` and `schema.json` from the recipe files."""
    recipes = open_recipe_loader(settings)
    write_schema_file(recipes)
    write_registry(recipes, open_counter())


def recipe_rows(settings: Settings) -> list[dict[str, Any]]:
    """One row per recipe as it is in production."""
    recipes = open_recipe_loader(settings, open_versions(settings))
    return [
        {
            "recipe": name,
            "layer": loaded.layer.value,
            "mode": loaded.recipe.mode.value if loaded.recipe.mode else "",
            **loaded.recipe.token_budget.model_dump(),
            "version": loaded.version,
        }
        for name, loaded in ((name, recipes.load(name)) for name in recipes.names())
    ]


T = TypeVar("T")
_SERVER_CONCURRENCY = 8
"""Concurrent calls to a server; the embedded runtime answers one at a time."""


@dataclass(frozen=True, slots=True)
class DryRun:
    """An open dry-run executor. `run` executes its async work; `close` ends its connections."""

    executor: DryRunExecutor
    runtime: ModelRuntime
    loop: asyncio.Runner
    concurrency: int

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run(work)

    def close(self) -> None:
        self.loop.run(self.runtime.aclose())
        self.loop.close()


def open_dry_run(settings: Settings, recipes: RecipeLoader, counter: TokenMeasure, *, runtime: ModelRuntime | None = None) -> DryRun:
    """The executor and compression of an application, around stores that keep nothing. `recipes`: those in production, which the tested
    version calls in turn. Raises ConfigurationError."""
    runtime = runtime or open_runtime(settings, counter)
    capture, pinned = CallCapture(read_image=open_vault(settings).read_image), PinnedRecipeLoader(recipes)
    execution, _ = open_executor(
        settings,
        recipes=pinned,
        counter=counter,
        runtime=runtime,
        calls=capture,
        vault=capture,
        interventions=capture,
        new_call_id=_new_trial_id,
        log_event=_ignore_event,
    )
    return DryRun(
        DryRunExecutor(execution, pinned, capture), runtime, asyncio.Runner(), 1 if runtime.name == EMBEDDED else _SERVER_CONCURRENCY
    )


def _new_trial_id() -> str:
    return f"try_{secrets.token_hex(12)}"


def _ignore_event(event: str, **fields: object) -> None:
    """The event logger of dry runs: their compressions are not counted."""


@dataclass(frozen=True, slots=True)
class RecipeAdmin:
    """The recipe files, the versions that ran, and the versions in production."""

    recipes: RecipeLoader
    """The files alone, without versions in production."""
    production: RecipeLoader
    """The recipes in production."""
    versions: RecipeVersionStore
    ctx: PromotionContext
    counter: TokenMeasure

    def find(self, text: str) -> tuple[str, LoadedRecipe]:
        """`NAME@VERSION` as `{category}/{name}` and the version; without one what is in production. Raises InputError."""
        name, _, version = text.partition("@")
        recipe = self.recipes.path_of(name)
        return recipe, resolve_version(self.ctx, recipe, version or "production")

    def chosen_versions(self, text: str) -> list[tuple[str, LoadedRecipe]]:
        """The version that `find` returns for a text; for "" every recipe as it is in production."""
        return [self.find(text)] if text else [(path, resolve_version(self.ctx, path, "production")) for path in self.recipes.names()]


def open_recipe_admin(settings: Settings) -> RecipeAdmin:
    """The recipe administration over `settings`; writes nothing."""
    recipes, versions = open_recipe_loader(settings), open_versions(settings)
    production = open_recipe_loader(settings, versions)
    return RecipeAdmin(recipes, production, versions, PromotionContext(versions, recipes.load_file, answer_model, utc_now), open_counter())


def two_versions(admin: RecipeAdmin, old: str, new: str) -> tuple[LoadedRecipe, LoadedRecipe]:
    """Two versions to compare, each `NAME@VERSION`; a second one without a name is a version of the first recipe."""
    recipe, before = admin.find(old)
    if "@" in new or "/" in new:
        return before, admin.find(new)[1]
    if not new:
        return before, resolve_version(admin.ctx, recipe, "production")
    try:
        return before, resolve_version(admin.ctx, recipe, new)
    except InputError as error:
        raise InputError(f"{error}", hint="expected NAME@VERSION, a version of the same recipe, file or production") from error


def run_tests(
    settings: Settings, admin: RecipeAdmin, name: str = "", *, user: str = "", runtime: ModelRuntime | None = None
) -> tuple[RecipeTestOutcome, ...]:
    """Run the tests of one recipe (`NAME` or `NAME@VERSION`), or of all, on the version in production unless one is named.

    A version runs with the present tests of its file, and with those made from calls of `user`.
    Raises InputError, ConfigurationError.
    """
    with _dry_run(settings, admin, runtime) as dry_run:
        return tuple(
            outcome
            for recipe, version in admin.chosen_versions(name)
            for outcome in dry_run.run(run_recipe_tests(version, _tests(settings, admin, recipe, user), dry_run.executor))
        )


def propose_lessons(
    settings: Settings, admin: RecipeAdmin, recipe: str, groups: Sequence[FailureGroup], *, runtime: ModelRuntime | None = None
) -> tuple[FailureLesson, ...]:
    """What a model would change in the prompt of `{category}/{name}`, from its failures. Raises InputError, ConfigurationError."""
    with _dry_run(settings, admin, runtime) as dry_run:
        dry_run.executor.select_version(resolve_version(admin.ctx, failure_lessons.RECIPE, "production"))
        failed = resolve_version(admin.ctx, recipe, "production")
        return dry_run.run(failure_lessons.propose_lessons(failed, groups, dry_run.executor))


def record_answers(
    settings: Settings, admin: RecipeAdmin, name: str, folder: Path, *, runtime: ModelRuntime | None = None
) -> tuple[RecipeTestOutcome, ...]:
    """Run the tests of one recipe, or of all, on a model, and store its answers in `folder`; returns the outcomes.

    Raises InputError for the embedded runtime, whose answers say nothing about a prompt, StoreError, ConfigurationError.
    """
    runtime = runtime or open_runtime(settings, admin.counter)
    if not reads_prompts(runtime.name):
        raise InputError(f"{runtime.name}: reads no prompt: expected a model to record", hint="pandora recipes record --runtime sglang")
    files, outcomes = open_recorded_answers(folder), list[RecipeTestOutcome]()
    recorder = AnswerRecorder(utc_now)
    with _dry_run(settings, admin, runtime) as dry_run:
        dry_run.executor.execution.listen(recorder.note)
        for recipe, version in admin.chosen_versions(name):
            answers: list[RecordedAnswer] = []
            for test in _tests(settings, admin, recipe, ""):
                outcomes += dry_run.run(run_recipe_tests(version, (test,), dry_run.executor))
                answers += recorder.take(test.name)
            if answers:
                files.put(RecordedAnswers(recipe=recipe, version=version.version, answers=tuple(answers)))
    return tuple(outcomes)


def open_recorded_runtime(admin: RecipeAdmin, folder: Path) -> RecordedRuntime:
    """The answers that `folder` holds, as a runtime; raises InputError where it holds none, DocumentError for a damaged file."""
    files = open_recorded_answers(folder)
    recordings = [recorded for recipe in admin.recipes.names() if (recorded := files.of_recipe(recipe))]
    if not recordings:
        raise InputError(f"{folder}: no recorded answers: expected {{category}}/{{name}}.json", hint="pandora recipes record --to FOLDER")
    return RecordedRuntime(answer for recorded in recordings for answer in recorded.answers)


@contextmanager
def _dry_run(settings: Settings, admin: RecipeAdmin, runtime: ModelRuntime | None) -> Generator[DryRun]:
    dry_run = open_dry_run(settings, admin.production, admin.counter, runtime=runtime)
    try:
        yield dry_run
    finally:
        dry_run.close()


def _tests(settings: Settings, admin: RecipeAdmin, recipe: str, user: str) -> tuple[RecipeTest, ...]:
    file_tests = admin.recipes.load_with_tests(recipe).recipe.tests
    return (*file_tests, *open_recipe_tests(settings).of_user(user_id(user), recipe)) if user else file_tests
