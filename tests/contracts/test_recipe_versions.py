"""What every store of recipe versions must do, asked of the files and of the fake in memory."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.ports.record_storage import RecipeVersionStore
from pandora_dagster.contracts.recipe_governance import (
    ConfidenceBin,
    ConfidenceCalibration,
    ProductionChange,
    RecipeCalibration,
    RecipeProduction,
)
from pandora_dagster.contracts.recipe_schema import LoadedRecipe
from pandora_dagster.errors import ConfigurationError, DocumentError, InputError, StoreError
from pandora_dagster.stores.disk.file_locks import file_lock
from pandora_dagster.stores.records.recipe_version_files import RecipeVersionFiles
from tests.fakes.recipe_stores import MemoryRecipeVersions
from tests.stores.records.test_recipe_version_files import RECIPE, edited

AT = "2026-01-04T15:00:00Z"
OTHER = "pipeline/phase3_planner"

Damage = Callable[[str, str], None]
"""Puts a text in the place of a version, or of the record of what is in production where the name is `production`."""


def now() -> datetime:
    return datetime(2026, 1, 4, 15, tzinfo=UTC)


@pytest.fixture(params=["memory", "files"])
def versions(request: pytest.FixtureRequest, tmp_path: Path) -> RecipeVersionStore:
    if request.param == "memory":
        return MemoryRecipeVersions(now, lock_seconds=0.05)
    return RecipeVersionFiles(tmp_path, clock=now, lock_seconds=0.05)


@pytest.fixture
def damage(versions: RecipeVersionStore, tmp_path: Path) -> Damage:
    def put(name: str, text: str) -> None:
        if not isinstance(versions, MemoryRecipeVersions):
            (tmp_path / "recipes" / RECIPE / f"{name}.json").write_text(text)
        elif name == "production":
            versions.records[RECIPE] = text
        else:
            versions.texts[RECIPE, name] = text

    return put


@pytest.fixture
def elsewhere(versions: RecipeVersionStore, tmp_path: Path) -> AbstractContextManager[object]:
    """While it is entered, another process holds the lock of the recipe."""
    if isinstance(versions, MemoryRecipeVersions):
        return versions.locks[RECIPE]
    return file_lock(tmp_path / "recipes" / RECIPE / ".lock", what="a test", seconds=1)


@pytest.fixture(scope="module")
def first() -> LoadedRecipe:
    return edited("One.")


@pytest.fixture(scope="module")
def second() -> LoadedRecipe:
    return edited("Two.")


def rollback(to: LoadedRecipe, layer: ModelLayer | None = None) -> ProductionChange:
    return ProductionChange(at=AT, kind="rollback", version=to.version, layer=layer, who="ann", why="worse")


def test_a_recipe_that_never_ran_has_no_version_and_nothing_in_production(versions: RecipeVersionStore) -> None:
    assert versions.production(RECIPE) == RecipeProduction(recipe=RECIPE)
    assert versions.versions(RECIPE) == () and list(versions.faults()) == []


def test_every_version_that_ran_comes_back_whole(versions: RecipeVersionStore, first: LoadedRecipe, second: LoadedRecipe) -> None:
    """By the first digits of its hash; of its own recipe alone."""
    for loaded in (first, second, first):
        versions.keep(loaded)
    assert versions.versions(RECIPE) == tuple(sorted((first.version, second.version))) and versions.versions(OTHER) == ()
    assert versions.version(RECIPE, first.version) == first and versions.version(RECIPE, second.version[:6]) == second
    assert list(versions.faults()) == []


def test_the_file_that_runs_is_in_production(versions: RecipeVersionStore, first: LoadedRecipe, second: LoadedRecipe) -> None:
    """Each edit is one line of its history; the same version twice is none."""
    for loaded in (first, first, second, first):
        versions.keep(loaded)
    standing = versions.production(RECIPE)
    assert [(c.kind, c.before, c.version, c.at) for c in standing.history] == [
        ("file", "", first.version, AT),
        ("file", first.version, second.version, AT),
        ("file", second.version, first.version, AT),
    ]
    assert (standing.version, standing.pinned, standing.layer) == (first.version, "", None)


def test_a_pinned_version_stays_in_production(versions: RecipeVersionStore, first: LoadedRecipe, second: LoadedRecipe) -> None:
    """Whatever the file says, until it is released; the layer goes with the change."""
    versions.keep(first)
    versions.keep(second)
    since = versions.production(RECIPE)
    pinned = versions.change(RECIPE, rollback(first, ModelLayer.MIND), since=since, pinned=first.version)
    assert pinned == versions.production(RECIPE) and (pinned.pinned, pinned.layer) == (first.version, ModelLayer.MIND)
    assert pinned.history == (*since.history, rollback(first, ModelLayer.MIND).model_copy(update={"before": second.version}))
    versions.keep(second)
    assert versions.production(RECIPE) == pinned
    release = ProductionChange(at=AT, kind="release", version=second.version)
    released = versions.change(RECIPE, release, since=pinned, pinned="")
    assert (released.pinned, released.layer, released.version) == ("", None, second.version)


def test_a_change_decided_on_an_older_state_is_refused(versions: RecipeVersionStore, first: LoadedRecipe, second: LoadedRecipe) -> None:
    versions.keep(first)
    since = versions.production(RECIPE)
    versions.keep(second)
    with pytest.raises(InputError, match="changed meanwhile"):
        versions.change(RECIPE, rollback(first), since=since, pinned=first.version)
    assert versions.production(RECIPE).pinned == "" and len(versions.production(RECIPE).history) == 2


def test_a_lock_that_another_process_holds_is_reported(
    versions: RecipeVersionStore, first: LoadedRecipe, elsewhere: AbstractContextManager[object]
) -> None:
    """Nothing is put into production meanwhile; afterwards it is."""
    with elsewhere:
        with pytest.raises(StoreError, match="another process"):
            versions.change(RECIPE, rollback(first), since=versions.production(RECIPE), pinned=first.version)
        with pytest.raises(StoreError, match="another process"):
            versions.keep(first)
        assert versions.production(RECIPE).history == ()
    versions.keep(first)
    assert versions.production(RECIPE).version == first.version


@pytest.mark.parametrize("version", ["ffffffffffff", "ab", "", "../../x", "0000"])
def test_a_version_that_is_not_exactly_one_is_refused(
    versions: RecipeVersionStore, damage: Damage, first: LoadedRecipe, version: str
) -> None:
    """Unknown, too short, or the beginning of two."""
    versions.keep(first)
    damage("0000aaaaaaa1", "{}")
    damage("0000aaaaaaa2", "{}")
    with pytest.raises(InputError):
        versions.version(RECIPE, version)


@pytest.mark.parametrize("text", ["", "{}", "half"])
def test_a_damaged_version_is_reported_until_it_runs_again(
    versions: RecipeVersionStore, damage: Damage, first: LoadedRecipe, second: LoadedRecipe, text: str
) -> None:
    versions.keep(first)
    versions.keep(second)
    damage(first.version, text)
    with pytest.raises(DocumentError, match=first.version):
        versions.version(RECIPE, first.version)
    assert [first.version in fault for fault in versions.faults()] == [True] and versions.version(RECIPE, second.version) == second
    versions.keep(first)
    assert versions.version(RECIPE, first.version) == first and list(versions.faults()) == []


def test_a_version_that_production_names_and_nobody_keeps_is_a_fault(
    versions: RecipeVersionStore, damage: Damage, first: LoadedRecipe
) -> None:
    versions.keep(first)
    change = ProductionChange(at=AT, kind="file", version="ffffffffffff")
    damage("production", RecipeProduction(recipe=RECIPE, history=(change,)).model_dump_json())
    (fault,) = versions.faults()
    assert "ffffffffffff" in fault and "missing" in fault


@pytest.mark.parametrize("text", ["", "{", RecipeProduction(recipe=OTHER).model_dump_json()], ids=["empty", "cut off", "of another"])
def test_a_damaged_record_of_production_is_never_passed_over(
    versions: RecipeVersionStore, damage: Damage, first: LoadedRecipe, text: str
) -> None:
    """It may pin a version: the recipe does not run, and one fault names it."""
    versions.keep(first)
    damage("production", text)
    for ask in (lambda: versions.production(RECIPE), lambda: versions.keep(first)):
        with pytest.raises(ConfigurationError):
            ask()
    assert len(versions.faults()) == 1


def test_a_calibration_replaces_the_one_before(versions: RecipeVersionStore) -> None:
    """Each recipe has one record; without one there are no tables."""
    assert versions.calibration(RECIPE) == RecipeCalibration(recipe=RECIPE)
    for good in (3, 5):
        bins = (ConfidenceBin(calls=20, good=good),) * 10
        table = ConfidenceCalibration(version="abc123def456", model="tiny", bins=bins)
        versions.keep_calibration(RecipeCalibration(recipe=RECIPE, at=AT, tables=(table,)))
    kept = versions.calibration(RECIPE).table("abc123def456", "tiny")
    assert kept is not None and kept.bin_of(1.0) == ConfidenceBin(calls=20, good=5)
    assert versions.calibration(RECIPE).table("abc123def456", "other") is None and versions.calibration(OTHER).tables == ()
