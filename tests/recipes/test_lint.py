"""Each convention of prompts, broken once."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pandora_dagster.contracts.recipe_schema import LoadedRecipe
from pandora_dagster.recipes.generated_files import write_registry, write_schema_file
from pandora_dagster.recipes.lint import check_all, check_recipe, example_answers, recipe_notices, waiting_tools
from pandora_dagster.recipes.recipe_loader import RecipeLoader
from pandora_dagster.runtime.token_counter import TokenCounter
from pandora_dagster.tools.tool_registry import WRITING_TOOLS

Put = Callable[[str, str | bytes], Path]
GATE = "recipes/pipeline/gate.yaml"
PROMPT = "prompts/pipeline/gate.md"
TOOLS = {"memory.query"}
TWICE = "tests:\n  - {name: a greeting proceeds, query: Hi, documents: {context.md: x}, facts: [PROCEED]}\n"


ROLES = frozenset({"gate", "alone"})


def caller(loaded: LoadedRecipe) -> tuple[str, ...]:
    """Something calls the recipe, with every document that it names."""
    return loaded.recipe.input_docs


def edit(folder: Path, name: str, old: str, new: str) -> None:
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))


def test_a_sound_recipe_has_no_fault(loader: RecipeLoader, counter: TokenCounter) -> None:
    """The small recipe follows every convention."""
    assert check_recipe(loader.load_with_tests("pipeline/gate"), counter, TOOLS) == ()


@pytest.mark.parametrize(
    ("name", "old", "new", "fault"),
    [
        (GATE, "  prompt: 600", "  prompt: 60", "token_budget.prompt: policy, prompt and IO schema take"),
        (GATE, "  total: 2200", "  total: 12001", "token_budget.total: 12001: expected at most 12000, the limit of one call"),
        (GATE, '  - "§0"', '  - "§1"', "input_sections: §0 is missing"),
        (GATE, "output_format: json", "variables: {a: '{{b}}'}\noutput_format: json", "variables: {{b}} is not declared"),
        (
            GATE,
            "output_format: json",
            "compression: {preserve: [section_O]}\noutput_format: json",
            "compression.preserve: section_O is no input",
        ),
        (
            GATE,
            "output_format: json",
            "compression: {mode: rewrite}\noutput_format: json",
            "compression.mode: rewrite without a content_type",
        ),
        (
            GATE,
            "output_format: json",
            "content_type: generic\noutput_format: json",
            "compression.mode: select, and output_schema has no `keep`",
        ),
        (PROMPT, "Say yes", "Say {{word}}", "variables: {{word}} is not declared"),
        (PROMPT, "- confidence: 0 to 1\n", "", "prompt: confidence is not explained"),
        (PROMPT, "If evidence is missing: CLARIFY.", "Do your best.", "prompt: it does not state what to do without evidence"),
        (PROMPT, "Example: a greeting", "So: a greeting", "prompt: no example"),
        (PROMPT, "0.9}", "0.9", "prompt: example is not JSON"),
        (PROMPT, "0.9}", '"high"}', "prompt: example: confidence: 'high' is not of type 'number'"),
        (PROMPT, '"PROCEED"', '"GO"', "prompt: example: decision: 'GO' is not one of"),
        (PROMPT, '"CLARIFY"', '"PROCEED"', "prompt: no example shows decision CLARIFY"),
        (
            PROMPT,
            "a greeting",
            "a greeting; `tools` lists memory.query and file.write.",
            "prompt: example: the tool file.write does not exist",
        ),
        (PROMPT, "Example: one word", "Example:\n\n<query>\nhm\n</query>\n\nAnswer:\n{}\n\nExample:", "prompt: a worked call that ends"),
        (GATE, "model_layer: REFLEX", "model_layer: NERVES", "prompt: 0 worked calls that end in `Answer:`"),
        (PROMPT, ', "confidence": 0.9', "", "prompt: example: the whole answer: 'confidence' is a required property"),
        (
            GATE,
            "      type: number",
            "      type: number\n      multipleOf: 0.1",
            "output_schema: multipleOf: expected a schema without it",
        ),
        (GATE, "documents: {context.md:", "documents: {tools: x, context.md:", "tests[0].documents: tools: not read by the recipe"),
        (GATE, "documents: {context.md:", "variables: {mode:", "tests[0].documents: context.md is missing"),
        (GATE, "tests:\n", TWICE, "tests[1].name: 'a greeting proceeds' is also another test's"),
        (GATE, "      type: number", "      allOf: [{minimum: 0}, {maximum: 1}]", "output_schema: allOf: expected a schema without it"),
    ],
)
def test_a_broken_convention_is_named(
    loader: RecipeLoader, tmp_path: Path, counter: TokenCounter, name: str, old: str, new: str, fault: str
) -> None:
    """Each rule names the recipe, what is wrong and what was expected."""
    edit(tmp_path, name, old, new)
    found = check_recipe(loader.load_with_tests("pipeline/gate"), counter, TOOLS)
    assert any(f.startswith(f"{GATE}: {fault}") for f in found), found
    assert all("expected" in f for f in found)


def test_a_recipe_without_tests_is_reported(loader: RecipeLoader, tmp_path: Path, counter: TokenCounter) -> None:
    """Nobody could say what it is for."""
    text = (tmp_path / GATE).read_text()
    (tmp_path / GATE).write_text(text[: text.index("tests:")])
    assert [fault for fault in check_recipe(loader.load_with_tests("pipeline/gate"), counter, TOOLS) if "tests: none" in fault]


def test_an_example_for_a_base_model_stands_in_the_frames_of_a_pack() -> None:
    """What follows `Answer:` is an example's answer too, each of several."""
    worked = '<document name="a">\ntext\n</document>\n\n<query>\n\n</query>\n\nAnswer:\n{"keep": [%d]}'
    assert example_answers(f"Example:\n\n{worked % 1}\n\n{worked % 2}\n") == ('{"keep": [1]}', '{"keep": [2]}')


