"""The store of recipe versions: kept whole, named by their hash, one of them in production; what a crash and damage do to it."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path

import pytest

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.recipe_governance import ProductionChange
from pandora_dagster.errors import ConfigurationError, DocumentError, InputError, StoreError
from pandora_dagster.recipes.recipe_loader import open_recipes
from pandora_dagster.recipes.recipe_reader import content_digest, version_texts, versioned_fields
from pandora_dagster.recipes.version_text import version_text
from pandora_dagster.stores.disk.file_locks import file_lock
from pandora_dagster.stores.records.recipe_version_files import RecipeVersionFiles

NOW = datetime(2026, 1, 4, 15, tzinfo=UTC)
RECIPE = "pipeline/phase1_reflection"
REPOSITORY = Path(__file__).parents[3]


def store(root: Path, **more: float) -> RecipeVersionFiles:
    return RecipeVersionFiles(root, clock=lambda: NOW, **more)


def edited(words: str):
    """The shipped reflection with other words in its first prompt, as its file would give it."""
    loaded = open_recipes().load(RECIPE)
    prompts = ((loaded.prompts[0][0], f"{loaded.prompts[0][1]}\n{words}"), *loaded.prompts[1:])
    changed = loaded.model_copy(update={"prompts": prompts})
    texts = version_texts(loaded.policy, (text for _, text in prompts), loaded.frames)
    return changed.model_copy(
        update={"version": content_digest([versioned_fields(loaded.recipe), texts]), "prompt_version": content_digest(texts)}
    )


@pytest.fixture
def versions(tmp_path) -> RecipeVersionFiles:
    return store(tmp_path)


def pin(versions, version, **more):
    change = ProductionChange(at="2026-01-04T15:00:00Z", kind="rollback", version=version, **more)
    return versions.change(RECIPE, change, since=versions.production(RECIPE), pinned=version)


@pytest.mark.parametrize("name", open_recipes().names())
def test_every_shipped_recipe_comes_back_as_it_was(versions, name):
    """Recipe, prompts with their conditions, policy and both versions."""
    loaded = open_recipes().load(name)
    versions.keep(loaded)
    assert versions.version(name, loaded.version[:6]) == loaded
    assert versions.faults() == ()


def test_an_edited_file_is_a_new_version_and_production(versions, tmp_path):
    """History says so once, whichever process runs it how often; a file that goes back is in production again."""
    first, second = edited("One."), edited("Two.")
    for loaded in (first, first, second, first):
        versions.keep(loaded)
        store(tmp_path).keep(loaded)
    standing = versions.production(RECIPE)
    assert [(c.kind, c.before, c.version) for c in standing.history] == [
        ("file", "", first.version),
        ("file", first.version, second.version),
        ("file", second.version, first.version),
    ]
    assert (standing.version, standing.predecessor, standing.pinned) == (first.version, second.version, "")
    assert versions.versions(RECIPE) == tuple(sorted({first.version, second.version}))


def test_a_file_that_goes_back_is_in_production_whoever_ran_what_lay_between(versions, tmp_path):
    """This process ran the first version, another one the second; the first runs here again, and history says so."""
    first, second = edited("One."), edited("Two.")
    versions.keep(first)
    store(tmp_path).keep(second)
    versions.keep(first)
    assert [c.version for c in versions.production(RECIPE).history] == [first.version, second.version, first.version]


def test_a_version_is_noted_under_the_lock(tmp_path):
    """While another process changes production nothing is appended; the call that follows does it."""
    versions = store(tmp_path, lock_seconds=0.05)
    with file_lock(tmp_path / "recipes" / RECIPE / ".lock", what="a test", seconds=1), pytest.raises(StoreError, match="another process"):
        versions.keep(edited("One."))
    assert versions.production(RECIPE).history == ()
    versions.keep(edited("One."))
    assert versions.production(RECIPE).version == edited("One.").version


def test_a_change_decided_on_what_stands_there_no_more_is_refused(versions):
    """It says who was faster; nothing is written."""
    first, second = edited("One."), edited("Two.")
    versions.keep(first)
    versions.keep(second)
    since = versions.production(RECIPE)
    pin(versions, first.version, who="ann")
    change = ProductionChange(at="2026-01-04T15:00:00Z", kind="layer", version=second.version, layer=ModelLayer.MIND, who="bob")
    with pytest.raises(InputError, match=f"changed meanwhile: ann put {first.version} into production \\(rollback\\)"):
        versions.change(RECIPE, change, since=since, pinned="")
    assert (versions.production(RECIPE).pinned, versions.production(RECIPE).layer) == (first.version, None)


def test_another_process_sees_a_change_at_once(versions, tmp_path):
    """A pinned version stands over whatever the file says, until history says otherwise."""
    first, second = edited("One."), edited("Two.")
    versions.keep(first)
    versions.keep(second)
    other = store(tmp_path)
    assert other.production(RECIPE).pinned == ""
    pin(versions, first.version, who="ann", why="worse", layer=ModelLayer.MIND)
    assert (other.production(RECIPE).pinned, other.production(RECIPE).layer) == (first.version, "MIND")
    other.keep(second)
    assert [c.kind for c in other.production(RECIPE).history] == ["file", "file", "rollback"]
    assert other.production(RECIPE).history[-1].before == second.version


@pytest.mark.parametrize(
    ("version", "says"), [("ffffffffffff", "not kept"), ("ab", "expected 4 to 12 digits"), ("../../x", "expected 4 to 12")]
)
def test_an_unknown_version_is_refused(versions, version, says):
    """With what is there."""
    versions.keep(edited("One."))
    with pytest.raises(InputError, match=says):
        versions.version(RECIPE, version)


def test_an_ambiguous_version_names_those_that_fit(versions, tmp_path):
    """More digits are asked for."""
    versions.keep(edited("One."))
    folder = tmp_path / "recipes" / RECIPE
    for end in ("aaaaaaa1", "aaaaaaa2"):
        (folder / f"0000{end}.json").write_text("{}")
    with pytest.raises(InputError, match="0000 is ambiguous: 0000aaaaaaa1, 0000aaaaaaa2"):
        versions.version(RECIPE, "0000")


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data.replace(b"PROCEED", b"PROCEEX", 1),
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: data.replace(b"\n", b"\n ", 1),
        lambda data: b"\xff" + data,
    ],
)
def test_a_damaged_version_is_found_and_named(versions, tmp_path, damage):
    """Reading and the doctor's look say which file; running that version again mends it."""
    loaded = edited("One.")
    versions.keep(loaded)
    path = tmp_path / "recipes" / RECIPE / f"{loaded.version}.json"
    path.write_bytes(damage(path.read_bytes()))
    fresh = store(tmp_path)
    with pytest.raises(DocumentError, match=str(path)):
        fresh.version(RECIPE, loaded.version)
    assert [str(path) in fault for fault in fresh.faults()] == [True]
    fresh.keep(loaded)
    assert path.read_text() == version_text(loaded)
    assert fresh.faults() == ()


