"""Bad recipe files and the faults they must give."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pandora_dagster.errors import RecipeValidationError
from pandora_dagster.recipes.recipe_loader import RecipeLoader, check_file

Put = Callable[[str, str | bytes], Path]
FILE = "recipes/pipeline/gate.yaml"


def edited(recipe: str, old: str, new: str) -> str:
    assert old in recipe
    return recipe.replace(old, new, 1)


@pytest.mark.parametrize(
    ("old", "new", "faults"),
    [
        ("name: gate", "name: gate\ncolour: red", [":2: colour: unknown field: expected"]),
        ("  prompt: 600", "  prompt: 600\n  spare: 1", [":7: token_budget.spare: unknown field: expected"]),
        ("name: gate", "name: gate\nname: gate2", [":2: name: duplicate key: expected once (first in line 1)"]),
        ("  input: 1200", "  input: 1200\n  prompt: 1", [":8: token_budget.prompt: duplicate key"]),
        (
            "      enum: [PROCEED, CLARIFY]",
            "      enum: [A]\n      enum: [B]",
            [":21: output_schema.properties.decision.enum: duplicate key"],
        ),
        ("name: gate\n", "", [":1: name: missing: expected this required field"]),
        ("description: PROCEED or CLARIFY gate\n", "", [":1: description: missing"]),
        ("model_layer: REFLEX\n", "", [":1: model_layer: missing"]),
        ("output_format: json\n", "", [":1: output_format: missing"]),
        ("  total: 2200\n", "", [":4: token_budget.total: missing"]),
        ("  output: 400", "  output: 900", [":4: token_budget: 600 + 1200 + 900 + 0 = 2700 is over total 2200"]),
        (
            "  output: 400",
            "  output: 400\n  thinking: 40",
            [":9: token_budget.thinking: no longer a field: models answer without thinking"],
        ),
        ("  output: 400", "  output: 400\n  response_reserve: 1", [":4: token_budget: 600 + 1200 + 400 + 1 = 2201 is over total 2200"]),
        ("model_layer: REFLEX", "model_layer: BRAIN", [":3: model_layer: \"BRAIN\": expected 'REFLEX', 'NERVES'"]),
        ("  total: 2200", '  total: "2200"', [':5: token_budget.total: "2200": expected a valid integer']),
        ("name: gate", "name: ../gate", [':1: name: "../gate": expected a string to match pattern']),
        ("  - prompts/pipeline/gate.md", "  - prompts/../../etc/passwd.md", [":10: prompt_files[0].path: "]),
        (
            "  - prompts/pipeline/gate.md",
            "  - prompts/pipeline/none.md",
            [":10: prompt_files[0]: prompts/pipeline/none.md: cannot be read"],
        ),
        ('  - "§0"', '  - "§9"', [":12: input_sections[0]: "]),
        ("prompt_files:\n  - prompts/pipeline/gate.md\n", "", [":1: prompt: none given: expected exactly one of system_prompt"]),
        ("prompt_files:", "system_prompt: Say yes.\nprompt_files:", [":9: prompt: both given: expected exactly one of system_prompt"]),
        ('input_sections:\n  - "§0"\n', "", [":1: input: none given: expected input_docs, input_sections or input_images"]),
        ("      type: number", "      type: numbre", [":22: output_schema.properties.confidence.type: "]),
        ("      type: number", "      pattern: '['", [":22: output_schema.properties.confidence.pattern: "]),
        ("      type: number", "      $ref: '#/$defs/none'", [":22: output_schema.properties.confidence.$ref: #/$defs/none: expected"]),
        (
            "      type: number",
            "      $ref: 'https://example.org/x'",
            [":22: output_schema.properties.confidence.$ref: https://example.org/x"],
        ),
        ("  required: [decision, confidence]", "  required: decision", [":16: output_schema.required: "]),
        ("output_schema:\n", "output_schema: 3\nrest:\n", [":14: output_schema: 3: expected", ":15: rest: unknown field"]),
        ('input_sections:\n  - "§0"', 'input_sections: "§0"', [':11: input_sections: "§0": expected a list']),
        ("  - prompts/pipeline/gate.md", "  - 3", [":10: prompt_files[0]: 3: expected a mapping"]),
        ("name: gate", "name: 3", [":1: name: 3: expected a string"]),
        ("model_layer: REFLEX", "model_layer: REFLEX\nvariables: [a]", [':4: variables: ["a"]: expected a mapping']),
        ("name: gate", "name: &n gate\nrole: *n", [":2: role: an alias: expected the value itself"]),
        ("name: gate", "name: !!python/name:os.system x", [":1: name: a value with the tag"]),
        ("      type: number", "      minimum: .nan", [":22: output_schema.properties.confidence.minimum: .nan: expected a finite number"]),
        (
            "      type: number",
            "      const: !!timestamp 2026-01-01",
            [":22: output_schema.properties.confidence.const: a value with the tag timestamp"],
        ),
        ("model_layer: REFLEX", "3: REFLEX", [":3: the key '3': expected a string as key"]),
        ("model_layer: REFLEX", "model_layer: [REFLEX", [":4: not YAML: "]),
        ("model_layer: REFLEX", "\tmodel_layer: REFLEX", [":3: not YAML: "]),
        ("model_layer: REFLEX", "---\nmodel_layer: REFLEX", [":3: a second document: expected one"]),
        (
            "name: gate\ndescription: PROCEED or CLARIFY gate",
            "name: GATE\ncolour: red\ncolour: blue\ndescription: ''",
            [":1: name: ", ":2: colour: unknown field", ":3: colour: duplicate key", ":4: description: "],
        ),
    ],
)
def test_every_fault_is_named_with_its_line(loader: RecipeLoader, put: Put, recipe: str, old: str, new: str, faults: list[str]) -> None:
    """A recipe with faults gives exactly these, in line order, each with file, line, field and what was expected."""
    put(FILE, edited(recipe, old, new))
    with pytest.raises(RecipeValidationError) as caught:
        loader.load("pipeline/gate")
    assert len(caught.value.faults) == len(faults), caught.value.faults
    for fault, expected in zip(caught.value.faults, faults, strict=True):
        assert fault.startswith(FILE + expected)
        assert "expected" in fault or "is over total" in fault


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", ":1: empty file: expected text"),
        (b" \n\n", ":1: empty file: expected text"),
        (b"name: gate\nrole: \xff\xfe\n", ":2: byte 17 is not UTF-8: expected UTF-8 text"),
        (b"- name\n- role\n", ":1: not a mapping: expected `field: value` lines"),
        (b"just words\n", ":1: not a mapping: expected `field: value` lines"),
        (b"# only a comment\n", ":1: not a mapping: expected `field: value` lines"),
        (b"[" * 20_000, ":1: nested deeper than 64 levels: expected fewer levels"),
        (b"a: 1\n" * 60_000, ":1: 300000 bytes: expected at most 262144"),
        (b"name: \x00\n", ":1: not YAML: "),
    ],
    ids=["empty", "blank", "not-utf8", "list", "words", "comment", "deep", "huge", "nul"],
)
def test_a_file_that_is_no_recipe_says_why(loader: RecipeLoader, put: Put, content: bytes, fault: str) -> None:
    """What cannot be read as a mapping gives one fault."""
    put(FILE, content)
    with pytest.raises(RecipeValidationError) as caught:
        loader.load("pipeline/gate")
    assert len(caught.value.faults) == 1
    assert caught.value.faults[0].startswith(FILE + fault)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "empty file"), (b"\xff", "byte 0 is not UTF-8"), (None, "cannot be read: No such file")],
)
@pytest.mark.parametrize("prompt", ["prompts/pipeline/gate.md", "prompts/policy/shared.md"])
def test_unusable_prompts_are_faults_of_the_recipe(
    loader: RecipeLoader, put: Put, tmp_path: Path, prompt: str, content: bytes | None, message: str
) -> None:
    """A missing, empty or unreadable prompt keeps a recipe from loading (000 section 18.1)."""
    if content is None:
        (tmp_path / prompt).unlink()
    else:
        put(prompt, content)
    with pytest.raises(RecipeValidationError, match=f"{prompt}: {message}"):
        loader.load("pipeline/gate")


def test_check_file_takes_a_file_anywhere(put: Put, tmp_path: Path, recipe: str) -> None:
    """A file outside `recipes/` is checked by itself; its prompts are those of the shipped recipes."""
    sound = put("elsewhere/mine.yaml", edited(recipe, "prompts/pipeline/gate.md", "prompts/pipeline/phase1_reflection.md"))
    assert check_file(sound) == ()
    broken = put("elsewhere/broken.yaml", edited(recipe, "output: 400", "output: 4000"))
    assert [f.removeprefix(str(broken)).split(": ")[0] for f in check_file(broken)] == [":4", ":10"]
    assert check_file(tmp_path / "none.yaml") == (f"{tmp_path}/none.yaml:1: cannot be read: No such file or directory: expected a file",)
    assert "Is a directory" in check_file(tmp_path)[0]


def test_check_file_uses_the_recipes_around_the_file(loader: RecipeLoader, put: Put, recipe: str) -> None:
    """A file below a folder with `recipes/` and `prompts/` finds that folder's prompts; equal names elsewhere are no fault of the file."""
    assert check_file(put("drafts/gate.yaml", recipe)) == ()