WORKED = """<variables>
target_tokens: {n}
</variables>

<document name="notes">
[1] (5) text
</document>

<query>

</query>

Answer:
{{"keep": [1]}}"""
BASE_PROMPT = f"Choose units; keep: their numbers. Example:\n\n{WORKED.format(n=9)}\n\n{WORKED.format(n=8)}\n\nIf evidence is missing: 1.\n"
BASE = """name: gate
description: Choose units
content_type: generic
model_layer: NERVES
token_budget: {total: 1000, prompt: 500, input: 300, output: 100}
prompt_files: [prompts/pipeline/gate.md]
input_docs: [notes, tools]
variables: {target_tokens: "{{target_tokens}}"}
output_format: json
output_schema: {type: object, properties: {keep: {type: array, items: {type: integer}}}}
tests: [{name: a unit, documents: {notes: "[1] (5) text"}, variables: {target_tokens: "9"}, expect: [{field: keep, contains: 1}]}]
"""


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('"notes"', '"note"', "prompt: a worked call has the documents note: expected of notes, tools, in this order"),
        ("target_tokens:", "tokens:", "prompt: a worked call has the variables tokens: expected target_tokens"),
        ("<variables>\ntarget_tokens: 9\n</variables>\n\n", "", "prompt: a worked call has query: expected what a call"),
        ("\n\n<query>\n\n</query>", "\n\nQuery: none", "prompt: a worked call is not framed as it is sent"),
    ],
)
def test_an_example_for_a_base_model_is_a_call_as_it_is_sent(
    loader: RecipeLoader, put: Put, counter: TokenCounter, old: str, new: str, fault: str
) -> None:
    """compress_prior_turn showed `turn_to_compress`, and its calls send `prior_turn_to_compress`."""
    put(GATE, BASE)
    put(PROMPT, BASE_PROMPT)
    assert check_recipe(loader.load_with_tests("pipeline/gate"), counter, TOOLS) == ()
    put(PROMPT, BASE_PROMPT.replace(old, new))
    found = check_recipe(loader.load_with_tests("pipeline/gate"), counter, TOOLS)
    assert any(f.startswith(f"{GATE}: {fault}") for f in found), found


def test_rules_hold_in_every_case(loader: RecipeLoader, put: Put, tmp_path: Path, counter: TokenCounter) -> None:
    """The longest prompt must fit: a block for one intent counts as well."""
    put("prompts/pipeline/long.md", "word " * 600)
    edit(tmp_path, GATE, f"  - {PROMPT}\n", f"  - {PROMPT}\n  - path: prompts/pipeline/long.md\n    when: {{intent: [commerce]}}\n")
    assert [f.split(": ")[1] for f in check_recipe(loader.load_with_tests("pipeline/gate"), counter, TOOLS)] == ["token_budget.prompt"]


def test_check_all_gathers_everything(loader: RecipeLoader, put: Put, recipe: str, counter: TokenCounter) -> None:
    """Broken files, unused prompts, stale generated files and tools that do not exist come in one answer."""
    put("prompts/pipeline/alone.md", "Alone.")
    put(GATE, recipe + "tools_available: [memory.query, internet.research]\n")
    checked = check_all(loader, {"memory.query"}, counter, caller, ROLES)
    files = ["recipes/schema.json", GATE, "prompts/pipeline/alone.md", "recipes/registry.yaml"]
    assert [f.split(":")[0] for f in checked.faults] == files
    assert f"{GATE}: tools_available: internet.research does not exist: expected one of memory.query" in checked.faults
    assert checked.notices == ()
    put("recipes/pipeline/broken.yaml", "name: broken\n")
    assert "recipes/pipeline/broken.yaml:1: description: missing" in "\n".join(check_all(loader, set(), counter, caller, ROLES).faults)