def test_a_lost_version_and_a_damaged_record_are_named(versions, tmp_path):
    """What history names must be there; a record that cannot be read stops the recipe, it is not passed over."""
    loaded = edited("One.")
    versions.keep(loaded)
    folder = tmp_path / "recipes" / RECIPE
    (folder / f"{loaded.version}.json").unlink()
    assert "missing: expected a version that ran" in store(tmp_path).faults()[0]
    (folder / "production.json").write_text("{")
    with pytest.raises(ConfigurationError, match=r"production\.json"):
        store(tmp_path).production(RECIPE)
    assert "production.json" in store(tmp_path).faults()[0]


@pytest.mark.parametrize("name", ["../x", "pipeline/../../x", "pipeline", "Pipeline/x", "pipeline/x/y", ""])
def test_a_name_that_is_none_never_becomes_a_path(versions, name):
    """The pattern of recipe names is the only way to a folder."""
    with pytest.raises(InputError, match="not a recipe name"):
        versions.production(name)


def _pinned(root: str, version: str) -> None:
    done, ends = 0, time.monotonic() + 60
    while done < 10 and time.monotonic() < ends:
        with suppress(InputError):  # another one was faster: decided again
            pin(store(Path(root)), version, who=version)
            done += 1


def test_four_processes_that_change_production_lose_nothing(versions, tmp_path):
    """Forty changes that were not refused by four processes: forty lines, each with the version before it."""
    both = [edited("One."), edited("Two.")]
    for loaded in both:
        versions.keep(loaded)
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        done = [pool.submit(_pinned, str(tmp_path), both[number % 2].version) for number in range(4)]
    assert [one.result() for one in done] == [None] * 4
    history = versions.production(RECIPE).history
    assert len(history) == 42
    assert all(new.before == old.version for old, new in pairwise(history))