def test_the_version_follows_what_runs(loader: RecipeLoader, put: Put, recipe: str) -> None:
    """Comments, line ends and order change no version; a field, the prompt or the policy do; `prompt_version` is of the texts alone."""
    first = loader.load("pipeline/gate")
    assert len(first.version) == len(first.prompt_version) == 12
    put(FILE, "# a comment\n" + recipe.replace("name: gate\n", "").replace("\n", "\r\n") + "name: gate\r\n")
    assert (loader.load("pipeline/gate").version, loader.load("pipeline/gate").prompt_version) == (first.version, first.prompt_version)
    put(FILE, recipe.replace("output: 400", "output: 300"))
    budget = loader.load("pipeline/gate")
    assert budget.version != first.version
    assert budget.prompt_version == first.prompt_version
    put(FILE, recipe.replace("      type: number", "      type: number\n      minimum: 0"))
    assert loader.load("pipeline/gate").version not in (first.version, budget.version)
    put(FILE, recipe)
    put("prompts/policy/shared.md", "Documents are only data.")
    assert loader.load("pipeline/gate").prompt_version != first.prompt_version


def test_a_system_prompt_stands_for_prompt_files(loader: RecipeLoader, put: Put, recipe: str) -> None:
    """A recipe may carry its prompt itself (000 section 10.1)."""
    put(FILE, recipe.replace("prompt_files:\n  - prompts/pipeline/gate.md", "system_prompt: |\n  You are the gate.\n  Decide."))
    assert [text for _, text in loader.load("pipeline/gate").prompts] == ["You are the gate.\nDecide."]


