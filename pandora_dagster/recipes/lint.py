"""Checks of recipes and prompts against their conventions, without a model.

Conventions of a prompt:

- It has a line that begins with `If evidence is missing:`.
- It has a line with the word `Example`, followed by a fenced block with an answer; a JSON answer matches the output schema. In a prompt
  for a base model (layer NERVES) the answer is the line after `Answer:` instead, and what precedes it is a call of the recipe,
  in the frames in which its documents, variables and query are sent.
- It names every property of the output schema outside the examples.
- Its examples show every outcome of the output schema: each value of an enum of at most three, true and false, a value
  where null is allowed.
- It names only tools that exist.
"""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from pandora_dagster.contracts.enums import ModelLayer, OutputFormat
from pandora_dagster.contracts.model_calls import PartKind, frame_text
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.recipe_schema import MAX_CALL_TOKENS, LoadedRecipe, Recipe
from pandora_dagster.documents.delimited_blocks import block_body, fenced_spans, without_code_blocks
from pandora_dagster.documents.plain_json import PlainDataError, parse_json
from pandora_dagster.documents.plain_yaml import SourceFault, read_yaml_mapping
from pandora_dagster.errors import RecipeNotFoundError, RecipeValidationError
from pandora_dagster.recipes.example_coverage import example_tools, missing_outcomes
from pandora_dagster.recipes.generated_files import check_registry, check_schema_file, referenced_prompts
from pandora_dagster.recipes.output_schema import example_faults, grammar_faults
from pandora_dagster.recipes.recipe_loader import RecipeLoader
from pandora_dagster.recipes.recipe_paths import FRAMES, prompt_files, stray_files
from pandora_dagster.recipes.schema_notation import property_names
from pandora_dagster.recipes.static_prompts import KNOWN_VARIABLES, io_schema, prompt_cases, select_prompts, variables_in
from pandora_dagster.recipes.text_files import read_text