def test_a_kill_at_any_disk_step_leaves_the_old_or_the_new(versions, tmp_path):
    """Every version that stands there is whole, and production is one that can be read; what was killed can be done again."""
    root, copies = tmp_path / "root", tmp_path / "copies"
    store(root).keep(edited("One."))
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-m", "tests.stores.records.killed_version", str(root), str(copies)]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    steps = int(done.stdout)
    assert steps >= 9
    outcomes = set()
    for number in range(steps + 1):
        left = store(copies / str(number))
        assert left.faults() == ()
        standing = left.production(RECIPE)
        outcomes.add((standing.pinned != "", len(standing.history)))
        left.version(RECIPE, standing.version)
        left.keep(edited("Three."))
    assert outcomes == {(False, 1), (False, 2), (True, 3)}


def test_a_full_disk_says_so(versions, tmp_path):
    """A StoreError with the path; nothing half written."""
    (tmp_path / "recipes").write_text("a file where a folder is expected")
    with pytest.raises(StoreError, match="recipes"):
        versions.keep(edited("One."))


def test_a_version_without_frames_is_read_with_the_shipped_ones(versions, tmp_path):
    """It was kept before frames were part of versions: its hash is of what it has, and a rollback to it runs."""
    loaded = open_recipes().load(RECIPE)
    content = json.loads(version_text(loaded))
    del content["frames"]
    content["format"] = 1
    version = content_digest([content["recipe"], [content["policy"], *content["prompts"]]])
    path = tmp_path / "recipes" / RECIPE / f"{version}.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    kept = versions.version(RECIPE, version)
    assert (kept.version, kept.frames, kept.prompts) == (version, loaded.frames, loaded.prompts)
    assert versions.faults() == ()


def test_a_rollback_takes_the_frames_back(versions, tmp_path):
    """A call on a pinned version has the frames that it was kept with, whatever the folder has since."""
    loaded = open_recipes().load(RECIPE)
    frames = loaded.frames.model_copy(update={"retry": "Once more: {{error}}"})
    texts = version_texts(loaded.policy, (text for _, text in loaded.prompts), frames)
    earlier = loaded.model_copy(
        update={
            "frames": frames,
            "version": content_digest([versioned_fields(loaded.recipe), texts]),
            "prompt_version": content_digest(texts),
        }
    )
    versions.keep(earlier)
    versions.keep(loaded)
    assert store(tmp_path).version(RECIPE, earlier.version).frames.retry == "Once more: {{error}}"


@pytest.mark.parametrize("text", ["", "{", '{"recipe": 3}'])
def test_a_damaged_calibration_is_named_and_has_no_tables(versions, tmp_path, text):
    """Calls go on without it."""
    versions.keep(edited("One."))
    assert versions.faults() == ()
    (tmp_path / "recipes" / RECIPE / "calibration.json").write_text(text)
    assert versions.calibration(RECIPE).tables == ()
    (fault,) = versions.faults()
    assert "calibration.json" in fault