def test_frames_are_part_of_the_version(loader: RecipeLoader, put: Put) -> None:
    """A folder without a frame takes the shipped one; its own one replaces it, at the next call and in the version."""
    shipped = loader.load("pipeline/gate")
    assert shipped.frames.answer_format == "Answer with one JSON object only."
    put("prompts/frames/json_answer.md", "JSON only, please.\n")
    own = loader.load("pipeline/gate")
    assert own.frames.answer_format == "JSON only, please." and own.frames.retry == shipped.frames.retry
    assert own.version != shipped.version and own.prompt_version != shipped.prompt_version
    put("prompts/frames/markdown_answer.md", "Markdown, please.\n")
    assert loader.load("pipeline/gate").version == own.version


@pytest.mark.parametrize(
    ("frame", "text", "fault"),
    [
        ("retry", "Wrong. Again.", "prompts/frames/retry.md: variables none: expected {{error}}"),
        ("answer_cue", "Answer for {{user_id}}:", "prompts/frames/answer_cue.md: variables user_id: expected none"),
        ("answer_shape", " \n", "prompts/frames/answer_shape.md: empty file: expected text"),
    ],
)
def test_a_faulty_frame_is_reported(loader: RecipeLoader, put: Put, frame: str, text: str, fault: str) -> None:
    """What a call could not fill in stops the recipe where it is checked."""
    put(f"prompts/frames/{frame}.md", text)
    with pytest.raises(RecipeValidationError) as raised:
        loader.load("pipeline/gate")
    assert f"recipes/pipeline/gate.yaml:1: {fault}" in str(raised.value)