def test_what_a_high_risk_level_does_is_reported(loader: RecipeLoader, put: Put, recipe: str) -> None:
    """The tools that wait for an approval; no effect where the recipe calls no tool that writes. An older `medium` is low."""
    put(GATE, recipe + "risk_level: high\ntools_available: [memory.query, memory.create]\n")
    loaded = loader.load("pipeline/gate")
    assert recipe_notices(loaded, WRITING_TOOLS) == (f"{GATE}: risk_level: high: no effect: the recipe calls no tool that writes",)
    coordinator = loaded.model_copy(update={"recipe": loaded.recipe.model_copy(update={"role": "coordinator"})})
    assert recipe_notices(coordinator, WRITING_TOOLS) == ()
    assert waiting_tools(coordinator.recipe, WRITING_TOOLS) == ("memory.create",)
    put(GATE, recipe + "risk_level: medium\n")
    assert loader.load("pipeline/gate").recipe.risk_level == "low" and recipe_notices(loader.load("pipeline/gate"), WRITING_TOOLS) == ()


def test_a_broken_recipe_hides_no_fault_beside_it(loader: RecipeLoader, put: Put, recipe: str, counter: TokenCounter) -> None:
    """Unused prompts and a stale registry are named all the same; of the broken recipe and its prompts nothing more is reported."""
    write_schema_file(loader)
    write_registry(loader, counter)
    put("prompts/pipeline/alone.md", "Alone.")
    put("prompts/pipeline/its_own.md", "Its own.")
    put("recipes/pipeline/broken.yaml", "name: broken\nprompt_files: [prompts/pipeline/its_own.md]\n")
    sentence = "\n".join(check_all(loader, set(), counter, caller, ROLES).faults)
    assert "recipes/pipeline/broken.yaml:1: description: missing" in sentence
    assert "prompts/pipeline/alone.md: used by no recipe" in sentence and "registry.yaml: prompts/pipeline/alone.md: not listed" in sentence
    assert "its_own" not in sentence


def test_a_clean_recipes_has_no_fault(loader: RecipeLoader, counter: TokenCounter) -> None:
    """After writing what is generated nothing is left to say."""
    write_schema_file(loader)
    write_registry(loader, counter)
    assert check_all(loader, set(), counter, caller, ROLES).faults == ()


def test_json_without_a_schema_is_a_notice(loader: RecipeLoader, put: Put, recipe: str, counter: TokenCounter) -> None:
    """A recipe may take any JSON, and that is reported."""
    put(GATE, recipe[: recipe.index("output_schema:")])
    assert check_all(loader, set(), counter, caller, ROLES).notices == (f"{GATE}: output_schema: none: any JSON object passes",)


def test_answers_in_finds_the_block_after_each_example() -> None:
    """A longer fence may hold a shorter one; blocks that follow no example are not answers."""
    prompt = "Example one\n````markdown\na\n```ini\nb\n```\n````\n```\nno\n```\nExample `two`\nwords\n```json\n{}\n```\n"
    assert example_answers(prompt) == ("a\n```ini\nb\n```\n", "{}\n")


@pytest.mark.parametrize("stray", ["pipeline/other.yml", "other.yaml", "pipeline/deep/other.yaml"])
def test_a_file_that_is_never_loaded_is_a_fault(loader: RecipeLoader, put: Put, recipe: str, counter: TokenCounter, stray: str) -> None:
    """A recipe in the wrong place is not passed over in silence; one in the archive is meant to rest."""
    write_schema_file(loader)
    write_registry(loader, counter)
    put("recipes/archive/old.yaml", recipe)
    put(f"recipes/{stray}", recipe)
    faults = check_all(loader, set(), counter, caller, ROLES).faults
    assert faults == (f"recipes/{stray}: never loaded: expected {{category}}/{{name}}.yaml",)


def test_a_document_that_no_call_can_load_is_a_fault(loader: RecipeLoader, put: Put, recipe: str, counter: TokenCounter) -> None:
    """A misspelt name has its line, and the names that would do."""
    put(GATE, recipe + "input_docs: [turn_summaries,\n  tickt.md]\n")
    write_schema_file(loader)
    write_registry(loader, counter)
    (fault,) = check_all(loader, set(), counter, lambda loaded: ("ticket.md", "turn_summaries"), ROLES).faults
    line = len(recipe.splitlines()) + 2
    assert fault == f"{GATE}:{line}: input_docs[1]: tickt.md: expected one of ticket.md, turn_summaries"


def test_a_recipe_that_nothing_calls_or_plays_is_a_fault(loader: RecipeLoader, put: Put, recipe: str, counter: TokenCounter) -> None:
    """An uncalled recipe would be tested, versioned and translated for nothing; an unplayed one halts the embedded runtime."""
    put(GATE, recipe)
    write_registry(loader, counter)
    write_schema_file(loader)
    assert check_all(loader, set(), counter, lambda loaded: None, ROLES).faults == (
        f"{GATE}: nothing calls it: expected a recipe that a step of the program names",
    )
    assert check_all(loader, set(), counter, caller, {"poet"}).faults == (
        f"{GATE}: role: gate: the embedded runtime does not play it: expected one of poet",
    )
