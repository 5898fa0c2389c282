"""Checks recipes and prompts without a model, by their conventions.

Conventions of a prompt: a line beginning `If evidence is missing:`; a line with the word `Example`, and after it a fenced block that holds
an answer, for JSON one that the output schema takes; every property of the output schema named outside the fenced blocks. An example for a
base model is in the frames of a prompt pack instead: its answer is the line after `Answer:`.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from pandora_dagster.contracts.enums import OutputFormat
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.recipe_schema import LoadedRecipe
from pandora_dagster.errors import RecipeNotFoundError, RecipeValidationError
from pandora_dagster.recipes.generated_files import check_registry, check_schema_file, referenced_prompts
from pandora_dagster.recipes.micro_tags import read_tagged
from pandora_dagster.recipes.output_schema import example_faults, grammar_faults
from pandora_dagster.recipes.recipe_loader import RecipeLoader
from pandora_dagster.recipes.recipe_paths import prompt_files, stray_files
from pandora_dagster.recipes.schema_notation import property_names
from pandora_dagster.recipes.static_prompts import KNOWN_VARIABLES, io_schema, prompt_cases, select_prompts, variables_in

_EXAMPLE = re.compile(r"^[^\n`]*\bExample\b[^\n]*\n.*?^(`{3,})\w*\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
_FRAMED_ANSWER = re.compile(r"^Answer:\n(.+)$", re.MULTILINE)
_FENCED = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
_MISSING_EVIDENCE = re.compile(r"^If evidence is missing:", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class LintReport:
    """Faults fail a check, notices do not. Each is one line `recipe: what: what was expected`."""

    faults: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


def check_all(loader: RecipeLoader, tools: Collection[str], counter: TokenMeasure) -> LintReport:
    """Check a folder of recipes: each recipe, the use of each prompt, `registry.yaml` and `schema.json`."""
    strays = [f"recipes/{name}: never loaded: expected {{category}}/{{name}}.yaml" for name in stray_files(loader.recipes)]
    faults: list[str] = [*check_schema_file(loader), *strays]
    notices: list[str] = []
    sound: list[LoadedRecipe] = []
    for name in loader.names():
        try:
            sound.append(loader.load_with_tests(name))
        except (RecipeValidationError, RecipeNotFoundError) as error:
            faults.extend(str(error).splitlines())
    for loaded in sound:
        faults.extend(check_recipe(loaded, counter))
        notices.extend(notices_of(loaded, tools))
    broken = set(loader.names()) - {loaded.path for loaded in sound}
    faults.extend([*unused_prompts(loader, sound, referenced_prompts(loader, broken)), *check_registry(loader, counter, broken=broken)])
    return LintReport(tuple(faults), tuple(notices))


def check_recipe(loaded: LoadedRecipe, counter: TokenMeasure) -> tuple[str, ...]:
    """Faults of one sound recipe against the conventions of prompts."""
    rules: tuple[Callable[[LoadedRecipe], Iterator[str]], ...] = (
        _query_faults,
        _variable_faults,
        _preserve_faults,
        _mode_faults,
        _explanation_faults,
        _example_answer_faults,
        _evidence_faults,
        _grammar_faults,
        _test_faults,
    )
    found = [*_budget_faults(loaded, counter), *(fault for rule in rules for fault in rule(loaded))]
    return tuple(f"recipes/{loaded.path}.yaml: {fault}" for fault in dict.fromkeys(found))


def notices_of(loaded: LoadedRecipe, tools: Collection[str]) -> tuple[str, ...]:
    """What is allowed but worth knowing: tools that do not exist (DECISIONS 23), JSON without a schema."""
    recipe = loaded.recipe
    absent = [f"tools_available: {tool} does not exist: it is never offered" for tool in recipe.tools_available if tool not in tools]
    free = recipe.output_format in (OutputFormat.JSON, OutputFormat.YAML) and recipe.output_schema is None
    schemaless = ["output_schema: none: any JSON object passes"] if free else []
    return tuple(f"recipes/{loaded.path}.yaml: {notice}" for notice in [*absent, *schemaless])


def unused_prompts(loader: RecipeLoader, sound: Collection[LoadedRecipe], named: Collection[str] = ()) -> Iterator[str]:
    """Prompt files that no recipe uses, and that are not `named` in a broken one; the policy is used by all."""
    used = {*named} | {entry.path for loaded in sound for entry, _ in loaded.prompts}
    for name in prompt_files(loader.prompts):
        if name not in used and not name.startswith("prompts/policy/"):
            yield f"{name}: used by no recipe: expected at least one, or the file in prompts/archive/"


def static_prefix(loaded: LoadedRecipe, *, mode: str, intent: str, policy: str) -> str:
    """What is first in the pack, as it is sent: policy, role prompt, IO schema."""
    role = select_prompts(loaded, mode=mode, intent=intent, policy=policy)
    return "\n\n".join([loaded.policy, *role, io_schema(loaded.recipe)])


def prefix_tokens(loaded: LoadedRecipe, counter: TokenMeasure) -> int:
    """Tokens of the longest static prefix over all cases, with the blank line that parts it from the rest."""
    return max(counter.count(static_prefix(loaded, **case) + "\n\n") for case in prompt_cases(loaded))


def _budget_faults(loaded: LoadedRecipe, counter: TokenMeasure) -> Iterator[str]:
    used, room = prefix_tokens(loaded, counter), loaded.recipe.token_budget.prompt
    if used > room:
        yield f"token_budget.prompt: policy, prompt and IO schema take {used} tokens: expected at most {room}"


def _query_faults(loaded: LoadedRecipe) -> Iterator[str]:
    sections = loaded.recipe.input_sections
    if sections and "§0" not in sections:
        yield "input_sections: §0 is missing: expected it always (000 section 12.2)"


def _variable_faults(loaded: LoadedRecipe) -> Iterator[str]:
    known = {*KNOWN_VARIABLES, *loaded.recipe.variables}
    texts = [*(text for _, text in loaded.prompts), *loaded.recipe.variables.values()]
    for name in dict.fromkeys(n for text in texts for n in variables_in(text)):
        if name not in known:
            yield f"variables: {{{{{name}}}}} is not declared: expected it under variables"


def _preserve_faults(loaded: LoadedRecipe) -> Iterator[str]:
    """`preserve` of compression names only what the call can have."""
    for name in loaded.recipe.compression.preserve:
        if name != "tool_errors" and name not in loaded.recipe.input_docs and not re.fullmatch(r"section_\d", name):
            yield f"compression.preserve: {name} is nothing that the call has: expected section_<n>, tool_errors or one of its input_docs"


def _mode_faults(loaded: LoadedRecipe) -> Iterator[str]:
    """A recipe that chooses units must be able to answer with their numbers; one that is for no content type shortens nothing."""
    recipe = loaded.recipe
    if recipe.content_type is None:
        if recipe.compression.mode != "select":
            yield f"compression.mode: {recipe.compression.mode} without a content_type: expected it in compression recipes only"
    elif recipe.compression.mode == "select" and (recipe.output_schema or {}).get("properties", {}).get("keep", {}).get("type") != "array":
        yield "compression.mode: select, and output_schema has no `keep`: expected an array of numbers there, or mode: rewrite"


def _explanation_faults(loaded: LoadedRecipe) -> Iterator[str]:
    for case in prompt_cases(loaded):
        prose = _FENCED.sub("", _role_prompt(loaded, case))
        for name in property_names(loaded.recipe.output_schema or {}):
            if not re.search(rf"\b{re.escape(name)}\b", prose):
                yield f"prompt: {name} is not explained: expected every property of the output schema to be named"


def _example_answer_faults(loaded: LoadedRecipe) -> Iterator[str]:
    for case in prompt_cases(loaded):
        examples = example_answers(_role_prompt(loaded, case))
        if not examples:
            yield "prompt: no example: expected a line with the word Example and a fenced block after it"
        if loaded.recipe.output_format is OutputFormat.JSON:
            yield from (fault for text in examples for fault in _json_faults(loaded, text))
        if loaded.recipe.output_format is OutputFormat.TAGGED and not all(read_tagged(text).text for text in examples):
            yield "prompt: example: only tags: expected an answer for the user after them"


def _json_faults(loaded: LoadedRecipe, text: str) -> Iterator[str]:
    try:
        value = json.loads(text)
    except ValueError as error:
        yield f"prompt: example is not JSON ({error}): expected an answer that the output schema takes"
        return
    for fault in example_faults(loaded.recipe.output_schema or {}, value):
        yield f"prompt: example: {fault}: expected an answer that the output schema takes"


def example_answers(prompt: str) -> tuple[str, ...]:
    """The answers that a prompt's examples show: the first fenced block after each line with the word `Example`, or what follows a line
    `Answer:`."""
    return tuple(found[2] for found in _EXAMPLE.finditer(prompt)) + tuple(_FRAMED_ANSWER.findall(prompt))


def _evidence_faults(loaded: LoadedRecipe) -> Iterator[str]:
    for case in prompt_cases(loaded):
        if not _MISSING_EVIDENCE.search(_role_prompt(loaded, case)):
            yield "prompt: it does not state what to do without evidence: expected a line beginning `If evidence is missing:`"


def _grammar_faults(loaded: LoadedRecipe) -> Iterator[str]:
    yield from (f"output_schema: {fault}" for fault in grammar_faults(loaded.recipe.output_schema or {}))


def _test_faults(loaded: LoadedRecipe) -> Iterator[str]:
    """Each test gives every input that the recipe reads and has a name of its own; a recipe without tests is a notice."""
    recipe = loaded.recipe
    read = {*recipe.input_docs, *(["context.md"] if recipe.input_sections else [])}
    names = [test.name for test in recipe.tests]
    if not names:
        yield "tests: none: expected at least one"
    for index, test in enumerate(recipe.tests):
        if test.name in names[:index]:
            yield f"tests[{index}].name: {test.name!r} is also another test's: expected a name of its own"
        if unread := sorted(set(test.documents) - read):
            yield f"tests[{index}].documents: {', '.join(unread)}: not read by the recipe: expected {', '.join(sorted(read))}"
        if recipe.input_sections and "context.md" not in test.documents:
            yield f"tests[{index}].documents: context.md is missing: expected it for a recipe that reads sections"


def _role_prompt(loaded: LoadedRecipe, case: dict[str, str]) -> str:
    return "\n\n".join(select_prompts(loaded, **case))
