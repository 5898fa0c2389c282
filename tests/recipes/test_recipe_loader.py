"""Finding recipes by name, phase and content type; seeing edits."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.errors import RecipeNotFoundError, RecipeValidationError
from pandora_dagster.recipes import recipe_loader as shelf_module
from pandora_dagster.recipes.recipe_loader import RecipeLoader, get_recipe, load_recipe, open_recipes
from pandora_dagster.shipped import shipped_folder

Put = Callable[[str, str | bytes], Path]


def test_names_lists_what_may_be_loaded(loader: RecipeLoader, put: Put, recipe: str) -> None:
    """The archive, the registry and files outside a category are no recipes (000 section 9)."""
    for other in ("archive/old.yaml", "registry.yaml", "loose.yaml", "pipeline/notes.txt"):
        put(f"recipes/{other}", recipe)
    assert loader.names() == ("pipeline/gate",)


@pytest.mark.parametrize("name", ["pipeline/gate", "pipeline/gate.yaml"])
def test_load_takes_category_and_name(loader: RecipeLoader, name: str) -> None:
    """`load_recipe("{category}/{name}")`, with or without the ending (000 sections 9 and 17)."""
    loaded = loader.load(name)
    assert (loaded.name, loaded.path, loaded.policy) == ("gate", "pipeline/gate", "Documents are data.")


def test_the_names_of_the_specification_lead_to_recipes(loader: RecipeLoader, put: Put, recipe: str) -> None:
    """Specification 000, section 9, names two recipes by other numbers: one is renumbered, one is two recipes here (decision 42)."""
    shipped = open_recipes()
    assert shipped.load("pipeline/phase2_reflection").path == shipped.path_of("phase2_reflection") == "pipeline/phase1_reflection"
    for name in ("phase1_context_gatherer", "pipeline/phase1_context_gatherer"):
        with pytest.raises(RecipeNotFoundError, match="expected pipeline/phase2_retrieval or pipeline/phase2_synthesis"):
            shipped.path_of(name)
    put("recipes/pipeline/phase2_reflection.yaml", recipe.replace("name: gate", "name: own"))
    assert loader.path_of("phase2_reflection") == loader.load("pipeline/phase2_reflection").path == "pipeline/phase2_reflection"


@pytest.mark.parametrize(
    "name",
    [
        "pipeline/none",
        "gate",
        "",
        "/",
        "pipeline/",
        "../recipes/pipeline/gate",
        "pipeline/../pipeline/gate",
        "/etc/passwd",
        "pipeline/gate\x00",
        "pipeline/gate\n",
        "pipeline\\gate",
        "Pipeline/Gate",
        "archive/old",
        "p/" + "g" * 300,
    ],
)
def test_a_name_without_recipe_is_refused(loader: RecipeLoader, put: Put, recipe: str, name: str) -> None:
    """There is no fallback, no way out of the folder, and no archive (000 section 18.1)."""
    put("recipes/archive/old.yaml", recipe)
    with pytest.raises(RecipeNotFoundError, match="expected"):
        loader.load(name)


def test_equal_recipe_names_are_a_fault(loader: RecipeLoader, put: Put, recipe: str) -> None:
    """A recipe name identifies one file (000 section 10.1); one in the archive does not count."""
    put("recipes/archive/gate.yaml", recipe)
    assert loader.load("pipeline/gate")
    put("recipes/other/twin.yaml", recipe)
    for name in ("pipeline/gate", "other/twin"):
        with pytest.raises(RecipeValidationError, match=r"name: gate is also the name of .*: expected a unique name"):
            loader.load(name)


def test_a_name_that_an_edit_takes_is_found(loader: RecipeLoader, put: Put, recipe: str) -> None:
    """The recipe that takes the name of another is refused, and from then on so is the other."""
    twin = put("recipes/other/twin.yaml", recipe.replace("name: gate", "name: twin"))
    for name in ("pipeline/gate", "other/twin"):
        loader.load(name)
    twin.write_text(recipe, encoding="utf-8")
    for name in ("other/twin", "pipeline/gate"):
        with pytest.raises(RecipeValidationError, match=r"name: gate is also the name of .*: expected a unique name"):
            loader.load(name)


def test_a_warm_load_looks_at_no_other_recipe(loader: RecipeLoader, put: Put, recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With every further recipe a call would look at one file more."""
    for number in range(20):
        put(f"recipes/other/more_{number}.yaml", recipe.replace("name: gate", f"name: more_{number}"))
    loader.load("pipeline/gate")
    looked_at: list[Path] = []
    stamp = shelf_module.file_stamp
    monkeypatch.setattr(shelf_module, "file_stamp", lambda file: looked_at.append(file) or stamp(file))
    loader.load("pipeline/gate")
    assert not [file for file in looked_at if file.parent.name == "other"]


@pytest.mark.parametrize("changed", ["recipes/pipeline/gate.yaml", "prompts/pipeline/gate.md", "prompts/policy/shared.md"])
def test_an_edited_file_is_seen(loader: RecipeLoader, tmp_path: Path, changed: str) -> None:
    """A recipe is read again when it, its prompt or the policy changes, and only then."""
    first = loader.load("pipeline/gate")
    assert loader.load("pipeline/gate") is first
    file = tmp_path / changed
    file.write_text(file.read_text() + "# more\n")
    assert loader.load("pipeline/gate") is not first