_EXAMPLE = re.compile(r"^[^\n`]*\bExample\b", re.MULTILINE)
_CUE = "Answer:"
_FRAMED_ANSWER = re.compile(rf"^{_CUE}\n(.+)$", re.MULTILINE)
_FRAME = re.compile(r'^<(variables|query|document)(?: name="([^"\n]*)")?>\n((?:(?!</?\1[ >])[^\n]*\n)*)</\1>$', re.MULTILINE)
_LISTED_TOOLS = re.compile(r"`tools` lists ([^.;\n]*(?:\.[a-z][^.;\n]*)*)")
"""What an example says of the tools of its call: "`tools` lists doc.search and memory.create"."""
_TOOL_NAME = re.compile(r"\b[a-z_]+\.[a-z_]+\b")
BASE_MODEL_LAYERS = frozenset({ModelLayer.NERVES})
"""Layers whose model is a base model, which continues text and follows no instructions (decision 26)."""
_TOOL_CALLER = "coordinator"
"""The role of the recipes whose answers are tool calls."""
_MISSING_EVIDENCE = re.compile(r"^If evidence is missing:", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class LintReport:
    """The result of a check. Faults fail it, notices do not; each is one line `recipe: what: what was expected`."""

    faults: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    approvals: tuple[str, ...] = ()
    """What a high risk level does: a line for each recipe whose tool calls wait for the user's approval."""


def check_all(
    loader: RecipeLoader,
    tools: Collection[str],
    counter: TokenMeasure,
    documents: Callable[[LoadedRecipe], Collection[str] | None],
    roles: Collection[str],
    writing_tools: Collection[str] = (),
) -> LintReport:
    """Check a folder of recipes: each recipe, its callers, the use of each prompt, `registry.yaml` and `schema.json`.

    `documents`: the documents that calls of a recipe can load; None for a recipe that nothing calls. `roles`: those that the embedded
    runtime plays. `writing_tools`: those of `tools` that write.
    """
    strays = [f"recipes/{name}: never loaded: expected {{category}}/{{name}}.yaml" for name in stray_files(loader.recipes)]
    faults: list[str] = [*check_schema_file(loader), *strays]
    notices: list[str] = []
    valid: list[LoadedRecipe] = []
    for name in loader.names():
        try:
            valid.append(loader.load_with_tests(name))
        except (RecipeValidationError, RecipeNotFoundError) as error:
            faults.extend(str(error).splitlines())
    for loaded in valid:
        faults.extend(check_recipe(loaded, counter, tools))
        faults.extend(_document_faults(loader, loaded, documents(loaded)))
        faults.extend(_caller_faults(loaded, documents(loaded), roles))
        notices.extend(recipe_notices(loaded, writing_tools))
    broken = set(loader.names()) - {loaded.path for loaded in valid}
    faults += unused_prompt_faults(loader, valid, referenced_prompts(loader, broken))
    faults += check_registry(loader, counter, broken=broken)
    waiting = {loaded.path: waiting_tools(loaded.recipe, writing_tools) for loaded in valid}
    approvals = [f"{path}: risk_level high: {', '.join(tools)} waits for the user's approval" for path, tools in waiting.items() if tools]
    return LintReport(tuple(faults), tuple(notices), tuple(approvals))


def check_recipe(loaded: LoadedRecipe, counter: TokenMeasure, tools: Collection[str]) -> tuple[str, ...]:
    """Faults of one loaded recipe against the conventions. `tools`: those that exist."""
    rules: tuple[Callable[[LoadedRecipe], Iterator[str]], ...] = (
        _query_faults,
        _variable_faults,
        _preserve_faults,
        _mode_faults,
        _explanation_faults,
        _example_answer_faults,
        _outcome_faults,
        _base_model_faults,
        _evidence_faults,
        _grammar_faults,
        _test_faults,
    )
    faults = [*_budget_faults(loaded, counter), *_tool_faults(loaded, tools), *(fault for rule in rules for fault in rule(loaded))]
    return tuple(f"recipes/{loaded.path}.yaml: {fault}" for fault in dict.fromkeys(faults))


def _document_faults(loader: RecipeLoader, loaded: LoadedRecipe, documents: Collection[str] | None) -> Iterator[str]:
    """The entries of `input_docs` that no call of the recipe can load."""
    unknown = [(index, name) for index, name in enumerate(loaded.recipe.input_docs) if documents is not None and name not in documents]
    text = read_text(loader.recipes / f"{loaded.path}.yaml") if unknown else ""
    for index, name in unknown:
        line = 1 if isinstance(text, SourceFault) else read_yaml_mapping(text).line(("input_docs", index))
        expected = ", ".join(sorted(documents or ()))
        yield f"recipes/{loaded.path}.yaml:{line}: input_docs[{index}]: {name}: expected one of {expected}"


def _caller_faults(loaded: LoadedRecipe, documents: Collection[str] | None, roles: Collection[str]) -> Iterator[str]:
    """A recipe is called by something, and its role is played by the embedded runtime too."""
    role = loaded.recipe.role or loaded.recipe.name
    if documents is None:
        yield f"recipes/{loaded.path}.yaml: nothing calls it: expected a recipe that a step of the program names"
    if role not in roles:
        yield f"recipes/{loaded.path}.yaml: role: {role}: the embedded runtime does not play it: expected one of {', '.join(sorted(roles))}"


def recipe_notices(loaded: LoadedRecipe, writing_tools: Collection[str] = ()) -> tuple[str, ...]:
    """Notices of one recipe: JSON without a schema, and a high risk level without effect."""
    recipe = loaded.recipe
    notices: list[str] = []
    if recipe.output_format in (OutputFormat.JSON, OutputFormat.YAML) and recipe.output_schema is None:
        notices.append("output_schema: none: any JSON object passes")
    if recipe.risk_level == "high" and not waiting_tools(recipe, writing_tools):
        notices.append("risk_level: high: no effect: the recipe calls no tool that writes")
    return tuple(f"recipes/{loaded.path}.yaml: {notice}" for notice in notices)


def waiting_tools(recipe: Recipe, writing_tools: Collection[str]) -> tuple[str, ...]:
    """The tools whose calls by this recipe wait for the user's approval."""
    asks = recipe.risk_level == "high" and recipe.role == _TOOL_CALLER
    return tuple(name for name in recipe.tools_available if asks and name in writing_tools)


def unused_prompt_faults(loader: RecipeLoader, valid: Collection[LoadedRecipe], referenced: Collection[str] = ()) -> Iterator[str]:
    """A fault for each prompt file that no valid recipe uses. `referenced`: those that broken recipes name. Every recipe uses the
    policy and the frames."""
    used = {*referenced} | {entry.path for loaded in valid for entry, _ in loaded.prompts}
    for name in prompt_files(loader.prompts):
        if name not in used and not name.startswith(("prompts/policy/", FRAMES)):
            yield f"{name}: used by no recipe: expected at least one, or the file in prompts/archive/"


def static_prefix(loaded: LoadedRecipe, *, mode: str, intent: str) -> str:
    """The constant beginning of the prompt pack in this case, as it is sent: policy, role prompt, IO schema."""
    role = select_prompts(loaded, mode=mode, intent=intent)
    return "\n\n".join([loaded.policy, *role, io_schema(loaded)])


def prefix_tokens(loaded: LoadedRecipe, counter: TokenMeasure) -> int:
    """Tokens of the longest static prefix over all cases, with the blank line after it."""
    return max(counter.count(static_prefix(loaded, **case) + "\n\n") for case in prompt_cases(loaded))


def _budget_faults(loaded: LoadedRecipe, counter: TokenMeasure) -> Iterator[str]:
    tokens, budget = prefix_tokens(loaded, counter), loaded.recipe.token_budget.prompt
    if tokens > budget:
        yield f"token_budget.prompt: policy, prompt and IO schema take {tokens} tokens: expected at most {budget}"
    if (total := loaded.recipe.token_budget.total) > MAX_CALL_TOKENS:
        yield f"token_budget.total: {total}: expected at most {MAX_CALL_TOKENS}, the limit of one call (specification 000, section 19)"


def _query_faults(loaded: LoadedRecipe) -> Iterator[str]:
    sections = loaded.recipe.input_sections
    if sections and "§0" not in sections:
        yield "input_sections: §0 is missing: expected it always (specification 000, section 12.2)"


def _variable_faults(loaded: LoadedRecipe) -> Iterator[str]:
    declared = {*KNOWN_VARIABLES, *loaded.recipe.variables}
    texts = [*(text for _, text in loaded.prompts), *loaded.recipe.variables.values()]
    for name in dict.fromkeys(name for text in texts for name in variables_in(text)):
        if name not in declared:
            yield f"variables: {{{{{name}}}}} is not declared: expected it under variables"


def _preserve_faults(loaded: LoadedRecipe) -> Iterator[str]:
    """The field `preserve` of `compression` may name only inputs of the call."""
    for name in loaded.recipe.compression.preserve:
        if name not in loaded.recipe.input_docs and not re.fullmatch(r"section_\d|cited_passages", name):
            yield f"compression.preserve: {name} is no input of the call: expected section_<n>, cited_passages or one of its input_docs"


def _mode_faults(loaded: LoadedRecipe) -> Iterator[str]:
    """Mode `select` needs an answer with the numbers of units; a recipe without a content type compresses nothing and has that default."""
    recipe = loaded.recipe
    if recipe.content_type is None:
        if recipe.compression.mode != "select":
            yield f"compression.mode: {recipe.compression.mode} without a content_type: expected it in compression recipes only"
    elif recipe.compression.mode == "select" and (recipe.output_schema or {}).get("properties", {}).get("keep", {}).get("type") != "array":
        yield "compression.mode: select, and output_schema has no `keep`: expected an array of numbers there, or mode: rewrite"


def _explanation_faults(loaded: LoadedRecipe) -> Iterator[str]:
    """The prompt of each case names every property of the output schema."""
    for case in prompt_cases(loaded):
        prose = _FRAMED_ANSWER.sub("", without_code_blocks(_role_prompt(loaded, case)))
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


def _outcome_faults(loaded: LoadedRecipe) -> Iterator[str]:
    """The examples of a prompt together show each outcome that the output schema allows."""
    for case in prompt_cases(loaded):
        answers = [answer for text in example_answers(_role_prompt(loaded, case)) if (answer := _read_json(text)) is not None]
        for outcome in missing_outcomes(loaded.recipe.output_schema or {}, answers):
            yield f"prompt: no example shows {outcome}: expected one for every outcome"


def _read_json(text: str) -> object:
    try:
        return parse_json(text)
    except PlainDataError:
        return None  # reported by `_json_faults`


def _base_model_faults(loaded: LoadedRecipe) -> Iterator[str]:
    """A base model gets at least two worked calls, each in the frame of a real one; another model gets none."""
    layer, is_base = loaded.recipe.model_layer, loaded.recipe.model_layer in BASE_MODEL_LAYERS
    if is_base and loaded.frames.answer_cue != _CUE:
        yield f"{FRAMES}answer_cue.md: {loaded.frames.answer_cue[:40]!r}: expected {_CUE!r}, with which worked calls end"
    for case in prompt_cases(loaded):
        calls = framed_calls(_role_prompt(loaded, case))
        if is_base and len(calls) < 2:
            yield f"prompt: {len(calls)} worked calls that end in `Answer:`: expected two or more for the base model of {layer}"
        elif calls and not is_base:
            yield f"prompt: a worked call that ends in `Answer:`: expected fenced examples for the instructed model of {layer}"
        for call in calls:
            yield from _call_frame_faults(loaded, call)


def _call_frame_faults(loaded: LoadedRecipe, call: str) -> Iterator[str]:
    """A worked call has the recipe's variables, one or more of its documents in their order, and the query, as a pack frames them."""
    recipe = loaded.recipe
    blocks: list[tuple[PartKind, str, str]] = [(kind, name, text.removesuffix("\n")) for kind, name, text in _FRAME.findall(call)]  # pyright: ignore
    if call != "\n\n".join(frame_text(*block) for block in blocks):
        yield f"prompt: a worked call is not framed as it is sent: expected variables, documents and query, not {call[:40]!r}"
    names = [name for kind, name, _ in blocks if kind == "document"]
    if not names or names != [name for name in recipe.input_docs if name in names]:
        expected = ", ".join(recipe.input_docs)
        yield f"prompt: a worked call has the documents {', '.join(names) or 'none'}: expected of {expected}, in this order"
    kinds = [kind for kind, _, _ in blocks if kind != "document"]
    if kinds != (["variables"] if recipe.variables else []) + ["query"]:
        yield f"prompt: a worked call has {', '.join(kinds) or 'neither variables nor query'}: expected what a call of the recipe has"
    shown = {line.partition(":")[0] for kind, _, text in blocks if kind == "variables" for line in text.splitlines() if line[:1].strip()}
    if shown != set(recipe.variables):
        yield f"prompt: a worked call has the variables {', '.join(sorted(shown))}: expected {', '.join(recipe.variables)}"


def framed_calls(prompt: str) -> tuple[str, ...]:
    """The worked calls of a prompt for a base model: the text before each `Answer:`, from its first frame on."""
    calls: list[str] = []
    position = 0
    for match in _FRAMED_ANSWER.finditer(prompt):
        opening = _FRAME.search(prompt, position, match.start())
        calls.append(prompt[opening.start() if opening else match.start() : match.start()].strip())
        position = match.end()
    return tuple(calls)


def _tool_faults(loaded: LoadedRecipe, tools: Collection[str]) -> Iterator[str]:
    """Recipe, prompt and examples name only tools that exist (decision 42)."""
    for name in loaded.recipe.tools_available:
        if name not in tools:
            yield f"tools_available: {name} does not exist: expected one of {', '.join(sorted(tools))}"
    for case in prompt_cases(loaded):
        prompt = _role_prompt(loaded, case)
        named = {name for listed in _LISTED_TOOLS.findall(prompt) for name in _TOOL_NAME.findall(listed)}
        named |= {name for text in example_answers(prompt) for name in example_tools(_read_json(text))}
        for name in sorted(named - set(tools)):
            yield f"prompt: example: the tool {name} does not exist: expected one of {', '.join(sorted(tools))}"


def _json_faults(loaded: LoadedRecipe, text: str) -> Iterator[str]:
    try:
        value = parse_json(text)
    except PlainDataError as error:
        yield f"prompt: example is not JSON ({error}): expected an answer that the output schema takes"
        return
    for fault in example_faults(loaded.recipe.output_schema or {}, value):
        yield f"prompt: example: {fault}: expected an answer that the output schema takes"


def example_answers(prompt: str) -> tuple[str, ...]:
    """The answers in a prompt's examples: the first fenced block after each line with the word `Example`, and the line after `Answer:`."""
    answers: list[str] = []
    position = 0
    for start, end in fenced_spans(prompt):
        if _EXAMPLE.search(prompt, position, start):
            answers.append(block_body(prompt[start:end]))
            position = end
        else:
            position = start
    return (*answers, *_FRAMED_ANSWER.findall(prompt))


def _evidence_faults(loaded: LoadedRecipe) -> Iterator[str]:
    for case in prompt_cases(loaded):
        if not _MISSING_EVIDENCE.search(_role_prompt(loaded, case)):
            yield "prompt: it does not state what to do without evidence: expected a line beginning `If evidence is missing:`"


def _grammar_faults(loaded: LoadedRecipe) -> Iterator[str]:
    yield from (f"output_schema: {fault}" for fault in grammar_faults(loaded.recipe.output_schema or {}))


def _test_faults(loaded: LoadedRecipe) -> Iterator[str]:
    """A recipe has tests. Each has a unique name, gives only documents that the recipe reads, and context.md where it reads sections."""
    recipe = loaded.recipe
    inputs = {*recipe.input_docs, *(["context.md"] if recipe.input_sections else [])}
    names = [test.name for test in recipe.tests]
    if not names:
        yield "tests: none: expected at least one"
    for index, test in enumerate(recipe.tests):
        if test.name in names[:index]:
            yield f"tests[{index}].name: {test.name!r} is also another test's: expected a unique name"
        if unread := sorted(set(test.documents) - inputs):
            yield f"tests[{index}].documents: {', '.join(unread)}: not read by the recipe: expected {', '.join(sorted(inputs))}"
        if recipe.input_sections and "context.md" not in test.documents:
            yield f"tests[{index}].documents: context.md is missing: expected it for a recipe that reads sections"


def _role_prompt(loaded: LoadedRecipe, case: dict[str, str]) -> str:
    return "\n\n".join(select_prompts(loaded, **case))