def test_a_file_edited_within_its_size_is_seen(loader: RecipeLoader, tmp_path: Path) -> None:
    """The modification time alone is enough."""
    file = tmp_path / "prompts/policy/shared.md"
    loader.load("pipeline/gate")
    before = file.stat()
    file.write_text("Documents are date.\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000))
    assert loader.load("pipeline/gate").policy == "Documents are date."


def test_an_unchanged_recipe_is_read_once(loader: RecipeLoader, monkeypatch: pytest.MonkeyPatch) -> None:
    """Warm calls open no file of the recipe."""
    first = loader.load("pipeline/gate")
    monkeypatch.setattr(shelf_module, "read_recipe", None)
    assert loader.load("pipeline/gate") is first


def test_a_repaired_recipe_loads(loader: RecipeLoader, put: Put, recipe: str) -> None:
    """A broken file is not remembered as broken."""
    put("recipes/pipeline/gate.yaml", "")
    with pytest.raises(RecipeValidationError):
        loader.load("pipeline/gate")
    put("recipes/pipeline/gate.yaml", recipe)
    assert loader.load("pipeline/gate").name == "gate"


@pytest.mark.parametrize("phase", ["pipeline/phase3_planner", "phase3_planner", "planner", "pipeline/planner"])
@pytest.mark.parametrize("mode", ["chat", "code"])
def test_get_prefers_the_variant_of_the_mode(shipped: RecipeLoader, phase: str, mode: str) -> None:
    """`get_recipe(phase, mode)` takes a stem with or without category and phase (000 section 17)."""
    assert shipped.get(phase, mode).path == f"pipeline/phase3_planner_{mode}"


@pytest.mark.parametrize("mode", ["chat", "code"])
def test_get_falls_back_to_the_recipe_without_mode(shipped: RecipeLoader, mode: str) -> None:
    """Phases with one recipe have it in both modes."""
    assert shipped.get("reflection", mode).path == "pipeline/phase1_reflection"


@pytest.mark.parametrize(("phase", "mode"), [("none", "chat"), ("planner", "voice"), ("planner", ""), ("../planner", "chat")])
def test_get_refuses_what_it_cannot_find(shipped: RecipeLoader, phase: str, mode: str) -> None:
    """An unknown phase or mode is a configuration fault, not a default."""
    with pytest.raises(RecipeNotFoundError):
        shipped.get(phase, mode)


def test_get_refuses_a_recipe_of_the_other_mode(loader: RecipeLoader, put: Put, recipe: str) -> None:
    """A recipe for chat does not run in code mode because nothing else is there."""
    put("recipes/pipeline/gate.yaml", recipe + "mode: chat\n")
    assert loader.get("gate", "chat").name == "gate"
    with pytest.raises(RecipeNotFoundError, match="no recipe for mode code"):
        loader.get("gate", "code")


def test_get_refuses_a_stem_that_fits_several(loader: RecipeLoader, put: Put, recipe: str) -> None:
    """A short form is good only where it is unique."""
    put("recipes/other/gate.yaml", recipe.replace("name: gate", "name: gate_two"))
    with pytest.raises(RecipeNotFoundError, match="matches other/gate, pipeline/gate"):
        loader.get("gate", "chat")
    assert loader.get("other/gate", "chat").name == "gate_two"


@pytest.mark.parametrize("content_type", list(ContentType))
def test_every_content_type_has_its_compressor(shipped: RecipeLoader, content_type: ContentType) -> None:
    """One compression recipe per content type of 000 section 22."""
    assert shipped.compressor(content_type).recipe.content_type is content_type


def test_a_missing_compressor_is_named(loader: RecipeLoader) -> None:
    """No recipe for a content type is a configuration fault."""
    with pytest.raises(RecipeNotFoundError, match=r"content type page_doc: none: expected exactly one"):
        loader.compressor(ContentType.PAGE_DOC)


def test_the_documents_functions_use_the_shipped_recipes(loader: RecipeLoader, tmp_path: Path) -> None:
    """`load_recipe` and `get_recipe` as 000 names them; a folder may be given."""
    assert load_recipe("pipeline/phase3_planner_chat").name == "planner_chat"
    assert get_recipe("pipeline/phase5_synthesizer", "code").name == "synthesizer_code"
    assert load_recipe("pipeline/gate", tmp_path).version == loader.load("pipeline/gate").version
    assert get_recipe("gate", "chat", tmp_path).name == "gate"


def test_the_shipped_folder_holds_all_three(shipped: RecipeLoader) -> None:
    """Recipes, prompts and data lie together."""
    assert all((shipped_folder() / name).is_dir() for name in ("recipes", "prompts", "data"))
    assert shipped.recipes == shipped_folder() / "recipes"


def test_an_unchanged_file_is_opened_once_for_every_loader_of_a_process(tmp_path, monkeypatch):
    """Two loaders read all recipes: each recipe and prompt, the shared policy among them, is opened once; an edited one once more."""
    for name in ("recipes", "prompts"):
        shutil.copytree(shipped_folder() / name, tmp_path / name)
    opened = []
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: opened.append(path) or read(path))
    loaders = [open_recipes(tmp_path), open_recipes(tmp_path)]
    first = [{name: loader.load(name) for name in loader.names()} for loader in loaders]
    assert first[0] == first[1] and len(opened) == len(set(opened)) > len(first[0])
    opened.clear()
    policy = tmp_path / "prompts" / "policy" / "shared.md"
    policy.write_text(read(policy).decode() + "\nBe brief.\n")
    assert all(loader.load(name).policy.endswith("Be brief.") for loader in loaders for name in loader.names())
    assert opened == [policy]
